"""One thread of another process, held while the others go on: as one that hangs. Linux, where tracing is allowed."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ATTACH, DETACH = 16, 17
WALL = 0x40000000
WAITS = frozenset({"ep_poll", "do_epoll_wait"})
"""What the kernel calls it."""


def polling(pid: int) -> list[int]:
    """Return the threads of a process, other than its first, that wait for events as an asyncio loop does."""
    others = (task for task in sorted(Path(f"/proc/{pid}/task").iterdir()) if int(task.name) != pid)
    return [int(task.name) for task in others if _polls(task)]


def _polls(task: Path) -> bool:
    try:
        return (task / "wchan").read_text() in WAITS and not (task / "comm").read_text().startswith("rdk:")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended since it was listed


@contextmanager
def held(thread: int) -> Iterator[None]:
    """Hold a thread meanwhile. Raises OSError where it cannot be traced."""
    trace = ctypes.CDLL(None, use_errno=True).ptrace

    def ask(request: int) -> None:
        if trace(request, thread, None, None) < 0:
            raise OSError(ctypes.get_errno(), f"thread {thread} cannot be traced")

    ask(ATTACH)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ask(DETACH)
