"""Tables whose names and words are whole, however long they are and however narrow the terminal. Pure.

If the columns do not fit, each row has the line of its names alone, and the other columns below it. Texts that do not
fit below have lines of their own. A word that is longer than a line goes beyond it, and the terminal wraps it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions
from rich.text import Text

FAINT = "dim"
INDENT = 4
"""The blanks before the columns that are below a name."""
GAP = "  "
"""The blanks between two columns."""
_WORDS = re.compile(r"\S+\s*|\s+")
_ITEMS = re.compile(r"[^,]*,?")


class Column(NamedTuple):
    """A column of a table.

    A `name` is on one line always, and a `number` is aligned to the right. A `text` is broken between its words.
    """

    title: str
    kind: Literal["name", "number", "text"] = "text"


class RowTable:
    """A table: rows of cells under the titles of their columns. Without any title it has no heading."""

    def __init__(self, columns: Sequence[Column], *, title: str = "") -> None:
        self._columns = columns
        self._title = title
        self._rows: list[Sequence[Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row with a cell for each column. Markup in a `str` is shown as it is."""
        self._rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in self.lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def lines(self, width: int) -> Iterator[Text]:
        """Yield the lines of the table for this number of columns of a terminal."""
        if self._title:
            yield from Text(self._title, "bold").split("\n", allow_blank=True)
        headings = [Text(column.title, FAINT) for column in self._columns]
        rows = [headings, *self._rows] if any(column.title for column in self._columns) else self._rows
        every = range(len(self._columns))
        if (widths := self._widths(every, rows, width)) is not None:
            for row in rows:
                yield from self._row_lines(every, row, widths)
            return
        names = [index for index in every if self._columns[index].kind == "name"]
        beside, below = [index for index in every if index not in names], list[int]()
        while (widths := self._widths(beside, rows, width - INDENT)) is None:
            texts = [index for index in beside if self._columns[index].kind == "text"]
            if not texts:
                widths = {index: _longest(row[index] for row in rows) for index in beside}
                break
            beside.remove(texts[-1])
            below.insert(0, texts[-1])
        for row in rows:
            yield from _name_lines([row[index] for index in names], width)
            lines = [*self._row_lines(beside, row, widths)]
            lines += [line for index in below for line in wrapped(row[index], width - INDENT)]
            yield from (Text.assemble(" " * INDENT, line) for line in lines if line)

    def _widths(self, columns: Sequence[int], rows: Sequence[Sequence[Text]], width: int) -> dict[int, int] | None:
        """Return how wide each column is, or None if they do not fit with their names and words whole."""
        wanted = {index: _longest(row[index] for row in rows) for index in columns}
        widths = {
            index: wanted[index]
            if self._columns[index].kind != "text"
            else _longest(word for row in rows for word in _words(row[index]))
            for index in columns
        }
        left = width - sum(widths.values()) - len(GAP) * (len(columns) - 1)
        if left < 0:
            return None
        for index in sorted(columns, key=lambda one: wanted[one] - widths[one]):
            more = min(left, wanted[index] - widths[index])
            widths[index] += more
            left -= more
        return widths

    def _row_lines(self, columns: Sequence[int], row: Sequence[Text], widths: dict[int, int]) -> Iterator[Text]:
        cells = [
            wrapped(row[index], widths[index]) if self._columns[index].kind == "text" else [row[index]]
            for index in columns
        ]
        for number in range(max(map(len, cells), default=0)):
            line = Text()
            for index, cell in zip(columns, cells, strict=True):
                part = cell[number] if number < len(cell) else Text()
                blanks = " " * max(0, widths[index] - part.cell_len)
                is_number = self._columns[index].kind == "number"
                line = Text.assemble(line, blanks if is_number else "", part, "" if is_number else blanks, GAP)
            line.rstrip()
            yield line


class IndentedText:
    """A text that goes on below its beginning, some blanks from the left."""

    def __init__(self, text: Text, indent: int) -> None:
        self._text = text
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in wrapped(self._text, options.max_width - self._indent):
            whole = Text.assemble(" " * self._indent, line)
            whole.no_wrap, whole.overflow = True, "ignore"
            yield whole


def wrapped(text: Text, width: int) -> list[Text]:
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


def _name_lines(names: Sequence[Text], width: int) -> Iterator[Text]:
    """Yield the names of a row: on one line if they fit, else below each other."""
    line = Text(GAP).join(names)
    if line.cell_len <= width:
        yield line
        return
    for number, name in enumerate(names):
        yield Text.assemble(GAP if number else "", name)


def _longest(texts: Iterator[Text]) -> int:
    return max((text.cell_len for text in texts), default=0)


def _words(text: Text) -> Iterator[Text]:
    return (Text(word) for word in text.plain.split())
