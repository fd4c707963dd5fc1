"""A file of settings on top of the configuration: an mm2.properties of what the configuration itself cannot say.

A Strimzi resource has no place for keys at the top of an mm2.properties, such as Spark's master. If the resource is
deployed unchanged, they are written beside it. This module is pure.
"""

from dataclasses import replace
from pathlib import Path

from lockstep_config.text.config_errors import Problem
from lockstep_config.text.config_providers import with_usual_providers
from lockstep_config.text.properties import PropertiesText

SETTINGS_VARIABLE = "LOCKSTEP_SETTINGS"
"""The variable with the settings file, for every process that a command starts."""
UNKNOWN_VARIABLE = "LOCKSTEP_UNKNOWN_KEYS"
"""The variable with `error` or `warn`, which goes before `lockstep.unknown.keys`.

It is for every process that a command starts as well.
"""


def with_settings(text: PropertiesText, settings: PropertiesText, file: Path) -> PropertiesText:
    """Return the lines of the configuration with those of the settings, which count if both have a key.

    References to the usual providers need no `config.providers`. Remarks stay with their file. A line of the
    configuration that no longer counts is noted.

    Args:
        text: The configuration.
        settings: The settings.
        file: The file of the settings.
    """
    entries = {entry.key: entry for entry in text.entries}
    over = {entry.key: replace(entry, file=file) for entry in settings.entries}
    notes = [
        Problem(file, entry.line, entry.key, f"counts, and not {entries[key].shown} in the configuration")
        for key, entry in over.items()
        if key in entries and entries[key].value.strip() != entry.value.strip()
    ]
    both = with_usual_providers({**entries, **over}, over)
    return replace(
        text,
        entries=tuple(both.values()),
        problems=(*text.problems, *settings.problems),
        notes=(*text.notes, *settings.notes, *notes),
    )
