"""The log levels of a configuration: its keys, and the log4j configuration that one of them names."""

from collections.abc import Mapping
from pathlib import Path

from lockstep_config.keys.log_levels import (
    LEVEL_KEY,
    LEVELS,
    LOGGING_FILE_KEY,
    LOGGING_VARIABLE,
    LogLevels,
    log4j_levels,
)
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.config_providers import secrets_folder
from lockstep_config.text.files import read_content
from lockstep_config.text.properties import Entry, read_properties


def log_settings(layers: Layers, environment: Mapping[str, str], findings: Diagnostics) -> LogLevels:
    """Return the levels of lines at the top, and for levels not set there those of the named file.

    An unreadable file, or one with meaningless content, is noted and changes nothing: it must not stop a flow.
    """
    stated = LogLevels(
        _level(layers.top.get(LEVEL_KEY)),
        {
            key.removeprefix(f"{LEVEL_KEY}."): _level(cell)
            for key, cell in layers.top.items()
            if key.startswith(f"{LEVEL_KEY}.")
        },
    )
    named = layers.top.get(LOGGING_FILE_KEY)
    return stated if named is None else stated.layered_over(_read_levels(named.entry, environment, findings))


def _read_levels(named: Entry, environment: Mapping[str, str], findings: Diagnostics) -> LogLevels:
    folder = environment.get(LOGGING_VARIABLE, "").strip() or secrets_folder(environment)
    file = Path(folder) / named.value.strip()
    try:
        text = read_properties(read_content(file), file)
    except OSError as exc:
        findings.note(named, f"names {file}, which cannot be read ({exc.strerror}): everything logs at info")
        return LogLevels()
    levels, unknown, wrong = log4j_levels({entry.key: entry.value for entry in text.entries})
    if unknown:
        findings.note(named, f"{file} has levels of loggers that do not exist here: {', '.join(unknown)}")
    if wrong:
        findings.note(named, f"{file} has no level in {', '.join(wrong)}: it takes {', '.join(LEVELS)}")
    return levels


def _level(cell: Cell | None) -> str:
    return "" if cell is None else LEVELS[cell.value]
