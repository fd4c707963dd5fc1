"""Settings for a terminal: key, value and origin of each. Pure.

A key and an address are always in one piece, so that they can be copied. Where three columns do not fit, each setting
has lines of its own. A long value is then broken behind a comma or a blank.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep_config.report.effective import Setting

_INDENT = 4
_BETWEEN = 2
_PIECES = re.compile(r"[^, ]*[, ]*")


def settings_shown(file: Path, title: str, settings: Iterable[Setting], width: int) -> RenderableType:
    """Return the settings under a title, for `width` columns. What comes from `file` has its line alone."""
    rows = [(setting, _origin(file, setting)) for setting in settings]
    widest = [
        max((len(cell) for cell in cells), default=0) for cells in zip(*(_cells(*row) for row in rows), strict=True)
    ]
    if sum(widest) + _BETWEEN * 2 <= width:
        return _table(title, rows)
    return Group(Text(title, "bold"), *(line for row in rows for line in _block(*row, width)))


def _cells(setting: Setting, origin: str) -> tuple[str, str, str]:
    return setting.key, setting.value, origin


def _origin(file: Path, setting: Setting) -> str:
    if not setting.stated:
        return "default"
    line = f"line {setting.line}" if setting.line else ""
    where = line if setting.file == file else f"{setting.file}:{setting.line}" if line else str(setting.file)
    return ", ".join(filter(None, (where, setting.stated)))


def _table(title: str, rows: Sequence[tuple[Setting, str]]) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(3):
        table.add_column(no_wrap=True)
    for setting, origin in rows:
        style = "" if setting.stated else "dim"
        table.add_row(Text(setting.key), Text(setting.value), Text(origin, "dim"), style=style)
    return table


def _block(setting: Setting, origin: str, width: int) -> list[Text]:
    indent = " " * _INDENT
    values = [indent + piece for piece in broken(setting.value, width - _INDENT)]
    lines = [Text(setting.key), *map(Text, values), Text(indent + origin, "dim")]
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
        if not setting.stated:
            line.stylize("dim")
    return lines


def broken(value: str, width: int) -> list[str]:
    """Return the lines of a value, each of at most `width` letters, broken behind commas and blanks. What has neither
    stays in one piece, however long it is."""
    lines = [""]
    for piece in filter(None, _PIECES.findall(value)):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
