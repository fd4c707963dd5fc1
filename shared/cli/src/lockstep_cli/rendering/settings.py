"""The table of settings: key, value and origin of each. Pure."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.text import Text

from lockstep_cli.rendering.table import Column, RowTable
from lockstep_config.report.effective import Setting


def settings_table(file: Path, title: str, settings: Iterable[Setting]) -> RowTable[Setting]:
    """Return the settings under a title. The origin of one that `file` states is the line alone."""
    columns: Sequence[Column[Setting]] = (
        Column("", lambda setting: Text(setting.key, _style(setting)), "name"),
        Column("", lambda setting: Text(setting.value, _style(setting))),
        Column("", lambda setting: Text(_origin(file, setting), "dim")),
    )
    return RowTable(columns, settings, title=title)


def _style(setting: Setting) -> str:
    return "" if setting.stated else "dim"


def _origin(file: Path, setting: Setting) -> str:
    if not setting.stated:
        return "default"
    line = f"line {setting.line}" if setting.line else ""
    place = line if setting.file == file else f"{setting.file}:{setting.line}" if line else str(setting.file)
    return ", ".join(filter(None, (place, setting.stated)))
