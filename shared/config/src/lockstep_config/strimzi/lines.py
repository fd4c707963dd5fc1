"""The lines that a resource becomes, while it is being read, and short ways through its nodes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lockstep_config.strimzi.fields import join_path
from lockstep_config.text.config_errors import Problem
from lockstep_config.text.properties import Entry, PropertiesText
from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode

__all__ = ["Lines", "Part", "forbidden", "text_of"]

FORBIDDEN_EXCEPT = frozenset(
    {"ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols"}
)
"""What Strimzi lets through of the prefixes that it keeps for itself."""


def forbidden(key: str, prefixes: tuple[str, ...]) -> bool:
    """Whether Strimzi ignores a key of a `config`, as one that it sets itself."""
    return key.lower().startswith(prefixes) and key not in FORBIDDEN_EXCEPT


def text_of(leaf: Leaf) -> str:
    """A value as it would stand in a properties file."""
    if isinstance(leaf.value, bool):
        return str(leaf.value).lower()
    return str(leaf.value) if isinstance(leaf.value, int) else leaf.text


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping of the resource with its place. What has the wrong form counts as absent: its mistake is told."""

    node: MapNode
    path: str
    line: int
    config_at: str | None = None
    """Where its settings stand, if not under `config`."""

    def at(self, name: str) -> str:
        return join_path(self.path, name)

    def line_of(self, name: str) -> int:
        return self.node.lines.get(name, self.line)

    def has(self, name: str) -> bool:
        """Whether something stands there, be it empty."""
        return name in self.node.items

    def leaf(self, name: str) -> Leaf | None:
        found = self.node.items.get(name)
        return found if isinstance(found, Leaf) and found.value is not None else None

    def text(self, name: str) -> str:
        """ "" where nothing is set."""
        found = self.leaf(name)
        return text_of(found) if found else ""

    def flag(self, name: str) -> bool | None:
        found = self.leaf(name)
        return {"true": True, "false": False}.get(text_of(found).lower()) if found else None

    def number(self, name: str) -> int | None:
        found = self.leaf(name)
        return found.value if found and type(found.value) is int else None

    def part(self, name: str) -> Part | None:
        found = self.node.items.get(name)
        return Part(found, self.at(name), self.line_of(name)) if isinstance(found, MapNode) else None

    def parts(self, name: str) -> list[Part]:
        """The mappings of a list."""
        found = self.node.items.get(name)
        items = found.items if isinstance(found, ListNode) else ()
        return [
            Part(item, f"{self.at(name)}[{index}]", item.line)
            for index, item in enumerate(items)
            if isinstance(item, MapNode)
        ]

    def in_config(self, key: str) -> str:
        """The path of a setting."""
        return join_path(self.at("config") if self.config_at is None else self.config_at, key)

    def settings(self, name: str = "config") -> list[tuple[str, Leaf, str, int]]:
        """Of a mapping of settings: each key with its value, its path and its line."""
        inner = self.part(name)
        if inner is None:
            return []
        path = self.in_config if name == "config" else inner.at
        return [(key, leaf, path(key), inner.line_of(key)) for key, leaf in _leaves(inner.node)]


def _leaves(node: MapNode) -> list[tuple[str, Leaf]]:
    found: list[tuple[str, Leaf]] = []
    for key, value in node.items.items():
        if isinstance(value, Leaf) and value.value is not None:
            found.append((key, value))
    return found


@dataclass(slots=True)
class Lines:
    """What was found so far. A line added again under its key is not: the first one counts."""

    file: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    unused: list[Problem] = field(default_factory=list)
    lacking: list[Problem] = field(default_factory=list)

    def add(self, key: str, value: str, written: str, line: int) -> None:
        self.entries.setdefault(key, Entry(key, value, line, written=written))

    def problem(self, path: str, line: int, message: str) -> None:
        self.problems.append(Problem(self.file, line, path, message))

    def note(self, path: str, line: int, message: str) -> None:
        self.notes.append(Problem(self.file, line, path, message))

    def without_effect(self, path: str, line: int, why: str) -> None:
        self.unused.append(Problem(self.file, line, path, f"has no effect: {why}"))

    def lacks(self, key: str, message: str) -> None:
        """A line that the settings beside the file may still bring."""
        self.lacking.append(Problem(self.file, 0, key, message))

    def text(self) -> PropertiesText:
        return PropertiesText(
            tuple(self.entries.values()),
            tuple(self.problems),
            tuple(self.notes),
            tuple(self.unused),
            tuple(self.lacking),
        )
