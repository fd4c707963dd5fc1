"""A Spark in local mode whose JVM compiles and evaluates transforms, and record batches for it.

`python -m tests.support.transform_jvm` answers what `evaluated_examples` finds, as JSON: for a second JVM, with another
clock, another time zone and another user.
"""

# ruff: noqa: S608  # Spark has no data here but the record's

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform.compiled_transform import CompiledTransform, StatementRefused
from lockstep_data_plane.transform.compiler import TransformCompiler
from lockstep_data_plane.transform.evaluation_answer import EvaluationOptions, TransformAnswer
from lockstep_data_plane.transform.evaluator import TransformEvaluator
from lockstep_data_plane.transform.jar import JAR, PLUGIN
from lockstep_data_plane.transform.jvm_socket import listening_sockets
from tests.support.batch_bytes import batch_bytes, decoded, record

UNFOLDED = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"}
"""The setting by which an expression of literals is evaluated for each record, as one of columns is."""

PATIENT = EvaluationOptions(seconds=60.0)
"""For a machine on which many other things run."""


@dataclass
class TransformJvm:
    """The running Spark."""

    context: Any
    compiler: TransformCompiler

    @property
    def server(self) -> tuple[int, Path]:
        pid = int(self.context._jvm.java.lang.ProcessHandle.current().pid())
        return pid, dict(listening_sockets())[pid]

    def compile(self, statement: str) -> CompiledTransform:
        return self.compiler.compile(statement)

    async def connect(
        self,
        transform: CompiledTransform | str,
        *,
        options: EvaluationOptions = PATIENT,
        secrets: Mapping[str, bytes] | None = None,
    ) -> TransformEvaluator:
        if isinstance(transform, str):
            transform = self.compile(transform)
        return await TransformEvaluator.connect(self.server, transform, options=options, secrets=secrets, within=120.0)

    async def answer(
        self,
        statement: str,
        *batches: bytes,
        start: int = 0,
        options: EvaluationOptions = PATIENT,
        secrets: Mapping[str, bytes] | None = None,
    ) -> TransformAnswer:
        """One request on a connection of its own."""
        evaluator = await self.connect(statement, options=options, secrets=secrets)
        try:
            return await evaluator.evaluate(batches, start, 0, "orders")
        finally:
            await evaluator.close()

    async def values(self, statement: str, *values: bytes | None, **more: Any) -> list[bytes | None]:
        """What becomes of records with these values, in order."""
        batch = batch_bytes([record(offset, value) for offset, value in enumerate(values)])
        answer = await self.answer(statement, batch, **more)
        assert not answer.failures, answer.failures
        return [kept.value for kept in records_of(answer)]


def records_of(answer: TransformAnswer) -> list[PlainRecord]:
    """The records of an answer with their source offsets."""
    if not answer.batch:
        return []
    return [plain._replace(offset=offset) for plain, offset in zip(decoded(answer.batch), answer.offsets, strict=True)]


@contextmanager
def running(settings: Mapping[str, str] | None = None, java_options: str = "") -> Iterator[TransformJvm]:
    """`settings`: of Spark SQL, for the compiler."""
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    conf.setAll(
        [
            ("spark.master", "local[1]"),
            ("spark.app.name", "transforms"),
            ("spark.ui.enabled", "false"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.extraJavaOptions", f"-XX:+UseSerialGC -XX:-UsePerfData {java_options}".strip()),
            ("spark.jars", str(JAR)),
            ("spark.plugins", PLUGIN),
        ]
    )
    context = SparkContext(conf=conf)
    try:
        context.setLogLevel("OFF")
        yield TransformJvm(context, TransformCompiler(context, dict(settings) if settings else None))
    finally:
        context.stop()
        gateway: Any = context._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(60)
        except subprocess.TimeoutExpired:  # it still evaluates what a test has given up
            gateway.proc.kill()
        SparkContext._gateway = SparkContext._jvm = None


def registered_functions(context: Any) -> dict[str, str]:
    """Every function of Spark's own, by name, with the examples of its documentation."""
    registry = getattr(context._jvm, "org.apache.spark.sql.catalyst.analysis.FunctionRegistry")
    functions = {}
    entries = registry.expressions().iterator()
    while entries.hasNext():
        entry = entries.next()
        functions[entry._1().removeprefix("system.builtin.")] = entry._2()._1().getExamples() or ""
    operators = registry.builtinOperators().iterator()
    while operators.hasNext():
        functions[operators.next()._1()] = ""
    return functions


def example_expressions(documentation: str) -> list[str]:
    """The expressions of a function's examples that need no relation."""
    statements = re.findall(r"> SELECT (.*?);\s*$", documentation, re.MULTILINE | re.DOTALL)
    return [one for one in statements if not re.search(r"\b(from|over|group by)\s+(values|\(|range)", one, re.I)]


def evaluated_examples(jvm: TransformJvm, expressions: Sequence[str]) -> dict[str, str]:
    """The text of each expression's result, or the reason why there is none. Many go in one statement."""
    batch = batch_bytes([record(0, b"{}")])

    def evaluate(some: Sequence[str], form: str = "to_json(named_struct('x', ({})))") -> dict[str, str]:
        # Behind the word array Spark's lexer takes >> for the end of two types.
        columns = ", ".join(f"'{index}', {form.format(expression)}" for index, expression in enumerate(some))
        try:
            answer = asyncio.run(jvm.answer(f"SELECT to_json(named_struct({columns})) AS value FROM records", batch))
            if answer.failures:
                refused = f"failed: {answer.failures[0].condition}"
            else:
                [kept] = records_of(answer)
                texts = json.loads(kept.value or b"null")
                return {expression: str(texts[str(index)]) for index, expression in enumerate(some)}
        except StatementRefused as exc:
            refused = f"refused: {exc.findings[0].code} {exc.findings[0].condition} {exc.findings[0].message[:80]}"
        if len(some) > 1:
            middle = len(some) // 2
            return {**evaluate(some[:middle]), **evaluate(some[middle:])}
        if form.startswith("to_json") and refused.startswith("refused"):
            return evaluate(some, "CAST(({}) AS STRING)")
        return {some[0]: refused}

    results: dict[str, str] = {}
    for first in range(0, len(expressions), 16):
        results |= evaluate(expressions[first : first + 16])
    return results


def main() -> None:
    """Evaluate the expressions on standard input with the options of Java in the arguments."""
    expressions = json.load(sys.stdin)
    with running(UNFOLDED, java_options=" ".join(sys.argv[1:])) as jvm:
        sys.stdout.write(json.dumps(evaluated_examples(jvm, expressions)))


if __name__ == "__main__":
    main()
