"""The one renderer of tables: names and words are whole, however long they are and however narrow the terminal. Pure.

If the columns do not fit, each row has the line of its names alone, and the other columns below it. Texts that do not
fit below have lines of their own. A word that is longer than a line goes beyond it, and the terminal wraps it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

from rich.console import Console, ConsoleOptions
from rich.text import Text

from lockstep_cli.rendering.lines import whole_line, wrap
from lockstep_ops.formatting import visible

R = TypeVar("R")

FAINT = "dim"
INDENT = 4
"""The blanks before the columns that are below a name."""
GAP = "  "
"""The blanks between two columns."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A column of a table of rows R.

    A `name` is on one line always, and a `number` is aligned to the right. A `text` is broken between its words.
    """

    title: str
    cell: Callable[[R], str | Text]
    """The cell of a row. Unseen characters of a `str` are escaped, and its markup is shown as it is."""
    kind: Literal["name", "number", "text"] = "text"


class RowTable(Generic[R]):
    """A table: a line of cells for each row, under the titles of their columns. Without any title it has no heading."""

    def __init__(self, columns: Sequence[Column[R]], rows: Iterable[R], *, title: str = "") -> None:
        self._columns = columns
        self._title = title
        self._rows = [[_as_text(column.cell(row)) for column in columns] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield from map(whole_line, self._lines(options.max_width))

    def as_markdown(self) -> Iterator[str]:
        """Yield the lines of the table in a Markdown page."""
        yield f"| {' | '.join(column.title for column in self._columns)} |"
        yield f"|{'---|' * len(self._columns)}"
        for row in self._rows:
            yield f"| {' | '.join(cell.plain.replace('|', chr(92) + '|') for cell in row)} |"

    def _lines(self, width: int) -> Iterator[Text]:
        """Yield the lines of the table for this number of columns of a terminal."""
        if self._title:
            yield from Text(self._title, "bold").split("\n", allow_blank=True)
        headings = [Text(column.title, FAINT) for column in self._columns]
        rows = [headings, *self._rows] if any(column.title for column in self._columns) else self._rows
        indexes = range(len(self._columns))
        if (widths := self._widths(indexes, rows, width)) is not None:
            for row in rows:
                yield from self._row_lines(indexes, row, widths)
            return
        names = [index for index in indexes if self._columns[index].kind == "name"]
        beside, below = [index for index in indexes if index not in names], list[int]()
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
            lines += [line for index in below for line in wrap(row[index], width - INDENT)]
            yield from (Text.assemble(" " * INDENT, line) for line in lines if line)

    def _widths(self, columns: Sequence[int], rows: Sequence[Sequence[Text]], width: int) -> dict[int, int] | None:
        """Return how wide each column is, or None if they do not fit with their names and words whole."""
        longest = {index: _longest(row[index] for row in rows) for index in columns}
        widths = {
            index: longest[index]
            if self._columns[index].kind != "text"
            else _longest(word for row in rows for word in _words(row[index]))
            for index in columns
        }
        spare = width - sum(widths.values()) - len(GAP) * (len(columns) - 1)
        if spare < 0:
            return None
        for index in sorted(columns, key=lambda column: longest[column] - widths[column]):
            more = min(spare, longest[index] - widths[index])
            widths[index] += more
            spare -= more
        return widths

    def _row_lines(self, columns: Sequence[int], row: Sequence[Text], widths: dict[int, int]) -> Iterator[Text]:
        cells = [
            wrap(row[index], widths[index]) if self._columns[index].kind == "text" else [row[index]]
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


def facts(*rows: tuple[str, str | Text], title: str = "") -> RowTable[Any]:
    """Return a table of names and what is to be said of each."""
    return RowTable(_FACTS, rows, title=title)


_FACTS: Sequence[Column[Any]] = (Column("", itemgetter(0), "name"), Column("", itemgetter(1)))


def _as_text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(visible(cell))


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
