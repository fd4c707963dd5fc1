"""The console for tables: on a terminal of its own width, or as lines for a file or another program."""

import re
import sys
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 4_000
"""The width of the output if it is no terminal: no cell is folded, and no word is broken."""
_TRAILING = re.compile(r"[ \t]+(?=\n|$)")


class _WithoutTrailingBlanks:
    """A stream whose lines end with their last word. rich fills each cell up to the width of its column."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_TRAILING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def console(*, stderr: bool = False) -> "Console":
    """Return standard output or standard error as a place for tables."""
    from lockstep_cli.rendering.whole_line_console import WholeLineConsole

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return WholeLineConsole(file=stream, highlight=False)
    return WholeLineConsole(file=cast(IO[str], _WithoutTrailingBlanks(stream)), width=WIDE, highlight=False)
