"""One trial of transforms: statements are compiled, functions loaded, records evaluated, costs measured.

The JVM is a child of this process, and ends with it. Without a statement there is none.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.session import SparkSession, in_thread
from lockstep_data_plane.transform.compiled_transform import StatementRefused
from lockstep_data_plane.transform.compiler import TransformCompiler
from lockstep_data_plane.transform.evaluation_answer import (
    AnswerEnd,
    EvaluationOptions,
    Evaluator,
    Filtered,
    Tombstones,
    TransformAnswer,
    TransformConnectionLost,
    TransformError,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.evaluator import TransformEvaluator
from lockstep_data_plane.transform.jvm_socket import find_own_server
from lockstep_data_plane.transform.python_evaluator import FUNCTION_SECONDS, PythonEvaluator, PythonFunction
from lockstep_data_plane.transform.sql_transform import version_of, version_with
from lockstep_data_plane.trial.trial_batches import batches_of, outcomes_of, requests_of
from lockstep_state.codecs.transform_trial import (
    TrialCost,
    TrialMistake,
    TrialOutcome,
    TrialPartition,
    TrialProgress,
    TrialRecord,
    TrialRequest,
    TrialResult,
)

SPARK = SparkSettings(
    master="local[1]",
    conf={"spark.app.name": "lockstep transform", "spark.driver.memory": "1g", "spark.ui.enabled": "false"},
)

SAMPLE = (
    b'{"id":"4f1c2a90-7d7e-4a57-9a53-0d0f3a6b8c11","created_at":"2026-01-31T12:00:00Z","country":"DE","status":"paid",'
    b'"customer":{"id":81234,"name":"Erika Mustermann","email":"erika@example.org","iban":"DE02120300000000202051"},'
    b'"items":[{"sku":"A-1001","quantity":2,"price_cents":12900},{"sku":"B-2002","quantity":1,"price_cents":4550}],'
    b'"ship_to":{"street":"Heidestrasse 17","city":"Koeln","zip":"51147"},"total_cents":30350,"currency":"EUR"}'
)
"""The value of a sample record."""
SAMPLE_TOPIC = "sample"
SAMPLES = 1_000
"""The number of records of a large call."""
WARM_S, MEASURE_S = 2.0, 1.0
"""The seconds in which the JVM compiles the statement, and those in which calls are measured."""

ALL_FAILURES = 1_000_000
OPTIONS = EvaluationOptions(seconds=60.0, failures=ALL_FAILURES)
CONNECT_S = 120.0

Report = Callable[[TrialProgress], None]


class _Jvm(NamedTuple):
    """The JVM of a trial."""

    compiler: TransformCompiler
    server: tuple[int, Path]
    """Its pid and socket."""


class TrialSession:
    """One trial. `report` is told of each step."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._spark = SparkSession(SPARK, 1, evaluates=True)
        self._done = self._total = 0

    async def run(self, requests: Sequence[TrialRequest]) -> tuple[TrialResult, ...]:
        """Return the result of each request, in their order.

        Raises:
            SparkNotStarted: Spark did not start.
            LockstepError: The JVM ended, or did not answer in time.
        """
        has_statement = not all(request.function for request in requests)
        self._total = has_statement + sum(_steps(request) for request in requests)
        jvm = await self._start_jvm() if has_statement else None
        return tuple([await self._run_request(jvm, request) for request in requests])

    async def _start_jvm(self) -> _Jvm:
        self._begin("starting Spark")
        self._spark.start()
        context = await self._spark.context()
        compiler = await in_thread("compiler", lambda: TransformCompiler(context))
        server = await in_thread("server", lambda: find_own_server(context))
        self._done += 1
        return _Jvm(compiler, server)

    async def _run_request(self, jvm: _Jvm | None, request: TrialRequest) -> TrialResult:
        steps_after = self._done + _steps(request)
        try:
            if jvm is None or request.function:
                return await self._run_function(request)
            return await self._run_statement(jvm, request)
        finally:
            self._done = steps_after

    def _begin(self, text: str) -> None:
        self._report(TrialProgress(text, self._done, self._total))

    async def _run_statement(self, jvm: _Jvm, request: TrialRequest) -> TrialResult:
        self._begin(f"compiling {request.name}")
        try:
            compiled = await in_thread("compile", lambda: jvm.compiler.compile(request.statement))
        except StatementRefused as exc:
            return TrialResult(request.name, exc.findings)
        self._done += 1
        outcomes: tuple[TrialOutcome, ...] = ()
        cost, version = None, ""
        if not set(compiled.secrets) - set(request.secrets):
            options, secrets = _options(request), _secrets(request)
            version = version_of(compiled, options, secrets)
            evaluator = await TransformEvaluator.connect(
                jvm.server, compiled, options=options, secrets=secrets, within=CONNECT_S
            )
            try:
                outcomes, cost = await self._evaluate_all(evaluator, request)
            finally:
                await evaluator.close()
        return TrialResult(
            request.name,
            (),
            tuple(sorted(compiled.columns_read)),
            tuple(sorted(compiled.columns_written)),
            compiled.filters,
            compiled.secrets,
            version,
            cost,
            outcomes,
        )

    async def _run_function(self, request: TrialRequest) -> TrialResult:
        self._begin(f"loading {request.name}")
        options = replace(_options(request), seconds=FUNCTION_SECONDS)
        evaluator = PythonEvaluator(PythonFunction(request.function, request.secrets), options)
        try:
            await evaluator.start()
            self._done += 1
            outcomes, cost = await self._evaluate_all(evaluator, request)
            version = version_with(evaluator.version.digest, options, _secrets(request))
        except (TransformRefused, TransformTimedOut, TransformConnectionLost, TransformVersionDiffers) as exc:
            return TrialResult(request.name, (_function_mistake(exc),))
        finally:
            await evaluator.close()
        return TrialResult(request.name, version=version, cost=cost, outcomes=outcomes)

    async def _evaluate_all(
        self, evaluator: Evaluator, request: TrialRequest
    ) -> tuple[tuple[TrialOutcome, ...], TrialCost | None]:
        outcomes: list[TrialOutcome] = []
        for partition in request.partitions:
            self._begin(f"evaluating {partition.topic}-{partition.partition}")
            outcomes += outcomes_of(partition, await _evaluate_partition(evaluator, partition))
            self._done += 1
        cost = None
        if request.measured:
            self._begin(f"measuring {request.name}")
            cost = await _measure(evaluator)
        return tuple(outcomes), cost


def _steps(request: TrialRequest) -> int:
    return 1 + len(request.partitions) + request.measured


def _options(request: TrialRequest) -> EvaluationOptions:
    return replace(OPTIONS, tombstones=Tombstones(request.tombstones), filtered=Filtered(request.filtered))


def _secrets(request: TrialRequest) -> Mapping[str, bytes]:
    return {name: secret.encode() for name, secret in request.secrets.items()}


async def _evaluate_partition(evaluator: Evaluator, partition: TrialPartition) -> list[TransformAnswer]:
    """Return answers that decide all records of a partition."""
    answers = []
    for batches in requests_of(batches_of(partition.records)):
        start, content = batches[0].base_offset, [batch.data for batch in batches]
        while True:
            answer = await evaluator.evaluate(content, start, partition.partition, partition.topic)
            answers.append(answer)
            if answer.end is AnswerEnd.WHOLE:
                break
            start = answer.covers + 1
    return answers


async def _measure(evaluator: Evaluator) -> TrialCost:
    """Return what calls cost with sample records, after the JVM has compiled a statement for them."""
    sample = [TrialRecord(offset, 1_700_000_000_000 + offset, b"%d" % offset, SAMPLE) for offset in range(SAMPLES)]
    many, single = ([batch.data for batch in batches_of(records)] for records in (sample, sample[:1]))
    first = await evaluator.evaluate(single, 0, 0, SAMPLE_TOPIC)
    if first.failures:
        reason = f"the sample record fails ({first.failures[0].condition})"
        return TrialCost(sample_bytes=len(SAMPLE), reason=reason)
    await _times(evaluator, many, WARM_S)
    large = statistics.median(await _times(evaluator, many, MEASURE_S / 2))
    small = statistics.median(await _times(evaluator, single, MEASURE_S / 2))
    return TrialCost(small * 1000, SAMPLES / large, len(SAMPLE))


async def _times(evaluator: Evaluator, batches: Sequence[bytes | memoryview], for_s: float) -> list[float]:
    """Return how many seconds each of the calls took that fit in this time; there is at least one."""
    times: list[float] = []
    ends = time.monotonic() + for_s
    while not times or time.monotonic() < ends:
        began = time.perf_counter()
        await evaluator.evaluate(batches, 0, 0, SAMPLE_TOPIC)
        times.append(time.perf_counter() - began)
    return times


def _function_mistake(error: TransformError) -> TrialMistake:
    """Return why a function cannot be used, or did not decide its records."""
    if isinstance(error, TransformRefused):
        return TrialMistake(error.code, 0, 0, "", error.message)
    return TrialMistake("FUNCTION_NOT_EVALUATED", 0, 0, "", str(error))
