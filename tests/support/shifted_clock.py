"""A time of day that a test moves, for the processes that are started with it and for those that they start.

The machine's own clock stays as it is. A small library (`shifted_clock.c`, built with the C compiler) answers in the C
library's place. Linux with glibc or musl, and a compiler as ``cc``.
"""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("shifted_clock.c")


def can_shift() -> bool:
    """Return whether this machine can shift a clock."""
    return sys.platform == "linux" and shutil.which("cc") is not None


class ShiftedClock:
    """Begins at the machine's time. ``folder`` is there as long as the processes run."""

    def __init__(self, folder: Path) -> None:
        """Raises CalledProcessError where it cannot be built."""
        self._shift = folder / "clock-shift"
        self._library = folder / "shifted-clock.so"
        self._shift.write_bytes(struct.pack("q", 0))
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o", self._library, SOURCE, "-ldl"], check=True
        )

    def environment(self) -> Mapping[str, str]:
        """Return what a process is started with to have this clock; this process's environment is not in it."""
        before = os.environ.get("LD_PRELOAD", "")
        return {"LD_PRELOAD": f"{self._library} {before}".strip(), "SHIFTED_CLOCK": str(self._shift)}

    def set(self, seconds: int) -> None:
        """Put the time of day so far ahead of the machine's; negative: behind."""
        with self._shift.open("r+b") as file:
            file.write(struct.pack("q", seconds))
