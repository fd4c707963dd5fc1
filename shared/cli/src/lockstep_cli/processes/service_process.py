"""One service as a child process: started, read, asked for /ready, ended. It never outlives the run.

A child leads a session of its own, so that the terminal's Ctrl-C reaches only the run. So everything that it has
started itself (Spark's JVM and workers) can be found and ended with it.
"""

import asyncio
import ctypes
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor

_PR_SET_PDEATHSIG = 1
_LONGEST_LINE = 1_000_000


class Child:
    """A running service. `pid` is also the id of its session."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], output: asyncio.StreamReader, threads: Executor
    ) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._output = output
        self._threads = threads

    async def ended(self) -> int:
        """Wait for the process itself (not for what it has started) and return its exit code, negative for a signal."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._process.wait)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines of the service and of all it has started, until the last of them has closed its output."""
        rest = b""
        while chunk := await self._output.read(65536):
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete:
                yield line.decode(errors="replace")
            if len(rest) > _LONGEST_LINE:
                yield rest.decode(errors="replace")
                rest = b""
        if rest:
            yield rest.decode(errors="replace")

    def terminate(self) -> None:
        """Ask the service to drain and end. What it has started is its own to end."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> int:
        """End the service and everything left in its session at once, and return how many processes that were."""
        killed = 0
        for pid in _session_members(self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # ended between the look and the kill
            killed += 1
        return killed


async def start(name: str, arguments: Sequence[str], threads: Executor) -> Child:
    """Start a service with this Python.

    To be called on the main thread: the kernel ends the child when the thread that started it ends.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_end_with_parent(os.getpid()) if sys.platform == "linux" else None,
    )
    loop = asyncio.get_running_loop()
    output = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), process.stdout)
    return Child(name, process, output, threads)


async def answers_ready(address: str) -> bool:
    """Return whether `address` (`http://host:port`, or `https`) answers /ready with 200 within two seconds.

    It uses a socket: an HTTP library would be most of what the run imports.
    """
    scheme, _, place = address.rstrip("/").partition("://")
    host, _, port = place.rpartition(":")
    # Whose certificate it is does not matter: it is our own child on this machine, and gets no secret.
    tls = ssl._create_unverified_context() if scheme == "https" else None  # noqa: S323
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
            try:
                writer.write(f"GET /ready HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]


def _end_with_parent(parent: int) -> Callable[[], None]:
    """Return what a child does before it becomes the service: it asks for SIGTERM when the run dies."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask


def _session_members(session: int) -> list[int]:
    import psutil  # here, for a run that ends well never needs it

    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                members.append(pid)
        except (ProcessLookupError, psutil.NoSuchProcess, PermissionError):
            continue
    return members
