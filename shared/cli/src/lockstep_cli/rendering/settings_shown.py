"""Settings for a terminal: key, value and origin of each. Pure."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.row_table import Column, RowTable
from lockstep_config.report.effective import Setting

_COLUMNS = (Column("", "name"), Column(""), Column(""))


def settings_shown(file: Path, title: str, settings: Iterable[Setting]) -> RenderableType:
    """Return the settings under a title. What comes from `file` has its line alone."""
    table = RowTable(_COLUMNS, title=title)
    for setting in settings:
        style = "" if setting.stated else "dim"
        table.add_row(Text(setting.key, style), Text(setting.value, style), Text(_origin(file, setting), "dim"))
    return table


def _origin(file: Path, setting: Setting) -> str:
    if not setting.stated:
        return "default"
    line = f"line {setting.line}" if setting.line else ""
    where = line if setting.file == file else f"{setting.file}:{setting.line}" if line else str(setting.file)
    return ", ".join(filter(None, (where, setting.stated)))
