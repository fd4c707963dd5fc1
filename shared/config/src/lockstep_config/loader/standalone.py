"""The preparation of a configuration for a check without its secrets, files, environment and Python classes.

This module is pure.
"""

import re
from dataclasses import replace
from pathlib import Path

from lockstep_config.keys.log_levels import LOGGING_FILE_KEY
from lockstep_config.keys.python_classes import JAVA_KEYS, PYTHON_KEYS
from lockstep_config.keys.transform_keys import STATEMENT_FILE
from lockstep_config.text.config_errors import Problem
from lockstep_config.text.properties import Entry, PropertiesText
from lockstep_config.text.sources import FILE_KEY

_REFERENCE = re.compile(r"\$\{[^{}:]*:[^}]*\}")


def without_external_files(text: PropertiesText, path: Path) -> tuple[PropertiesText, frozenset[str]]:
    """Leave out the lines that cannot be judged without other files.

    Returns:
        The text with a note on each of these lines, and their keys.
    """
    named = {key for entry in text.entries if (key := _last(entry.key, PYTHON_KEYS))}
    left_out = [entry for entry in text.entries if _is_outside(entry, named)]
    reason = "is not checked: it names what is elsewhere"
    notes = dict.fromkeys(Problem(entry.file or path, entry.line, entry.shown, reason) for entry in left_out)
    kept = tuple(entry for entry in text.entries if entry not in left_out)
    return replace(text, entries=kept, notes=(*text.notes, *notes)), frozenset(entry.key for entry in left_out)


def _is_outside(entry: Entry, python: set[str]) -> bool:
    java = _last(entry.key, JAVA_KEYS)
    return bool(
        _REFERENCE.search(entry.value)
        or FILE_KEY.search(entry.key)
        or STATEMENT_FILE.search(entry.key)
        or _last(entry.key, PYTHON_KEYS)
        or (java and JAVA_KEYS[java] in python)
        or entry.key == LOGGING_FILE_KEY
    )


def _last(key: str, among: dict[str, str]) -> str:
    """Return the name of a table that a key ends with, or an empty text.

    The key may be a flow's or at the top. A Java class's key is the end of Lockstep's key.
    """
    names = [name for name in among if key == name or key.endswith(f".{name}")]
    own = [name for name in names if among is PYTHON_KEYS or not key.endswith(f"lockstep.{name}")]
    return own[0] if own else ""
