"""The one Spark driver of this process, and slots as jobs on it (design §5 "Spark", `wire.md` §6).

Each slot is a job of one task that does not end until the slot is told to. There is one restart path, the driver's own,
so Spark's retries, speculation and dynamic allocation are off."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lockstep_data_plane.slot import SlotSpec

__all__ = ["NoSpark", "SlotFailed", "Spark", "job_group"]

SPARE = 2
"""Task places beyond the slots: one for a slot that is being replaced, one for whoever looks."""

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "lockstep data plane",
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.excludeOnFailure.enabled": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0",
    "spark.task.cpus": "1",
    # The reaper's time-out would end the JVM, and every slot in it, for the sake of one.
    "spark.task.reaper.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "lockstep_data_plane.daemon",
    "spark.python.task.killTimeout": "2s",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.catalogImplementation": "in-memory",
}
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    # The JVM schedules a handful of endless tasks and moves no record: little heap, one collector thread, quick start.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k "
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
}


class NoSpark(RuntimeError):
    """Spark could not be started; the message says why and what to do."""


class SlotFailed(RuntimeError):
    """A slot's task ended by itself; the message is the first line of its cause."""


def job_group(spec: SlotSpec) -> str:
    """Spark's name for the job of one run of a slot; what cancelling it takes."""
    return f"{spec.settings.flow} slot {spec.slot} {spec.run}"


class Spark:
    """One SparkContext, started in a thread of its own: it takes seconds, and everything else starts meanwhile."""

    def __init__(self, slots: int) -> None:
        """`slots`: how many there will be at most, which is how many places a local master gets."""
        self._slots = slots
        self._context: Future[Any] = Future()

    def start(self) -> None:
        """Begin. What goes wrong is raised by `context`."""

        def run() -> None:
            try:
                context = self._start()
            except BaseException as exc:  # noqa: BLE001  # handed to whoever asks for the context, whatever it is
                self._context.set_exception(exc)
                return
            self._context.set_result(context)
            # The first task of all starts the daemon that forks the slots' workers.
            context.parallelize([0], 1).mapPartitions(list).count()

        threading.Thread(target=run, name="spark", daemon=True).start()

    async def context(self) -> Any:
        """The SparkContext. Raises NoSpark."""
        return await asyncio.shield(asyncio.wrap_future(self._context))

    def _start(self) -> Any:
        if os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
            raise NoSpark(
                "Spark Connect (SPARK_REMOTE) has no job groups and ends long tasks: unset it and name a master instead"
            )
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        # Job groups are thread-local; each Python thread needs a JVM thread of its own.
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        conf = SparkConf()
        for key, value in SETTINGS.items():
            conf.setIfMissing(key, value)
        master = conf.get("spark.master", "") or f"local[{self._slots + SPARE},1]"
        conf.setMaster(master)
        if master.startswith("local"):
            for key, value in LOCAL_SETTINGS.items():
                conf.setIfMissing(key, value)
            # Spark would take whichever python3 comes first on PATH.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            gateway: Any = launch_gateway(conf, popen_kwargs={"stderr": subprocess.PIPE})  # type: ignore[no-untyped-call]  # pyspark's own is untyped
            threading.Thread(target=_pass_on, args=(gateway.proc.stderr,), name="spark stderr", daemon=True).start()
            return SparkContext(conf=conf, gateway=gateway)
        except (PySparkRuntimeError, OSError) as exc:
            raise NoSpark(
                f"Spark did not start ({exc}): it needs Java 17 or newer, found through JAVA_HOME or on PATH"
            ) from exc

    async def run_slot(self, spec: SlotSpec) -> int:
        """Run a slot as a Spark job until it ends. Returns how many records it appended. Raises SlotFailed and
        NoSpark."""
        context = await self.context()
        appended: int = await in_thread(job_group(spec), lambda: _run_job(context, spec))
        return appended

    async def cancel(self, spec: SlotSpec) -> None:
        """End a slot's job at once; its Python worker is killed within two seconds. Nothing is lost: a chain of appends
        continues from the target's log."""
        context = await self.context()
        await in_thread("cancel", lambda: _cancel_job(context, spec))

    async def address(self) -> str:
        """Where Spark's own pages are; empty when they are off."""
        context = await self.context()
        return context.uiWebUrl or ""


NOISE = (b"WARNING: Using incubator modules", b"Setting default log level", b"To adjust logging level")
"""What every start of Spark says and nobody can act on."""


def _pass_on(lines: Any) -> None:
    """What the JVM and the workers say on standard error, but for the noise."""
    for line in lines:
        if not line.startswith(NOISE):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


def _run_job(context: Any, spec: SlotSpec) -> int:
    from py4j.protocol import Py4JError, Py4JNetworkError

    group = job_group(spec)
    try:
        context.setJobGroup(group, f"{spec.settings.flow} slot {spec.slot}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", str(spec.settings.flow))
        task = context.parallelize([spec], 1).setName(group).mapPartitions(copy)
        return int(sum(task.collect()))
    except (Py4JNetworkError, OSError) as exc:
        raise NoSpark(_how_the_jvm_ended(context)) from exc
    except Py4JError as exc:
        raise SlotFailed(_first_cause(str(exc))) from exc


def _cancel_job(context: Any, spec: SlotSpec) -> None:
    from py4j.protocol import Py4JNetworkError

    try:
        context.cancelJobGroup(job_group(spec))
    except (Py4JNetworkError, OSError):
        return  # no JVM, no job: whoever runs the slot hears of it


def _how_the_jvm_ended(context: Any) -> str:
    """A sentence about a JVM that does not answer any more."""
    status: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        status = context._gateway.proc.wait(5.0)
    how = "does not answer" if status is None else f"ended (exit status {status})"
    return f"Spark's JVM {how}, and its slots with it; this process ends too, and its supervisor starts both again"


def _first_cause(text: str) -> str:
    """The line of a Java stack trace that says what Python raised, else its first line."""
    _, _, traceback = text.rpartition("Traceback (most recent call last):")
    raised = [line.strip() for line in traceback.splitlines() if line[:1].isalpha() and ": " in line]
    return (raised or [line.strip() for line in text.splitlines() if line.strip()] or [text])[0][:500]


def copy(specs: Iterator[SlotSpec]) -> Iterator[int]:
    """The task's body, in Spark's Python worker. One spec comes in, the number of appended records goes out at the
    end."""
    from lockstep_data_plane.worker import run_slot

    for spec in specs:
        yield run_slot(spec)


async def in_thread(name: str, call: Any) -> Any:
    """Run a blocking call in a daemon thread of its own: a slot's job blocks for months, a pool would run dry."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as exc:  # noqa: BLE001  # handed to whoever awaits, whatever it is
            error = exc
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
