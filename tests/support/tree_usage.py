"""CPU seconds and resident memory of a whole process tree, ended processes included.

`TreeAccount` is the pure account; `sample` reads one observation of a tree from the operating system.
`CompilerAccount` is what the JIT compilers of a Java process have used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

PROC = Path("/proc")
COMPILER_THREAD = "CompilerThre"
"""In the name of each compiler thread of HotSpot, such as `C1 CompilerThread0`. Linux keeps 15 characters of it."""

ProcessKey = tuple[int, float]
"""A process for ever: its id and when it was created, for ids are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process as seen once: ``own`` is its user and system seconds, ``reaped`` those of ended children it has
    waited for.
    """

    parent: int
    own: float
    reaped: float
    rss: int
    own_system: float = 0.0
    reaped_system: float = 0.0

    def in_kernel(self) -> "Process":
        """Return the same process with its system seconds only."""
        return replace(self, own=self.own_system, reaped=self.reaped_system)


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds in user and in system mode together, and those in system mode."""

    total: float
    system: float

    def since(self, before: "Cpu") -> "Cpu":
        return Cpu(self.total - before.total, self.system - before.system)


class TreeAccount:
    """What a process tree has used, and how much of it in the kernel: see `Ledger`."""

    def __init__(self) -> None:
        self._all, self._kernel = Ledger(), Ledger()

    def add(self, now: Mapping[ProcessKey, Process]) -> Cpu:
        """Take one sample into account; returns what was used since the tree began."""
        kernel = self._kernel.add({key: process.in_kernel() for key, process in now.items()})
        return Cpu(self._all.add(now), kernel)

    @property
    def peak_rss(self) -> int:
        """Return the largest sum of resident bytes that a sample had."""
        return self._all.peak_rss


@dataclass(slots=True)
class Ledger:
    """Adds up what the processes of a tree have used, from one sample after the other.

    A process that ended is found in its parent's ``reaped`` seconds once the parent has waited for it. Where the parent
    has ended too, or has not taken it over, what the process was last seen with is kept instead: so the total never
    falls, and lacks at most what a process used between its last sample and its end. Samples must be given in the order
    in which they were taken.
    """

    last: Mapping[ProcessKey, Process] = field(default_factory=dict)
    kept: float = 0.0
    peak_rss: int = 0
    total: float = 0.0

    def add(self, now: Mapping[ProcessKey, Process]) -> float:
        """Take one sample into account.

        Returns the CPU seconds used since the tree began, those of ended processes included.
        """
        credit = self._newly_reaped(now)
        for key, gone in self.last.items():
            if key in now:
                continue
            used = gone.own + gone.reaped
            heir = self._living_ancestor(gone, now)
            taken_over = min(used, credit.get(heir, 0.0))
            if taken_over:
                credit[heir] -= taken_over
            self.kept += used - taken_over
        self.last = dict(now)
        self.peak_rss = max(self.peak_rss, sum(process.rss for process in now.values()))
        self.total = max(self.total, self.kept + sum(process.own + process.reaped for process in now.values()))
        return self.total

    def _living_ancestor(self, gone: Process, now: Mapping[ProcessKey, Process]) -> int:
        """Return the nearest ancestor that still lives: a whole branch may end between two samples, each waited for by
        the one above."""
        ended = {key[0]: process for key, process in self.last.items() if key not in now}
        heir = gone.parent
        while heir in ended:
            heir = ended[heir].parent
        return heir

    def _newly_reaped(self, now: Mapping[ProcessKey, Process]) -> dict[int, float]:
        return {
            key[0]: process.reaped - self.last[key].reaped
            for key, process in now.items()
            if key in self.last and process.reaped > self.last[key].reaped
        }


def sample(root: psutil.Process) -> dict[ProcessKey, Process]:
    """Return every living process of the tree under ``root``; one that ends while it is being read is left out."""
    try:
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    seen: dict[ProcessKey, Process] = {}
    for process in tree:
        try:
            with process.oneshot():
                times = process.cpu_times()
                seen[process.pid, process.create_time()] = Process(
                    parent=process.ppid(),
                    own=times.user + times.system,
                    reaped=times.children_user + times.children_system,
                    rss=process.memory_info().rss,
                    own_system=times.system,
                    reaped_system=times.children_system,
                )
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return seen


def used_by(pids: Iterable[int]) -> float:
    """Return CPU seconds that these living processes have used so far, without what they started. Raises
    NoSuchProcess."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(time.user + time.system for time in times)


class CompilerAccount:
    """CPU seconds that the JIT compilers of these Java processes have used. HotSpot ends and starts such threads as it
    needs them; what an ended one was last seen with stays in the sum, so the sum never falls."""

    def __init__(self, pids: Iterable[int], proc: Path = PROC) -> None:
        self._pids, self._proc = tuple(pids), proc
        self._seen: dict[str, float] = {}

    def read(self) -> float:
        """Return what they have used so far, in seconds. 0 where there is no /proc."""
        for pid in self._pids:
            for thread in self._proc.glob(f"{pid}/task/*"):
                try:
                    if COMPILER_THREAD in (thread / "comm").read_text():
                        self._seen[thread.name] = int((thread / "schedstat").read_text().split()[0]) / 1e9
                except OSError:
                    continue  # it has ended meanwhile
        return sum(self._seen.values())
