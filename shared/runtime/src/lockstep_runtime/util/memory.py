"""Memory of a process: malloc of glibc, garbage collection of Python, certificates, and resident bytes.

Without glibc malloc stays as it is. Without /proc resident bytes are unknown.
"""

import ctypes
import gc
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
TRIM_BYTES = 128 * 1024

COLLECT_AFTER = (5_000, 10, 10)
"""New objects, and collections of the younger generations, that trigger a collection (`gc.set_threshold`)."""


def tune_malloc_for_service() -> None:
    """Use one heap for all threads, and return memory at its end to the kernel. Call it before threads start.

    A service has short bursts of work. With the defaults each of librdkafka's threads has a heap of its own, and
    topic-sync held 163 MiB instead of 141 with 10,000 topics.
    """
    _set({M_ARENA_MAX: 1, M_TRIM_THRESHOLD: TRIM_BYTES})


def tune_malloc_for_slot(large_bytes: int) -> None:
    """Take blocks of up to `large_bytes` from the heap, and keep as much of it when it is free.

    With the defaults each answer of a fetch came from the kernel, page by page, zeroed.
    """
    _set({M_MMAP_THRESHOLD: large_bytes, M_TRIM_THRESHOLD: large_bytes})


def trim_heap() -> None:
    """Give free pages anywhere in the heap back to the kernel. It takes some milliseconds.

    A process that reads much now and then keeps what it once needed otherwise: free blocks lie between used ones.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def freeze_gc(after: tuple[int, int, int] = COLLECT_AFTER) -> None:
    """Exclude all present objects from garbage collection, and collect no oftener than `after` (`gc.set_threshold`).

    Call it when everything is imported. What has been imported stays for ever. Its collection held records up for 40
    ms in a slot, and was a third of what topic-sync used when idle. Objects of a record or a request are freed
    without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*after)


@contextmanager
def without_default_certificates() -> Iterator[None]:
    """Import a library without loading the machine's certificates: TLS contexts made inside trust none of them.

    When aiohttp is imported it makes such a context for its client, which holds more than 1 MiB. Services only use
    its server. Its client would refuse every server with TLS in such a process. Not for more than one thread.
    """
    read = ssl.SSLContext.load_default_certs
    ssl.SSLContext.load_default_certs = _read_none  # type: ignore[method-assign, assignment]  # OpenSSL has no switch
    try:
        yield
    finally:
        ssl.SSLContext.load_default_certs = read  # type: ignore[method-assign]


def _read_none(_: ssl.SSLContext, __: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    return None


def _set(options: dict[int, int]) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        for option, value in options.items():
            library.mallopt(option, value)


def resident(proc: Path = PROC) -> dict[str, int]:
    """Return resident bytes: `service` is this process, `spark` the sum of the processes that it started, if any."""
    own = _resident_bytes(proc, os.getpid())
    if own is None:
        return {}
    started = [_resident_bytes(proc, pid) for pid in _started_by(proc, os.getpid())]
    return {"service": own, **({"spark": sum(filter(None, started))} if started else {})}


def _resident_bytes(proc: Path, pid: int) -> int | None:
    """Return the resident bytes of a process; None for one that has ended."""
    try:
        return int((proc / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return None


def _started_by(proc: Path, pid: int) -> Iterator[int]:
    """Yield the descendants of a process."""
    for thread in _names_in(proc / str(pid) / "task"):
        try:
            children = (proc / str(pid) / "task" / thread / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _started_by(proc, child)


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
