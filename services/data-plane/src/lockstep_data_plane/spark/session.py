"""The one Spark driver of this process, with slots as jobs (`architecture.md` §5 "Spark", `kafka-wire.md` §6).

Each slot is a job of one task that runs until the slot is asked to end. Only the driver of a flow starts slots again,
so Spark's retries, speculation and dynamic allocation are off (`conf.py`).
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from lockstep_config.keys.spark_settings import SparkSettings, is_local
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.class_archive import find_archive
from lockstep_data_plane.spark.conf import (
    LAUNCHER_JVM,
    Pod,
    executors_python,
    in_folder,
    settings_for,
    with_archive,
    without_secrets,
)
from lockstep_data_plane.spark.jvm_tempdir import new_folder, secret_conf_file
from lockstep_data_plane.spark.worker_claim import claim_file, claimed, end_worker
from lockstep_data_plane.transform.compiled_transform import CompiledTransform
from lockstep_data_plane.transform.compiler import TransformCompiler

log = logging.getLogger(__name__)

R = TypeVar("R")

ENDED_BY_SPARK_S = 4.5
"""Seconds within which Spark ends the worker of a cancelled job. Usual is 3.8 (`kafka-wire.md` §6)."""

JVM_ANSWERS_S = 15.0
"""Seconds within which the JVM has to answer a question. A slot's job has no limit."""

_RESTART_NOTE = "this process ends too, and its supervisor starts both again"


class SparkNotStarted(RuntimeError):
    """The error of a Spark that did not start or has ended. The message says why and what to do."""


class SlotFailed(RuntimeError):
    """The error of a slot's task that ended by itself. The message is the first line of its cause."""


def job_group(spec: SlotSpec) -> str:
    """Return Spark's name for the job of one run of a slot, by which it is cancelled."""
    return f"{spec.settings.flow} {_slot_name(spec)} {spec.run}"


def _slot_name(spec: SlotSpec) -> str:
    """Return the name of the slot as pages and logs have it."""
    return f"verify slot {spec.slot}" if spec.verifies else f"slot {spec.slot}"


class SparkSession:
    """The Spark session of this process.

    `slots` is the number of slots at most, for which cores are asked. If `evaluates`, its JVMs evaluate transforms.
    """

    def __init__(self, settings: SparkSettings, slots: int, *, evaluates: bool = False) -> None:
        self._settings = settings_for(settings, slots, _this_pod(), evaluates=evaluates)
        self._evaluates = evaluates
        self._compiler: TransformCompiler | None = None
        self._compiling = threading.Lock()
        self._context: Future[Any] = Future()
        self._launches = threading.Event()
        self._claims: Path | None = None
        """The folder with the claims of workers; None while Spark starts, and if they are on other machines."""

    def start(self) -> None:
        """Start Spark in a thread, and return when its JVM is launched.

        To launch it needs PySpark, whose import would be slower beside the caller's own imports. `context` raises what
        goes wrong.
        """

        def run() -> None:
            try:
                context = self._start()
            except BaseException as exc:  # noqa: BLE001  # handed to the task that asks for the context, of any type
                self._context.set_exception(exc)
                return
            finally:
                self._launches.set()
            self._context.set_result(context)
            _start_daemon(context)

        threading.Thread(target=run, name="spark", daemon=True).start()
        self._launches.wait()

    @property
    def master(self) -> str:
        """Return Spark's master URL."""
        return self._settings["spark.master"]

    async def context(self) -> Any:
        """Return the SparkContext once it has started. Raises SparkNotStarted."""
        return await asyncio.shield(asyncio.wrap_future(self._context))

    def _start(self) -> Any:
        if os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
            raise SparkNotStarted(
                "Spark Connect (SPARK_REMOTE) has no job groups and ends long tasks: unset it and name a master instead"
            )
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        # Job groups are thread-local; each Python thread needs a JVM thread of its own.
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        # Spark would take whichever python3 comes first on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", executors_python(self._settings, sys.executable))
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_JVM)
        if is_local(self.master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        folder, lock = new_folder(Path(tempfile.gettempdir()))
        self._claims = folder if is_local(self.master) else None
        settings = in_folder(self._settings, folder)
        archive = find_archive(os.environ, evaluates=self._evaluates)
        settings = with_archive(settings, archive, os.environ.get("SPARK_SUBMIT_OPTS", ""))
        shown, secrets = without_secrets(settings)
        conf, launching = SparkConf(), SparkConf()
        conf.setAll(list(settings.items()))
        launching.setAll(list(shown.items()))
        reading, writing = os.pipe()
        stderr = StderrFilter()
        listening = threading.Thread(target=stderr.pass_on, args=(reading,), name="spark stderr", daemon=True)
        listening.start()
        log.debug("JVM launched")
        self._launches.set()
        try:
            try:
                with secret_conf_file(secrets, folder):
                    gateway: Any = launch_gateway(launching, {"stderr": writing, "pass_fds": (lock,)})  # type: ignore[no-untyped-call]  # pyspark's own is untyped
            finally:
                os.close(writing)
        except (PySparkRuntimeError, OSError) as exc:
            listening.join(2.0)
            raise SparkNotStarted(stderr.explain("Spark's JVM ended while it started")) from exc
        try:
            log.debug("JVM started")
            gateway.jvm.java.io.File(str(folder)).deleteOnExit()  # by then all that is in it is gone
            context: Any = SparkContext(conf=conf, gateway=gateway)
            context._accumulatorServer.handle_error = _connection_ended
            return context
        except (Py4JError, OSError) as exc:
            if (status := _exit_status(gateway)) is not None:
                listening.join(2.0)
                raise SparkNotStarted(
                    stderr.explain(f"Spark's JVM ended while it started ({exit_words(status)})")
                ) from exc
            raise SparkNotStarted(f"Spark did not start with master {self.master}: {_java_cause(str(exc))}") from exc

    async def run_slot(self, spec: SlotSpec) -> int:
        """Run a slot as a Spark job until it ends, and return how many records it appended.

        Raises SlotFailed and SparkNotStarted.
        """
        return await self._call(job_group(spec), lambda context: _run_job(context, spec, self._claim(spec)))

    async def cancel(self, spec: SlotSpec) -> None:
        """Cancel a slot's job at once. Its Python worker is killed within seconds.

        If Spark does not do that, as its Python daemon is dead, the worker is killed from here. Nothing is lost: a
        chain of appends continues from the target's log.
        """
        await self._ask("cancel", lambda context: _cancel_job(context, spec))
        if (claim := self._claim(spec)) is not None:
            threading.Thread(target=_end_late_worker, args=(job_group(spec), claim), daemon=True).start()

    def _claim(self, spec: SlotSpec) -> Path | None:
        """Return the file that the worker of a slot claims, or None if it is on another machine."""
        return None if self._claims is None else claim_file(self._claims, job_group(spec))

    async def is_task_running(self, spec: SlotSpec) -> bool:
        """Return whether an executor runs the slot's task, which need not have reported anything yet."""
        return await self._ask("at work", lambda context: _ask_jvm(lambda: _is_task_running(context, spec), False))

    async def occupancy(self) -> str:
        """Return a phrase about Spark's executors and running tasks, for a slot that waits for a core."""
        master = self.master
        return await self._ask("occupancy", lambda context: _ask_jvm(lambda: _occupancy(context, master), master))

    async def free_cores(self) -> int:
        """Return how many cores are not in use; 0 if Spark has no executor, or does not answer."""
        return await self._ask("free cores", lambda context: _ask_jvm(lambda: _free_cores(context), 0))

    async def compile_statement(self, statement: str) -> CompiledTransform:
        """Return the statement of a transform, compiled. The first one takes a second or two.

        Raises:
            StatementRefused: The statement cannot be a transform.
            TransformsUnavailable: The JVM does not have the transforms' jar.
            SparkNotStarted: Spark has ended.
        """
        return await self._call("compile", lambda context: self._compile(context, statement))

    def _compile(self, context: Any, statement: str) -> CompiledTransform:
        with self._compiling:
            self._compiler = self._compiler or TransformCompiler(context)
            return self._compiler.compile(statement)

    async def _call(self, name: str, call: Callable[[Any], R], within_s: float | None = None) -> R:
        """Return what a call of the JVM returns. Raises SparkNotStarted if the JVM has ended."""
        context = await self.context()
        async with asyncio.timeout(within_s):
            return await in_thread(name, lambda: _call_jvm(context, call))

    async def _ask(self, name: str, call: Callable[[Any], R]) -> R:
        """Return the answer of a JVM that has to answer soon.

        Raises:
            SparkNotStarted: It has ended, or is frozen and would hold up the driver for ever.
        """
        try:
            return await self._call(name, call, JVM_ANSWERS_S)
        except TimeoutError as exc:
            raise SparkNotStarted(
                f"Spark's JVM does not answer within {JVM_ANSWERS_S:g} s ({name}); {_RESTART_NOTE}"
            ) from exc

    async def address(self) -> str:
        """Return the URL of Spark's pages; "": they are off. Raises SparkNotStarted."""
        return await self._ask("address of its pages", lambda context: context.uiWebUrl or "")


NOISE = (b"WARNING: Using incubator modules", b"Setting default log level", b"To adjust logging level")
"""The beginnings of warnings that Spark prints at every start and that need no action."""


class StderrFilter:
    """The standard error of the JVM and its workers: passed on without the noise, with the last line kept."""

    def __init__(self) -> None:
        self._last_line = ""

    def pass_on(self, reading: int) -> None:
        """Pass on what is read from the descriptor, until the last process that can write has ended."""
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if not line.startswith(NOISE):
                    self._last_line = line.decode(errors="replace").strip() or self._last_line
                    sys.stderr.buffer.write(line)
                    sys.stderr.buffer.flush()

    def explain(self, event: str) -> str:
        """Return a sentence about a JVM that ended: the event, and the last line that it printed."""
        if self._last_line:
            return f"{event}; the last it said: {self._last_line}"
        return f"{event} and said nothing: something killed it, such as an operator, or the system for want of memory"


def _connection_ended(*_: object) -> None:
    """Log the end of Spark's connection in place of its traceback: the runner of a slot reports that the JVM ended."""
    log.debug("Spark's connection for accumulators ended", exc_info=sys.exc_info())


def _this_pod() -> Pod:
    """Return the pod of this process, as Kubernetes names it to every pod; empty outside of one."""
    account = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    if not os.environ.get("KUBERNETES_SERVICE_HOST") or not account.is_file():
        return Pod()
    return Pod(name=socket.gethostname(), namespace=account.read_text(encoding="utf-8").strip())


def _start_daemon(context: Any) -> None:
    """Run a first task, which starts the daemon that forks the workers.

    If it fails, so does the first slot, and says why.
    """
    _ask_jvm(lambda: context.parallelize([0], 1).mapPartitions(list).count(), None)


def _call_jvm(context: Any, call: Callable[[Any], R]) -> R:
    from py4j.protocol import Py4JNetworkError

    try:
        return call(context)
    except (Py4JNetworkError, OSError) as exc:
        raise SparkNotStarted(_how_the_jvm_ended(context)) from exc


def _ask_jvm(ask: Callable[[], R], default: R) -> R:
    """Return the JVM's answer, or `default` if it has ended. The runner of a slot learns that by itself."""
    from py4j.protocol import Py4JError

    try:
        return ask()
    except (Py4JError, OSError):
        return default


def _end_late_worker(group: str, claim: Path) -> None:
    """Kill the worker of a cancelled job that Spark has not ended."""
    time.sleep(ENDED_BY_SPARK_S)
    if process_id := end_worker(claim):
        log.warning("worker killed", extra={"text": f"{group}: Spark did not end process {process_id}"})


def _run_job(context: Any, spec: SlotSpec, claim: Path | None) -> int:
    from py4j.protocol import Py4JError, Py4JNetworkError

    group = job_group(spec)
    try:
        context.setJobGroup(group, f"{spec.settings.flow} {_slot_name(spec)}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", str(spec.settings.flow))
        task = context.parallelize([(spec, claim)], 1).setName(group).mapPartitions(copy)
        return int(sum(task.collect()))
    except Py4JNetworkError:
        raise  # it is a Py4JError too
    except Py4JError as exc:
        if _ask_jvm(lambda: bool(context._jsc.sc().isStopped()), True):  # its master has gone, or thrown it out
            raise SparkNotStarted(
                f"Spark ended its own driver ({_java_cause(str(exc))}), and the slots with it; {_RESTART_NOTE}"
            ) from exc
        raise SlotFailed(_first_cause(str(exc))) from exc


def _cancel_job(context: Any, spec: SlotSpec) -> None:
    from py4j.protocol import Py4JNetworkError

    try:
        # Also when the job is not there yet, for its thread may be slower than we are: it would run for ever.
        context._jsc.sc().cancelJobGroupAndFutureJobs(job_group(spec))
    except (Py4JNetworkError, OSError):
        return  # no JVM, no job: the runner of the slot learns of it


def _is_task_running(context: Any, spec: SlotSpec) -> bool:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(job_group(spec))]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return any(stage.numActiveTasks for stage in stages if stage is not None)


def _free_cores(context: Any) -> int:
    infos = list(context._jsc.sc().statusTracker().getExecutorInfos())
    is_cluster = not is_local(context.master)
    if len(infos) <= is_cluster:  # on a cluster the driver is among them
        return 0
    running = sum(int(info.numRunningTasks()) for info in infos)
    return max(0, int(context.defaultParallelism) - running)


def _occupancy(context: Any, master: str) -> str:
    infos = list(context._jsc.sc().statusTracker().getExecutorInfos())
    tasks = sum(info.numRunningTasks() for info in infos)
    # On a cluster the driver is among them, and runs nothing.
    executors = len(infos) if is_local(master) else len(infos) - 1
    return f"{master} has executors: {executors}, running tasks: {tasks}"


def _exit_status(gateway: Any) -> int | None:
    """Return the exit status of the JVM; None while it runs."""
    status: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        status = gateway.proc.wait(5.0)
    return status


def exit_words(status: int) -> str:
    """Return an exit status for people: a signal by its name."""
    return f"killed by {signal.Signals(-status).name}" if -status in set(signal.Signals) else f"exit status {status}"


def _how_the_jvm_ended(context: Any) -> str:
    """Return a sentence about a JVM that does not answer any more."""
    status = _exit_status(context._gateway)
    failure = "does not answer" if status is None else f"ended ({exit_words(status)})"
    return f"Spark's JVM {failure}, and its slots with it; {_RESTART_NOTE}"


def _java_cause(text: str) -> str:
    """Return the line of a Java stack trace that names the innermost cause."""
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith(("Caused by:", ": "))]
    cause = causes[-1] if causes else _first_cause(text)
    return cause.removeprefix("Caused by:").removeprefix(":").strip()[:500]


def _first_cause(text: str) -> str:
    """Return the line of a Java stack trace that says what Python raised, else its first line."""
    _, _, traceback = text.rpartition("Traceback (most recent call last):")
    raised = [line.strip() for line in traceback.splitlines() if line[:1].isalpha() and ": " in line]
    return (raised or [line.strip() for line in text.splitlines() if line.strip()] or [text])[0][:500]


def copy(slots: Iterator[tuple[SlotSpec, Path | None]]) -> Iterator[int]:
    """Run slots in Spark's Python worker: specifications and claims come in, numbers of appended records go out."""
    from lockstep_data_plane.slot.worker import run_slot

    for spec, claim in slots:
        with claimed(claim):
            appended = run_slot(spec)
        yield appended


async def in_thread(name: str, call: Callable[[], R]) -> R:
    """Run a blocking call in a daemon thread of its own: a slot's job blocks for months, and a pool would run dry."""
    result: Future[R] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as exc:  # noqa: BLE001  # handed to the task that awaits, of any type
            result.set_exception(exc)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.shield(asyncio.wrap_future(result))
