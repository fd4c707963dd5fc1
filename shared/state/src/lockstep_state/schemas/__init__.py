"""JSON Schemas of the values in the control topics, and of the documents that commands print.

Programs can read both with them, without this package. A file is `NAME.vVERSION.json`, where NAME is a kind of row
(`topic`, `partition` ...), `event`, `command`, or a document such as `plan`. They say what this release writes. Fields
that are not listed are to be ignored; at a version that it does not know a reader stops. `make
docs` writes them from the dataclasses. A file of an earlier version stays.
"""

import json
from importlib import resources
from typing import Any

__all__ = ["names", "schema"]

_END = ".json"


def names() -> tuple[str, ...]:
    """Return the names of all schemas, as `NAME.vVERSION`."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_END) for name in files if name.endswith(_END)))


def schema(name: str, version: int = 1) -> dict[str, Any]:
    """Return the schema of a kind of row, of `event` or `command`, or of a document.

    Raises KeyError if there is none.
    """
    file = resources.files(__name__) / f"{name}.v{version}{_END}"
    if not file.is_file():
        raise KeyError(f"no schema of {name!r} in version {version}; there are {', '.join(names())}")
    parsed: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return parsed
