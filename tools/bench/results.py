"""What a part of the bench found: values of each system, as a table and under the keys of `latest.json`. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from rich.console import Console
from rich.table import Table as RichTable

Scalar = float | int | str | bool

OURS = "lockstep"
TWO_SLOTS = "lockstep_two_slots"
TUNED, SHIPPED = "mm2_tuned", "mm2"
LIMIT = "limit"
"""The lower of fetch only and produce only. It has ratios and a key, and no column."""

NAMES = {
    OURS: "Lockstep",
    TWO_SLOTS: "with two slots",
    TUNED: "MM2 tuned",
    SHIPPED: "MM2 as shipped",
    "fetch_only": "fetch only",
    "produce_only": "produce only",
    "both_at_once": "both at once",
    "floor": "no mirror",
}
FAILED, EMPTY = "FAILED", "-"
MEBIBYTE = 1 << 20


def percentile(ordered: Sequence[float], quantile: float) -> float:
    """Return the nearest-rank percentile of values in ascending order: an observed value, never an interpolation.

    Raises ValueError when there is no value or the quantile is not in (0, 1].
    """
    if not ordered:
        raise ValueError("no values to take a percentile of")
    if not 0 < quantile <= 1:
        raise ValueError(f"a quantile lies in (0, 1], not {quantile}")
    return ordered[ceil(quantile * len(ordered)) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A system that did not do what was asked: why, and the file that holds its log."""

    reason: str
    log: str = ""

    def __str__(self) -> str:
        return f"FAILED: {self.reason}" + (f" (log: {self.log})" if self.log else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Values of one system by key. The notes are printed below the table."""

    values: Mapping[str, float]
    notes: Sequence[str] = ()


Systems = Mapping[str, Readings | Failed]
"""What was read of each system, and of what is measured beside them, in the order of the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: the value under `key`, or with `to` its quotient by the value of that system.

    Attributes:
        words: What the row is called. Without words the row is in `latest.json` alone.
        times: What the value is multiplied by before it is shown.
        wanted: The figure to reach.
        to: The system that the value is divided by.
        ratio: The key of Lockstep's quotient in `latest.json`, before `_to_<system>`.
    """

    key: str
    words: str = ""
    digits: int = 0
    wanted: str = ""
    times: float = 1.0
    to: str = ""
    ratio: str = "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one part found.

    Attributes:
        name: The part, and what its keys in `latest.json` begin with.
        rows: The rows of the table. Those to a system that was not measured are left out.
        notes: Sentences below the table, with the facts in braces. Without them the facts are listed.
    """

    name: str
    title: str
    rows: Sequence[Row]
    systems: Systems
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def measured(self) -> Mapping[str, Readings]:
        """Return the systems that did not fail."""
        return {name: readings for name, readings in self.systems.items() if isinstance(readings, Readings)}

    def quotient(self, system: str, row: Row) -> float | None:
        """Return a system's value by that of `row.to`; None if one of them is missing or the divisor is zero."""
        measured = self.measured()
        dividend, divisor = (
            measured[name].values.get(row.key) if name in measured else None for name in (system, row.to)
        )
        return dividend / divisor if dividend is not None and divisor else None

    def failures(self) -> list[str]:
        """Return a line for each system that failed."""
        return [f"{NAMES.get(name, name)} {each}" for name, each in self.systems.items() if isinstance(each, Failed)]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the names of the columns, and the rows with their words and cells."""
        shown = [row for row in self.rows if row.words and (not row.to or row.to in self.systems)]
        columns = {name: each for name, each in self.systems.items() if name != LIMIT or isinstance(each, Failed)}
        wanted = any(row.wanted for row in shown)
        rows = [
            [
                row.words,
                *(self._cell(name, each, row, first=row is shown[0]) for name, each in columns.items()),
                *([row.wanted] if wanted else []),
            ]
            for row in shown
        ]
        return [NAMES.get(name, name) for name in columns] + ["wanted"] * wanted, rows

    def _cell(self, name: str, readings: Readings | Failed, row: Row, *, first: bool) -> str:
        if isinstance(readings, Failed):
            return FAILED if first else EMPTY
        if row.to:
            value = self.quotient(name, row)
            return EMPTY if value is None else f"{value:.2f}x"
        return f"{readings.values[row.key] * row.times:,.{row.digits}f}" if row.key in readings.values else EMPTY

    def texts(self) -> list[str]:
        """Return what is printed below the table: failures first."""
        facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.facts.items()) + "."
        notes = [note.format_map(dict(self.facts)) for note in self.notes] or [facts]
        own = (f"{NAMES.get(name, name)}: {note}" for name, each in self.measured().items() for note in each.notes)
        return [*notes, *own]

    def keys(self) -> dict[str, Scalar]:
        """Return every figure under a flat key such as `records_per_s.mm2_tuned`. What was not measured has no key."""
        keys: dict[str, Scalar] = dict(self.facts)
        for name, readings in self.systems.items():
            if isinstance(readings, Failed):
                keys[f"failed.{name}"] = str(readings)
            else:
                keys |= {f"{key}.{name}": value for key, value in readings.values.items()}
        for row in self.rows:
            if row.to and (value := self.quotient(OURS, row)) is not None:
                keys[f"{row.ratio}_to_{row.to}"] = value
        return keys


def flat(results: Iterable[Result], environment: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the keys of all parts, each behind the name of its part, and of the environment."""
    keys: dict[str, Scalar] = {f"environment.{name}": value for name, value in environment.items()}
    for result in results:
        keys |= {f"{result.name}.{key}": value for key, value in result.keys().items()}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in keys.items()}


def show(results: Iterable[Result], console: Console) -> None:
    """Print the tables, each with its failures in red and its notes below."""
    for result in results:
        columns, rows = result.table()
        drawn = RichTable(title=result.title, title_justify="left")
        drawn.add_column("")
        for name in columns:
            drawn.add_column(name, justify="right")
        for row in rows:
            drawn.add_row(*(f"[red]{cell}[/red]" if cell == FAILED else cell for cell in row))
        console.print(drawn)
        for lines, style in ((result.failures(), "red"), (result.texts(), "dim")):
            for line in lines:
                console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        console.print()


def markdown(results: Iterable[Result], environment: Mapping[str, Scalar]) -> str:
    """Return a whole page: what was measured on, then one table a part."""
    facts = "".join(f"- {name.replace('_', ' ')}: {value}\n" for name, value in environment.items())
    return f"# Bench\n\n{facts}\n" + "\n".join(map(_section, results))


def _section(result: Result) -> str:
    columns, rows = result.table()
    lines = [f"## {result.title}", "", f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    for line in (*result.failures(), *result.texts()):
        lines += ["", line]
    return "\n".join(lines) + "\n"
