"""The name under which a run's services join their groups: `<host>-<n>`.

Static members keep their place while their name stays the same, so the number is the lowest that no other run on this
host holds. A run that is started again has the name of the one before. It takes over its places without waiting for a
session to time out. Two runs beside each other never share a name.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_RUNS = 100
"""Runs beside each other on one host that get a number."""


@contextmanager
def held_instance_name(folder: Path | None = None) -> Iterator[str]:
    """A name no other run on this host has, for as long as the context lasts.

    A file lock holds it, which the operating system lets go of when this process ends, however it ends.
    """
    folder = folder or Path(tempfile.gettempdir())
    host = socket.gethostname().partition(".")[0] or "localhost"
    for number in range(1, MOST_RUNS + 1):
        descriptor = _lock(folder / f"lockstep-run-{number}.lock")
        if descriptor is not None:
            break
    else:  # no number to be had: a name that is not taken again is slower to start with, and still correct
        yield f"{host}-p{os.getpid()}"
        return
    try:
        yield f"{host}-{number}"
    finally:
        os.close(descriptor)


def _lock(file: Path) -> int | None:
    """A descriptor that holds the file's lock, or None when it belongs to another run or another user."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # not ours, or the folder cannot be written
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
