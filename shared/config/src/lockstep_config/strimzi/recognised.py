"""Whether a file is a resource at all. Apart from its reading, which most never need and which brings PyYAML along."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["is_resource"]

_SUFFIXES = (".yaml", ".yml")
_API_VERSION = re.compile(rb"^(?:- )?[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)


def is_resource(data: bytes, file: Path) -> bool:
    """Whether a file is to be read as YAML: by its suffix, or because it names an apiVersion and a kind."""
    return file.suffix.lower() in _SUFFIXES or len(set(_API_VERSION.findall(data[:65_536]))) > 1
