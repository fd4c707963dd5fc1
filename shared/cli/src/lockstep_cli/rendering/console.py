"""The console for tables and lines: of the width of a terminal, or whole lines for a file or another program."""

import re
import sys
from functools import partialmethod
from typing import IO, Any, cast

from rich.console import Console

WIDE = 4_000
"""The width of the output if it is no terminal: no cell is folded, and no word is broken."""
_TRAILING = re.compile(r"[ \t]+(?=\n|$)")


class WholeLineConsole(Console):
    """A console that cuts no line. A word that is longer goes beyond the line, and the terminal wraps it."""

    print = partialmethod(Console.print, crop=False, overflow="ignore")


class _WithoutTrailingBlanks:
    """A stream whose lines end with their last word. rich fills each cell up to the width of its column."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_TRAILING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def console(*, stderr: bool = False) -> WholeLineConsole:
    """Return the console of standard output, or of standard error."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return WholeLineConsole(file=stream, highlight=False)
    return WholeLineConsole(file=cast(IO[str], _WithoutTrailingBlanks(stream)), width=WIDE, highlight=False)
