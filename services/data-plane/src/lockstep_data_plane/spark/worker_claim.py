"""The claim of a slot's Python worker: a file by which the driver finds that process, and ends it.

Spark ends the worker of a cancelled task through the daemon that has forked it. If the daemon is dead, a worker that is
frozen stays. It keeps a core of Spark, and appends later what it still holds. So a worker on the driver's machine locks
a file as long as it runs a slot. The lock ends with the process, however it ends.
"""

import fcntl
import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "worker-"


def claim_file(folder: Path, job_group: str) -> Path:
    """Return the file of the worker that runs a job, which is in the temporary folder of Spark's JVM."""
    return folder / f"{PREFIX}{hashlib.sha256(job_group.encode()).hexdigest()[:32]}"


@contextmanager
def claimed(file: Path | None) -> Iterator[None]:
    """Hold the claim of this process. Without a file nothing is held."""
    if file is None:
        yield
        return
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):  # a file system without locks: Spark's own way has to do
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, b"%d" % os.getpid())
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def end_worker(file: Path) -> int:
    """Kill the process that holds a claim, remove the claim, and return the process id; 0 if nobody holds it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0
    try:
        if not _is_held(descriptor):
            return 0
        process_id = int(os.read(descriptor, 20) or b"0")  # none: it has locked the file, and not yet written
        if process_id:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(process_id, signal.SIGKILL)
        return process_id
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def end_workers(folder: Path) -> None:
    """Kill the workers of a JVM that is no more. Those that are not frozen end by themselves."""
    for file in folder.glob(f"{PREFIX}*"):
        end_worker(file)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False
