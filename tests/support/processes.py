"""Child processes that cannot outlive the process that started them, however that one ends.

Each child leads a session of its own (a Ctrl-C in the terminal reaches only us, who then end it in order), is killed at
our exit, and is killed by the kernel when we are killed (`PR_SET_PDEATHSIG`, on Linux). The kernel's signal follows the
*thread* that forked, so all children are started by one thread that lives as long as we do.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.eventually import PATIENCE_S

# Becomes the wanted program by exec, so the pid stays. The check closes the gap in which we died before the prctl.
_TIED = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def spawn(
    command: Sequence[str | os.PathLike[str]],
    *,
    output: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` tied to our life; what it prints is appended to `output`, its standard input is empty."""
    tied = [sys.executable, "-S", "-E", "-c", _TIED, str(os.getpid()), *(os.fspath(part) for part in command)]

    def start() -> subprocess.Popen[bytes]:
        with output.open("ab") as log:
            return subprocess.Popen(
                tied,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                cwd=folder,
                start_new_session=True,
            )

    return _spawner().start(start)


def end(process: subprocess.Popen[bytes], *, within: float = PATIENCE_S) -> int:
    """Send SIGTERM, then SIGKILL if it has not ended `within` seconds. Return the exit status. Idempotent."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)  # a suspended process would not see the SIGTERM
        process.terminate()
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            kill(process)
    return process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL and wait until it is gone. An ended process is left alone."""
    if process.poll() is None:
        process.kill()
    process.wait()


def tail(output: Path, lines: int = 25) -> str:
    """Return the end of a process's output, for a message about what went wrong with it."""
    return "\n".join(output.read_text(errors="replace").splitlines()[-lines:]) if output.exists() else "(no output)"


@contextmanager
def starting(running: AbstractContextManager[Any]) -> Iterator[None]:
    """Within the `__enter__` of `running`: what fails leaves it as its `with` would."""
    try:
        yield
    except BaseException as error:
        running.__exit__(type(error), error, error.__traceback__)
        raise


def show(*logs: Path, lines: int = 15) -> None:
    """Print the ends of these logs: pytest shows them with the failure."""
    for log in logs:
        print(f"--- {log}\n{tail(log, lines)}")  # noqa: T201 - it is for whoever reads the failure


class LoggedProcess:
    """A command as a process, one at a time. What it prints is kept in `log` over restarts. A context manager that
    leaves no process behind."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._environment = environment
        self.log = log

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            show(self.log, lines=40)
        self.kill()

    def start(self) -> Self:
        """Start it, or start it again after it ended."""
        self._process = spawn(self._command, output=self.log, environment=self._environment)
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Send SIGKILL, and wait until it is gone."""
        kill(self._process)

    def wait(self, within: float) -> int:
        """Return its exit status once it has ended by itself."""
        return self._process.wait(within)

    def end_with(self, wanted: int, *, within: float) -> None:
        """Send SIGTERM. Raises AssertionError if it does not end with this status."""
        status = end(self._process, within=within)
        assert status == wanted, f"it ended with status {status}, not in order:\n{tail(self.log, 40)}"


class _Spawner:
    """The one thread that forks, and what it has started."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        self._started: list[subprocess.Popen[bytes]] = []
        atexit.register(self._kill_all)

    def start(self, run: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        process = self._thread.submit(run).result()
        self._started = [started for started in self._started if started.poll() is None] + [process]
        return process

    def _kill_all(self) -> None:
        for process in self._started:
            kill(process)


@cache
def _spawner() -> _Spawner:
    return _Spawner()
