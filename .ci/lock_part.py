"""A part of `requirements.lock`: `python lock_part.py LOCK NAMES...` prints the packages that files of names have.

It needs the standard library alone: `docker build` runs it too (deploy/images/Dockerfile).
"""

import re
import sys
from collections.abc import Collection
from pathlib import Path


def entries(lock: str) -> dict[str, str]:
    """Return the lock's entries, each with its hashes and without a newline at its end, by name."""
    parts = (part for part in re.split(r"\n(?=\S)", lock) if "==" in part.partition("\n")[0])
    return {part.partition("==")[0]: part.rstrip("\n") for part in parts}


def part_of(lock: str, names: Collection[str]) -> str:
    """Return the lock of these packages alone. Raises KeyError if it lacks one of them."""
    locked = entries(lock)
    return "".join(f"{locked[name]}\n" for name in sorted(names))


def main(lock: str, *files: str) -> None:
    names = {name for file in files for name in Path(file).read_text().split()}
    sys.stdout.write(part_of(Path(lock).read_text(), names))


if __name__ == "__main__":
    main(*sys.argv[1:])
