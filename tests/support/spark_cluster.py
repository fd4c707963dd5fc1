"""A standalone Spark cluster from the pyspark package alone: a master and workers as subprocesses, on 127.0.0.1.

A worker's executors end with it, as do an executor's Python processes.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyspark

from tests.support.eventually import wait_until
from tests.support.mirror import ports_of
from tests.support.ports import free_port
from tests.support.processes import end, kill, show, spawn, starting

HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
STARTED_WITHIN = 90.0  # seconds; usual is 4, but several test runs may share the cores
SECRET = "only-its-own-drivers"
"""What the cluster and its drivers know (`spark.authenticate.secret`)."""
GUARDED = f"-Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} -Dspark.network.crypto.enabled=true"
SMALL = {"SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {GUARDED}", "SPARK_DAEMON_MEMORY": "128m"}


class SparkWorker:
    """One worker of a cluster, with `cores` places for tasks."""

    def __init__(self, number: int, master: str, cores: int, folder: Path, environment: Mapping[str, str]) -> None:
        self.log = folder / f"worker-{number}.log"
        work = folder / f"work-{number}"
        arguments = ("--host", HOST, "--cores", str(cores), "--memory", "4g", "--webui-port", "0")
        self._command = _command("worker.Worker", *arguments, "--work-dir", str(work), master)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, or start it again after it ended."""
        self._process = spawn(self._command, output=self.log, environment=self._environment)
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Send SIGKILL to the worker. Its executors see it and end."""
        if self._process is not None:
            kill(self._process)

    def close(self) -> None:
        if self._process is not None:
            end(self._process)

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs in which its part of the tasks run."""
        if self._process is None or not self.running:
            return []
        return [child for child in psutil.Process(self._process.pid).children() if child.name() == "java"]

    def slots(self, *ports: int) -> list[psutil.Process]:
        """Return Python workers on it that are connected to a broker at one of the ports: those in which slots run."""
        workers: list[psutil.Process] = []
        for executor in self.executors():
            try:
                below = executor.children(recursive=True)
            except psutil.NoSuchProcess:
                continue
            workers += [process for process in below if set(ports) & set(ports_of(process).values())]
        return workers


class SparkCluster:
    """A master and `workers` workers of `cores` places each; a context manager. `environment` is the workers'."""

    def __init__(self, *, workers: int = 2, cores: int = 4, environment: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lockstep-spark-"))
        self.log = self.folder / "master.log"
        port = free_port()
        self.master = f"spark://{HOST}:{port}"
        self.secret_line = f"lockstep.spark.conf.spark.authenticate.secret = {SECRET}"
        given = {**os.environ, **SMALL, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": HOST}
        # What killed daemons and executors leave goes with the folder.
        given |= {"TMPDIR": str(self.folder), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.folder}"}
        self._environment = given
        self._command = _command("master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(free_port()))
        of_workers = {**given, **(environment or {})}
        self.workers = [SparkWorker(n, self.master, cores, self.folder, of_workers) for n in range(workers)]

    def __enter__(self) -> Self:
        self._process = spawn(self._command, output=self.log, environment=self._environment)
        with starting(self):
            for worker in self.workers:
                worker.start()
            wait_until(self._all_registered, within=STARTED_WITHIN, what="Spark's workers register with its master")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            show(self.log, *(worker.log for worker in self.workers), *self.folder.glob("work-*/*/*/stderr"))
        for worker in self.workers:
            worker.close()
        kill(self._process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill_master(self) -> None:
        """Send SIGKILL to the master. Workers and executors go on without it."""
        kill(self._process)

    def _all_registered(self) -> bool:
        return all("Successfully registered with master" in _text(worker.log) for worker in self.workers)

    def slots(self, *ports: int) -> list[psutil.Process]:
        """Return what `SparkWorker.slots` says of all workers."""
        return [slot for worker in self.workers for slot in worker.slots(*ports)]


def _command(daemon: str, *arguments: str) -> list[str]:
    return [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *arguments]


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
