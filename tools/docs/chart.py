"""The table of values in the chart's README, from `values.yaml`."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tools.docs.pages import REPOSITORY, table

CHART = REPOSITORY / "deploy" / "helm" / "lockstep"
PAGE, VALUES = CHART / "README.md", CHART / "values.yaml"

KEY = re.compile(r"( *)([A-Za-z]\w*):")
LONGEST = 90


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a comment `# -- ...` describes."""

    path: str
    default: Any
    text: str


def described(text: str) -> Iterator[Value]:
    """Yield the values of a values.yaml that have a description, in its order."""
    whole = yaml.safe_load(text)
    for path, description in _keys(text):
        if description:
            yield Value(".".join(path), _at(whole, path), description)


def blocks() -> Mapping[str, str]:
    """Return a row for each value."""
    values = described(VALUES.read_text(encoding="utf-8"))
    rows = ((f"`{value.path}`", _shown(value.default), value.text) for value in values)
    return {"values": table("value | default | ", rows)}


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each key of the blocks of a text, with the comment before it, "" where that is no description."""
    above: list[tuple[int, str]] = []
    description: list[str] = []
    for line in text.splitlines():
        comment = line.strip().removeprefix("#").strip() if line.strip().startswith("#") else None
        if comment is not None:
            begins = comment.startswith("--")
            description = [comment.removeprefix("--").strip()] if begins else description and [*description, comment]
        elif key := KEY.match(line):
            above = [parent for parent in above if parent[0] < len(key[1])] + [(len(key[1]), key[2])]
            yield tuple(name for _, name in above), " ".join(description)
            description = []
        else:
            description = []


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        node = node[name]
    return node


def _shown(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= LONGEST else "see `values.yaml`"
