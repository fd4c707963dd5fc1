"""`python -m tests.unit.golden.write` writes the golden files anew and prints what changed.

A difference is a change of a public format: what it breaks for whom has to be known, and stand in CHANGELOG.md. Nothing
calls it by itself. Names after the command choose the files: `... write events.txt`.
"""

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.unit.golden.texts import TEXTS

FOLDER = Path(__file__).parent


def kept(name: str) -> str:
    """What the golden file holds; nothing where there is none."""
    file = FOLDER / name
    return file.read_text(encoding="utf-8") if file.exists() else ""


def difference(name: str) -> str:
    """What the format is now, against its golden file, as a unified diff; empty where both are the same."""
    return "".join(_lines(name, kept(name), TEXTS[name]()))


def _lines(name: str, before: str, now: str) -> Iterator[str]:
    return difflib.unified_diff(before.splitlines(True), now.splitlines(True), f"golden/{name}", f"now/{name}", n=2)


def _write(names: list[str]) -> None:
    for name in names or TEXTS:
        changed = difference(name)
        sys.stdout.write(changed or f"{name}: as before\n")
        if changed:
            (FOLDER / name).write_text(TEXTS[name](), encoding="utf-8")


if __name__ == "__main__":
    _write(sys.argv[1:])
