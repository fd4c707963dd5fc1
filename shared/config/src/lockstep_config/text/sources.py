"""The sources of a configuration: its lines with all references resolved, and the files that decide them.

A certificate is named by a file, a password by a reference to one: both change without the configuration's own file.
Files with access tokens are not among them: each request for a token reads them (`token_source`). This module is
pure.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep_config.text.properties import Entry

FILE_KEY = re.compile(r"(?:^|\.)ssl\.[a-z]+\.location$")
"""Keys whose value is a file."""
_JAAS = re.compile(r"(?:^|\.)sasl\.jaas\.config$")
_IN_JAAS = re.compile(r"""\bssl\.[a-z]+\.location\s*=\s*["']?([^"';\s]+)""")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files on disk that a configuration came from, and its lines with references resolved."""

    files: frozenset[Path] = frozenset()
    entries: tuple[Entry, ...] = ()


def config_sources(path: Path, entries: Iterable[Entry]) -> Sources:
    """Return the sources of lines whose references have been replaced; `path` is the configuration's own file."""
    lines = tuple(entries)
    files = {path, *(entry.file for entry in lines if entry.file is not None)}
    for entry in lines:
        files.update(entry.read)
    return Sources(frozenset(files) | named_files({entry.key: entry.value for entry in lines}), lines)


def named_files(properties: Mapping[str, str]) -> frozenset[Path]:
    """Return the certificates, keys and stores that connection properties name, with any prefix of their keys."""
    files: set[str] = set()
    for key, value in properties.items():
        if FILE_KEY.search(key):
            files.add(value.strip())
        elif _JAAS.search(key):
            files.update(_IN_JAAS.findall(value))
    return frozenset(Path(file) for file in files if file)
