"""Lines that go on below their beginning, and the first lines of many. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console, ConsoleOptions
from rich.text import Text

T = TypeVar("T")

_WORDS = re.compile(r"\S+\s*|\s+")
_ITEMS = re.compile(r"[^,]*,?")


class IndentedText:
    """A text some blanks from the left. If it is wider than the terminal, it goes on below its beginning."""

    def __init__(self, text: Text, indent: int) -> None:
        self._text = text
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = [self._text] if options.no_wrap else wrap(self._text, options.max_width - self._indent)
        for line in lines:
            yield whole_line(Text.assemble(" " * self._indent, line))


def whole_line(line: Text) -> Text:
    """Let a line be printed as it is, also if it is wider than the terminal."""
    line.no_wrap, line.overflow = True, "ignore"
    return line


def first_lines(lines: Sequence[T], most: int | None, rest: Callable[[int], T]) -> Iterator[T]:
    """Yield the first lines. If there are more than `most`, the last line is what `rest` makes of their number."""
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield rest(len(lines) - most)


def wrap(text: Text, width: int) -> list[Text]:
    """Return the lines of a text, broken between words.

    A word that is longer than a line is broken behind its commas. Without commas it stays in one piece, however long it
    is.
    """
    pieces = [
        piece
        for word in _WORDS.findall(text.plain)
        for piece in ([word] if Text(word.rstrip()).cell_len <= width else filter(None, _ITEMS.findall(word)))
    ]
    lines, breaks, length = [""], list[int](), 0
    for piece in pieces:
        if lines[-1] and Text((lines[-1] + piece).rstrip()).cell_len > width:
            lines.append("")
            breaks.append(length)
        lines[-1] += piece
        length += len(piece)
    divided = list(text.divide(breaks))
    for line in divided:
        line.rstrip()
    return divided
