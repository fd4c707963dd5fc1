"""Lockstep and MM2 as whole systems: which file each is given, how it is started, and how it is ended.

All get the same flow: A->B enabled, B->A not, so that either side carries only heartbeats besides, as MM2 does by
default.
"""

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

import psutil

from tests.support import mm2, processes
from tests.support.eventually import NeverHappened, NotYet, wait_until
from tests.support.tree_usage import Cpu, TreeAccount, sample

LEAVE_WITHIN_S = 30.0

T = TypeVar("T")


class SystemEnded(Exception):
    """The system ended by itself, or did not do in time what was waited for."""


@dataclass(frozen=True, slots=True)
class System:
    """``settings`` gets the source's codec and returns what the system's file has beyond the flow itself."""

    name: str
    command: Callable[[Path], Sequence[str]]
    settings: Callable[[str], Mapping[str, str]]


def _lockstep(file: Path) -> Sequence[str]:
    return [sys.executable, "-m", "lockstep_cli", "run", str(file)]


def _relay(file: Path) -> Sequence[str]:
    return [sys.executable, "-m", "tools.bench.relay", str(file)]


def _tuned(codec: str) -> Mapping[str, str]:
    return {
        "tasks.max": "4",
        "A.consumer.max.poll.records": "20000",
        "A.consumer.fetch.min.bytes": "1000000",
        "A.consumer.fetch.max.wait.ms": "100",
        "A.consumer.max.partition.fetch.bytes": "4000000",
        "B.producer.compression.type": codec,
        "B.producer.batch.size": "524288",
        "B.producer.linger.ms": "50",
        "B.producer.buffer.memory": "134217728",
        "B.producer.max.request.size": "4000000",
    }


SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        System("lockstep", _lockstep, lambda codec: {"tasks.max": "2"}),
        System("mm2_tuned", mm2.command, _tuned),
        System("mm2", mm2.command, lambda codec: {}),
    )
}

RELAY = System("relay", _relay, lambda codec: {})
"""Not a system to choose: the limit of latency (`tools/bench/relay.py`)."""


def with_processes(system: System) -> System:
    """Return Lockstep with each service in a process of its own."""
    return replace(system, command=lambda file: [*system.command(file), "--processes"])


class SystemRun:
    """One system while it runs: started on entry, ended on exit together with whatever it left behind."""

    def __init__(self, system: System, file: Path, log: Path, environment: Mapping[str, str] | None = None) -> None:
        """``environment``: what its processes are given instead of ours."""
        self.account = TreeAccount()
        self.log = log
        self._command = system.command(file)
        self._environment = environment

    def __enter__(self) -> Self:
        self.log.write_bytes(b"")
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        tree = [self._root, *self._children()]
        processes.end(self._process, within=LEAVE_WITHIN_S)
        _kill(tree)

    def kill_and_start(self) -> None:
        """Send SIGKILL to all of its processes, and start the same command once more. Its log goes on.

        What was used before is not in `use` any more.
        """
        tree = self._children()
        processes.kill(self._process)
        _kill(tree)
        self.account = TreeAccount()
        self._start()

    def _start(self) -> None:
        self.began = time.perf_counter()
        self._process = processes.spawn(self._command, output=self.log, environment=self._environment)
        self._root = psutil.Process(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def elapsed(self) -> float:
        """Return seconds since the process was started."""
        return time.perf_counter() - self.began

    def use(self) -> Cpu:
        """Return CPU seconds used so far by all processes, ended ones included."""
        return self.account.add(sample(self._root))

    def resident(self) -> Sequence[tuple[str, int]]:
        """Return what each living process holds in memory, by what it is."""
        held = []
        for process in [self._root, *self._children()]:
            with suppress(psutil.NoSuchProcess):
                held.append((called(process.cmdline()) or process.name(), process.memory_info().rss))
        return held

    def seconds(self) -> Mapping[int, tuple[str, float]]:
        """Return CPU seconds that each living process has used so far, by its id, with what it is."""
        used = {}
        for process in [self._root, *self._children()]:
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                times = process.cpu_times()
                used[process.pid] = called(process.cmdline()) or process.name(), times.user + times.system
        return used

    def slots(self) -> Sequence[int]:
        """Return resident bytes of each of Spark's Python workers, which the slots run in: what its Python daemon
        forked."""
        held = []
        for process in self._children():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                parent = process.parent()
                if parent is not None and called(parent.cmdline()).endswith("daemon"):
                    held.append(process.memory_info().rss)
        return held

    def wait(self, condition: Callable[[], T | NotYet], *, within: float, every: float = 0.1, otherwise: str) -> T:
        """Wait for a true answer, which is returned. Raises SystemEnded, with `otherwise` if none comes in time."""
        looked = self.elapsed()

        def checked() -> T | NotYet:
            nonlocal looked
            self.check()
            if self.elapsed() - looked > 1.0:  # what ends meanwhile has to have been seen
                self.use()
                looked = self.elapsed()
            return condition()

        try:
            return wait_until(checked, within=within, every=every)
        except NeverHappened as never:
            raise SystemEnded(f"{otherwise} within {within:.0f} s") from never

    def sleep(self, seconds: float) -> None:
        """Sleep while it runs. Raises SystemEnded."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(1.0, remaining))

    def check(self) -> None:
        """Raise SystemEnded if the process is gone."""
        status = self._process.poll()
        if status is not None:
            raise SystemEnded(f"ended by itself with status {status} after {self.elapsed():.0f} s")

    def _children(self) -> Sequence[psutil.Process]:
        try:
            return self._root.children(recursive=True)
        except psutil.NoSuchProcess:
            return []


def _kill(tree: Sequence[psutil.Process]) -> None:
    """Kill whichever of these still run."""
    running = [process for process in tree if process.is_running()]
    for process in running:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(running, timeout=LEAVE_WITHIN_S)


def called(command: Sequence[str]) -> str:
    """Return the module or class a command line runs, which says more than ``python`` or ``java``."""
    for index, word in enumerate(command[:-1]):
        if word == "-m":
            return command[index + 1]
    of_java = [word for word in command if re.fullmatch(r"(\w+\.){2,}[A-Z]\w+", word)]
    if of_java:
        return of_java[0].rpartition(".")[2]
    scripts = [Path(word).name for word in command[1:2] if not word.startswith("-")]
    return scripts[0] if scripts else ""
