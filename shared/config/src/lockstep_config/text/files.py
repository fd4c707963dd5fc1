"""Files that a configuration names or is: regular ones of a sensible size.

A device or a pipe would be read for ever.
"""

import errno
import os
import stat
from pathlib import Path

LARGEST = 16 * 1024 * 1024
"""The most bytes of a file. The largest configurations and certificate bundles have a hundredth of it."""


class Unreadable(OSError):
    """A file cannot be read. `strerror` says why, so that "FILE cannot be read: ..." is a sentence."""


def read_content(path: Path, largest: int = LARGEST) -> bytes:
    """Return all of a regular file of at most `largest` bytes.

    Raises:
        OSError: The file cannot be read; it has a `strerror`.
    """
    try:
        # To open a pipe waits for its writer, unless O_NONBLOCK is set.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except ValueError as exc:
        raise Unreadable(0, "its name holds a character that no name of a file may hold") from exc
    try:
        kind = os.fstat(opened)
        if stat.S_ISDIR(kind.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(kind.st_mode):
            raise Unreadable(0, "it is a device or a pipe, no file")
        with os.fdopen(opened, "rb", closefd=False) as stream:
            data = stream.read(largest + 1)
    finally:
        os.close(opened)
    if len(data) > largest:
        size = f"{largest // 1024 // 1024} MiB" if largest >= 1024 * 1024 else f"{largest // 1024} KiB"
        raise Unreadable(0, f"it is larger than {size}")
    return data
