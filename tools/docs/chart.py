"""The table of values in the chart's README: `python -m tools.docs.chart` writes it anew from `values.yaml`.

It stands between the lines that name it; what stands around it is written by hand."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "lockstep"
PAGE, VALUES = CHART / "README.md", CHART / "values.yaml"

BLOCK = re.compile(r"(<!-- values -->\n).*?(?=<!-- end -->)", re.DOTALL)
KEY = re.compile(r"( *)([A-Za-z]\w*):")
LONGEST = 90


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a comment `# -- ...` describes."""

    path: str
    default: Any
    text: str


def described(text: str) -> Iterator[Value]:
    """The values of a values.yaml that have a description, in its order."""
    whole = yaml.safe_load(text)
    for path, said in _keys(text):
        if said:
            yield Value(".".join(path), _at(whole, path), said)


def undescribed(text: str) -> list[str]:
    """The values that neither have a description nor are a part of one that has."""
    having = {value.path for value in described(text)}
    return [
        path
        for path in _leaves(yaml.safe_load(text), "")
        if not any(path == other or path.startswith(f"{other}.") for other in having)
    ]


def filled(page: str, values: str) -> str:
    """The page with its table as the values are now."""
    rows = "\n".join(f"| `{value.path}` | {_shown(value.default)} | {value.text} |" for value in described(values))
    return BLOCK.sub(lambda block: f"{block[1]}\n| value | default | |\n|---|---|---|\n{rows}\n\n", page)


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each key of the blocks of a text, with the comment before it, "" where that is no description."""
    above: list[tuple[int, str]] = []
    said: list[str] = []
    for line in text.splitlines():
        comment = line.strip().removeprefix("#").strip() if line.strip().startswith("#") else None
        if comment is not None:
            said = (
                [comment.removeprefix("--").strip()] if comment.startswith("--") else [*said, comment] if said else []
            )
        elif found := KEY.match(line):
            above = [one for one in above if one[0] < len(found[1])] + [(len(found[1]), found[2])]
            yield tuple(name for _, name in above), " ".join(said)
            said = []
        else:
            said = []


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        node = node[name]
    return node


def _leaves(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path


def _shown(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= LONGEST else "see `values.yaml`"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), VALUES.read_text(encoding="utf-8")), encoding="utf-8")
