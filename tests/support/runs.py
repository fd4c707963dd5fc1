"""A process and all that it starts, heard through what it prints and ended whole: a supervisor and its services."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from lockstep_ops.services import SERVICES, module_name
from tests.support.eventually import PATIENCE_S, NeverHappened, wait_until
from tests.support.processes import end


def is_alive(process: psutil.Process) -> bool:
    """Return whether it runs: one that has ended and was not waited for does not, and it may end while it is looked
    at."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Run:
    """A command in a process of its own, for a test to end in any way; `output` has what it prints on both streams."""

    def __init__(self, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None) -> None:
        self.output = output
        with output.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
        self._seen: set[psutil.Process] = set()

    def text(self) -> str:
        return self.output.read_text()

    def family(self) -> set[psutil.Process]:
        """Return all processes that it has started, as far as they were seen: each look adds to them. It must run."""
        self._seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self._seen

    def left(self) -> list[psutil.Process]:
        """Return those of the family that run."""
        return [process for process in self._seen if is_alive(process)]

    def until(self, condition: Callable[[], bool], *, within: float = PATIENCE_S, what: str = "") -> None:
        """Wait for a condition. Raises NeverHappened with all that was printed."""
        try:
            wait_until(condition, within=within, every=0.02, what=what)
        except NeverHappened as late:
            raise NeverHappened(f"{late}\n{self.text()}") from late

    def until_said(self, words: str, *, within: float = PATIENCE_S) -> None:
        self.until(lambda: words in self.text(), within=within, what=words)

    def kill(self) -> None:
        """End it and all that it started, whatever has ended already."""
        if self.process.poll() is None:
            self.family()
            self.process.kill()
        self.process.wait()
        for process in self.left():
            with suppress(psutil.NoSuchProcess):  # it ended since it was looked at
                process.kill()


class LockstepRun(Run):
    """`lockstep run` of a file, with its JSON log beside the file."""

    def __init__(self, file: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "lockstep_cli", "run", str(file), "--log-format", "json", *arguments]
        super().__init__(command, file.with_suffix(".log"))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]

    def until_said_by(self, service: str, words: str, *, within: float = 60.0) -> None:
        """Wait for a line of the service. Each look adds to the family. Raises RuntimeError once the run has ended."""

        def said() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended before {service} said {words!r}:\n{self.text()}")
            self.family()
            return any(line["service"] == service and words in line["message"] for line in self.lines())

        wait_until(said, within=within, every=0.1, what=f"{service}: {words}")

    def service_pid(self, service: str) -> int:
        """Return the id of the process that the service runs in, maybe together with others."""
        return service_pids(psutil.Process(self.process.pid))[service]


def service_pids(run: psutil.Process) -> dict[str, int]:
    """Return the process of each service of a `lockstep run`."""
    pids: dict[str, int] = {}
    for child in run.children():
        command = " ".join(child.cmdline())
        pids |= {name: child.pid for name in SERVICES if re.search(rf"\b{module_name(name)} ", command)}
    return pids


@contextmanager
def lockstep_runs(file: Path) -> Iterator[None]:
    """Run `lockstep run` of a file as long as the context lasts. It has to end cleanly."""
    run = LockstepRun(file)
    try:
        yield
        assert end(run.process) == 0, run.text()
    finally:
        run.kill()
