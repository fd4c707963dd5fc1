"""The lines that a resource becomes, while it is being read, and the access to its nodes.

This module is pure.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lockstep_config.text.config_errors import Problem
from lockstep_config.text.properties import Entry, PropertiesText
from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode, join_path

FORBIDDEN_EXCEPT = frozenset(
    {"ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols"}
)
"""Keys with one of the prefixes that Strimzi keeps for itself, which it lets through."""
SET_BY_STRIMZI = "is ignored, as Strimzi does: it sets what begins so itself, from the other fields"


def forbidden(key: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether Strimzi ignores a key of a `config`, because it sets the key itself."""
    return key.lower().startswith(prefixes) and key not in FORBIDDEN_EXCEPT


def _value_text(leaf: Leaf) -> str:
    """Return a value as in a properties file."""
    if isinstance(leaf.value, bool):
        return str(leaf.value).lower()
    return str(leaf.value) if isinstance(leaf.value, int) else leaf.text


class Place(NamedTuple):
    """The place where something is written, or is missing."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """A setting of a `config`, with its place."""

    key: str
    value: str = field(repr=False)
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping of the resource with its place. A value of a wrong form counts as absent: it is reported."""

    node: MapNode
    path: str
    line: int
    config_at: str | None = None
    """The path of its settings, if it is not `config`."""

    @classmethod
    def root(cls, node: MapNode) -> "Part":
        return cls(node, "", node.line)

    def path_of(self, name: str) -> str:
        return join_path(self.path, name)

    def place(self, name: str) -> Place:
        """Return the place of a field; if there is none, the line is that of the mapping."""
        return Place(self.path_of(name), self.node.lines.get(name, self.line))

    def has(self, name: str) -> bool:
        """Return whether the field is there, be it empty."""
        return name in self.node.items

    def leaf(self, name: str) -> Leaf | None:
        node = self.node.items.get(name)
        return node if isinstance(node, Leaf) and node.value is not None else None

    def text(self, *names: str) -> str:
        """Return the text of a field, which is the last of the names that lead to it; empty if nothing is set."""
        *outer, name = names
        part: Part | None = self
        for outer_name in outer:
            part = part.part(outer_name) if part else None
        leaf = part.leaf(name) if part else None
        return _value_text(leaf) if leaf else ""

    def flag(self, name: str) -> bool | None:
        return {"true": True, "false": False}.get(self.text(name).lower())

    def number(self, name: str) -> int | None:
        leaf = self.leaf(name)
        return leaf.value if leaf and type(leaf.value) is int else None

    def part(self, name: str) -> "Part | None":
        node = self.node.items.get(name)
        return Part(node, *self.place(name)) if isinstance(node, MapNode) else None

    def parts(self, name: str) -> "list[Part]":
        """Return the mappings of a list."""
        node = self.node.items.get(name)
        items = node.items if isinstance(node, ListNode) else ()
        return [
            Part(item, f"{self.path_of(name)}[{index}]", item.line)
            for index, item in enumerate(items)
            if isinstance(item, MapNode)
        ]

    def in_config(self, key: str) -> str:
        """Return the path of a setting."""
        return join_path(self.path_of("config") if self.config_at is None else self.config_at, key)

    def settings(self, name: str = "config") -> list[ConfigSetting]:
        """Return the settings of a mapping of settings."""
        inner = self.part(name)
        if inner is None:
            return []
        path = self.in_config if name == "config" else inner.path_of
        leaves = ((key, leaf) for key in inner.node.items if (leaf := inner.leaf(key)) is not None)
        return [ConfigSetting(key, _value_text(leaf), path(key), inner.place(key).line) for key, leaf in leaves]


Placed = Part | ConfigSetting | Place
"""A value with a path in the resource, and a line of the file."""


@dataclass(slots=True)
class Lines:
    """The lines and findings so far. The first line of a key counts; a later one is not added."""

    file: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    unused: list[Problem] = field(default_factory=list)
    lacking: list[Problem] = field(default_factory=list)

    def add_line(self, key: str, value: str, place: Placed) -> None:
        self.entries.setdefault(key, Entry(key, value, place.line, written=place.path))

    def problem(self, place: Placed, message: str) -> None:
        self.problems.append(Problem(self.file, place.line, place.path, message))

    def note(self, place: Placed, message: str) -> None:
        self.notes.append(Problem(self.file, place.line, place.path, message))

    def without_effect(self, place: Placed, reason: str, verdict: str = "has no effect") -> None:
        self.unused.append(Problem(self.file, place.line, place.path, f"{verdict}: {reason}"))

    def lacks(self, key: str, message: str) -> None:
        """Report a missing line that the settings beside the file may still bring."""
        self.lacking.append(Problem(self.file, 0, key, message))

    def text(self) -> PropertiesText:
        return PropertiesText(
            tuple(self.entries.values()),
            tuple(self.problems),
            tuple(self.notes),
            tuple(self.unused),
            tuple(self.lacking),
        )
