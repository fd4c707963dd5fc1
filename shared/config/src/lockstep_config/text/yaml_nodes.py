"""The reader of YAML text into plain nodes that know their line.

PyYAML composes its nodes and constructs nothing: duplicate keys show, and no class is ever instantiated. What anchors
and aliases make of a small text has a limit. Scalars are read as Kubernetes reads them (YAML 1.1: `yes` and `off` are
booleans too), except that only decimal numbers are numbers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from lockstep_config.text.config_errors import Problem

MOST_BYTES = 2 * 1024 * 1024
"""The most bytes of a text: more than Kubernetes stores of one resource (1.5 MiB)."""
MOST_NODES = 50_000
MOST_DEPTH = 60

_INTEGER = re.compile(r"[-+]?[0-9]+")
_FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {**yaml.SafeLoader.bool_values, "null": None}
_CONSTANTS = {form: _WORDS[word] for word in _WORDS for form in (word, word.upper(), word.capitalize())}
_TAG = "tag:yaml.org,2002:"
_TEXT, _PLAIN = _TAG + "str", ""
_TAGS = frozenset([_PLAIN, *(_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))])
_NOWHERE, _LOOP = "nowhere", "loop"
_WRONG_ALIASES = {
    _NOWHERE: "names the anchor {!r}, which is nowhere before it",
    _LOOP: "contains itself by the anchor {!r}",
}
"""Messages about an alias, by the tag of the node that stands for it."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar: the value that YAML makes of it, and the text that was written."""

    value: str | int | float | bool | None = field(repr=False)
    text: str = field(repr=False)
    line: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping, in the order of the file. `lines` are those of the keys."""

    items: "Mapping[str, Node]"
    lines: Mapping[str, int]
    line: int


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence."""

    items: "Sequence[Node]"
    line: int


Node = Leaf | MapNode | ListNode


def join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def read_yaml(data: bytes, file: Path) -> tuple[tuple[Node, ...], tuple[Problem, ...]]:
    """Return the documents of a YAML text, without empty ones, and its problems.

    A text that is no YAML, or is too large or too deep to be meant, has one problem and no document. Duplicate keys
    and unknown tags are problems beside the documents, each with its line. The first of duplicate keys counts.
    """
    if len(data) > MOST_BYTES:
        message = f"has {len(data)} bytes: a resource has at most {MOST_BYTES}"
        return (), (Problem(file, 0, "", message),)
    problems: list[Problem] = []
    try:
        documents = tuple(_documents(data, file, problems))
    except yaml.YAMLError as exc:
        return (), (*problems, _no_yaml(exc, data, file))
    except UnicodeDecodeError as exc:
        return (), (Problem(file, 0, "", f"is no YAML: it is not written in UTF-8 (byte {exc.start})"),)
    except _TooMuch as exc:
        return (), (Problem(file, exc.line, "", exc.message),)
    return documents, tuple(problems)


def _documents(data: bytes, file: Path, problems: list[Problem]) -> Iterator[Node]:
    for root in yaml.compose_all(data, Loader=_Loader):
        if root.value or not isinstance(root, yaml.ScalarNode):
            yield _Document(file, problems).read(root, "")


@dataclass
class _TooMuch(Exception):
    line: int
    message: str


class _Loader(Composer, yaml.CSafeLoader):
    """PyYAML's composer with limits, above the parser in C, whose own composer has none."""

    def __init__(self, stream: bytes) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)
        self._depth = self._count = 0
        self._sizes: dict[str | None, int] = {}
        """The number of values that each anchor stands for, aliases counted each time, once its node has ended."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        anchor, line, before = event.anchor, event.start_mark.line + 1, self._count
        if is_alias := isinstance(event, yaml.AliasEvent):
            self._count += self._sizes.get(anchor, 1)
        else:
            self._count += index is not None  # a key and the document do not count
            # Of two anchors with one name, the last before an alias counts.
            self.anchors.pop(anchor, None)
            self._sizes.pop(anchor, None)
        if self._count > MOST_NODES:
            raise _TooMuch(line, f"has more than {MOST_NODES} values, aliases counted: no resource has so many")
        if self._depth >= MOST_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise _TooMuch(line, f"is nested more than {MOST_DEPTH} levels deep, which no resource is")
        if is_alias and not (anchor in self.anchors and anchor in self._sizes):
            self.get_event()
            return yaml.ScalarNode(_LOOP if anchor in self.anchors else _NOWHERE, anchor, event.start_mark)
        if isinstance(event, yaml.ScalarEvent) and event.tag == "!":
            event.tag = _TEXT  # Kubernetes takes it as a text, PyYAML alone does not
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not is_alias:
            self._sizes[anchor] = self._count - before
        return node


# Each plain scalar gets this tag: `_value` decides what it is.
_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


class _Document:
    """A converter of PyYAML's nodes of one document. An alias is the very node of its anchor, and is read once."""

    def __init__(self, file: Path, problems: list[Problem]) -> None:
        self._file, self._problems = file, problems
        self._nodes_by_id: dict[int, Node] = {}

    def read(self, node: yaml.Node, place: str) -> Node:
        if id(node) not in self._nodes_by_id:
            self._nodes_by_id[id(node)] = self._node(node, place)
        return self._nodes_by_id[id(node)]

    def _node(self, node: yaml.Node, place: str) -> Node:
        line = node.start_mark.line + 1
        if node.tag in _WRONG_ALIASES:
            self._problem(line, place, _WRONG_ALIASES[node.tag].format(node.value))
            return Leaf(None, "", line)
        if node.tag not in _TAGS:
            self._problem(line, place, f"has the tag {node.tag}, which means nothing in a resource: remove it")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node.value, place, line)
        if isinstance(node, yaml.SequenceNode):
            return ListNode(tuple(self.read(item, f"{place}[{index}]") for index, item in enumerate(node.value)), line)
        return Leaf(node.value if node.tag == _TEXT else _value(node.value), node.value, line)

    def _mapping(self, pairs: list[tuple[yaml.Node, yaml.Node]], place: str, line: int) -> MapNode:
        items: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: list[MapNode] = []
        for named, valued in pairs:
            name, key_line = self.read(named, place), named.start_mark.line + 1
            if not isinstance(name, Leaf):
                self._problem(key_line, place, "has a key that is no text: write a name")
            key = name.text if isinstance(name, Leaf) else "?"
            key_place = join_path(place, key)
            value = self.read(valued, key_place)
            if key == "<<":
                items_to_merge = value.items if isinstance(value, ListNode) else (value,)
                maps = [item for item in items_to_merge if isinstance(item, MapNode)]
                merged += maps
                if len(maps) < len(items_to_merge):
                    self._problem(key_line, key_place, "merges something that is no mapping")
            elif key in items:
                self._problem(key_line, key_place, f"is set twice, first in line {lines[key]}: keep one")
            else:
                items[key], lines[key] = value, key_line
        # A mapping's own entries go before merged entries. Of several merged mappings the first counts.
        for mapping in merged:
            for key, value in mapping.items.items():
                items.setdefault(key, value)
                lines.setdefault(key, mapping.lines[key])
        return MapNode(items, lines, line)

    def _problem(self, line: int, place: str, message: str) -> None:
        self._problems.append(Problem(self._file, line, place, message))


def _value(text: str) -> str | int | float | bool | None:
    """Return the value of a scalar whose text is plain."""
    if text in _CONSTANTS or text in ("", "~"):
        return _CONSTANTS.get(text)
    # A longer text is no number of a resource, and Python takes no more than 4,300 digits.
    if len(text) >= 40:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


def _no_yaml(exc: yaml.YAMLError, data: bytes, file: Path) -> Problem:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    fault = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "it cannot be read"
    lines = data.split(b"\n")
    if mark is None:
        return Problem(file, 0, "", f"is no YAML: {fault}")
    before = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else b""
    hint = ": indent with blanks, not with tabs" if before.isspace() and b"\t" in before else ""
    return Problem(file, mark.line + 1, "", f"is no YAML: {fault}{hint}")
