"""The test whether a file is a resource or a connector at all.

It is apart from the reading of resources, which most files do not need and which loads PyYAML.
"""

import re
from pathlib import Path

from lockstep_config.text.properties import Entry

YAML_SUFFIXES = (".yaml", ".yml")
_API_VERSION = re.compile(rb"^(?:- )?[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[{\[\]])")


def is_resource(data: bytes, file: Path) -> bool:
    """Return whether a file is to be read as YAML or JSON.

    It is if its suffix says so, if it begins as JSON does, or if it names an apiVersion and a kind.
    """
    return (
        file.suffix.lower() in (*YAML_SUFFIXES, ".json")
        or begins_as_json(data)
        or len(set(_API_VERSION.findall(data[:65_536]))) > 1
    )


def begins_as_json(data: bytes) -> bool:
    return _JSON.match(data) is not None


def is_connector(entries: tuple[Entry, ...]) -> bool:
    """Return whether the lines of a properties file are one connector's, as `connect-standalone` takes them."""
    keys = {entry.key for entry in entries}
    return "connector.class" in keys and "clusters" not in keys
