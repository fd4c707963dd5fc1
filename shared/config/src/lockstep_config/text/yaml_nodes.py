"""YAML text read into plain nodes that know their line.

Built from the parser's events, not by a YAML library's constructor: so duplicate keys show, nothing is ever
instantiated, and the size of what anchors and aliases make of a small text has a limit. Scalars are read as Kubernetes
reads them (YAML 1.1: `yes` and `off` are booleans too), except that only decimal numbers are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lockstep_config.text.config_errors import Problem

__all__ = ["Leaf", "ListNode", "MapNode", "Node", "read_yaml"]

MOST_BYTES = 2 * 1024 * 1024
"""More than Kubernetes stores of one resource (1.5 MiB)."""
MOST_NODES = 50_000
MOST_DEPTH = 60

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar: what YAML makes of it, and the text that was written."""

    value: str | int | float | bool | None = field(repr=False)
    text: str = field(repr=False)
    line: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping, in the order of the file. `lines` are those on which the keys stand."""

    items: Mapping[str, Node]
    lines: Mapping[str, int]
    line: int


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence."""

    items: Sequence[Node]
    line: int


Node = Leaf | MapNode | ListNode


def read_yaml(data: bytes, file: Path) -> tuple[tuple[Node, ...], tuple[Problem, ...]]:
    """The documents of a YAML text (an empty one is left out), and what is wrong with it.

    A text that is no YAML, or is too large or too deep to be meant, has one problem and no document; duplicate keys and
    unknown tags are problems beside the documents, each with its line, and the first of duplicate keys counts.
    """
    if len(data) > MOST_BYTES:
        message = f"has {len(data)} bytes: a resource has at most {MOST_BYTES}"
        return (), (Problem(file, 0, "", message),)
    composer = _Composer(file)
    try:
        documents = tuple(composer.documents(data))
    except yaml.YAMLError as exc:
        return (), (*composer.problems, _no_yaml(exc, data, file))
    except UnicodeDecodeError as exc:
        return (), (Problem(file, 0, "", f"is no YAML: it is not written in UTF-8 (byte {exc.start})"),)
    except _TooMuch as exc:
        return (), (Problem(file, exc.line, "", str(exc)),)
    return documents, tuple(composer.problems)


class _TooMuch(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come yet."""

    line: int
    is_map: bool
    path: str
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    pairs: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    merged: list[MapNode] = field(default_factory=list)
    key: str | None = None
    key_line: int = 0

    def place(self) -> str:
        """Where the next node will stand."""
        if not self.is_map:
            return f"{self.path}[{len(self.items)}]"
        if self.key is None:
            return self.path
        return f"{self.path}.{self.key}" if self.path else self.key


class _Composer:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.problems: list[Problem] = []
        self._nodes = 0
        self._anchors: dict[str, Node | None] = {}
        """None: its node has not ended yet."""
        self._sizes: dict[int, int] = {}
        """Nodes that a node stands for, aliases counted each time, by identity."""

    def documents(self, data: bytes) -> Iterator[Node]:
        stack: list[_Open] = []
        for event in yaml.parse(data, Loader=_LOADER):
            line = event.start_mark.line + 1 if event.start_mark else 0
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors, self._sizes = {}, {}
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(stack, event, line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                node = self._close(stack)
                if not stack:
                    yield node
            elif isinstance(event, yaml.ScalarEvent):
                self._scalar(stack, event, line)
                if not stack and event.value:
                    yield Leaf(event.value, event.value, line)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(stack, event.anchor or "", line)

    def _open(self, stack: list[_Open], event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        if len(stack) >= MOST_DEPTH:
            raise _TooMuch(line, f"is nested more than {MOST_DEPTH} levels deep, which no resource is")
        place = stack[-1].place() if stack else ""
        self._check_tag(event.tag, line, place)
        if event.anchor:
            self._anchors[event.anchor] = None
        if stack and stack[-1].is_map and stack[-1].key is None:
            self._problem(line, place, "has a key that is no text: write a name")
            stack[-1].key, stack[-1].key_line = "?", line
        stack.append(_Open(line, isinstance(event, yaml.MappingStartEvent), place, event.anchor))

    def _close(self, stack: list[_Open]) -> Node:
        opened = stack.pop()
        node = self._closed(opened)
        if opened.anchor:
            self._anchors[opened.anchor] = node
        if stack:
            self._put(stack[-1], node)
        return node

    def _scalar(self, stack: list[_Open], event: yaml.ScalarEvent, line: int) -> None:
        if not stack:
            return
        top = stack[-1]
        self._check_tag(event.tag, line, top.place())
        if top.is_map and top.key is None:
            top.key, top.key_line = event.value, line
            return
        node = _leaf(event, line)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._put(top, node)

    def _alias(self, stack: list[_Open], anchor: str, line: int) -> None:
        if not stack:
            return
        place = stack[-1].place()
        if anchor not in self._anchors:
            self._problem(line, place, f"names the anchor {anchor!r}, which is nowhere before it")
            node: Node = Leaf(None, "", line)
        else:
            known = self._anchors[anchor]
            if known is None:
                self._problem(line, place, f"contains itself by the anchor {anchor!r}")
            node = known if known is not None else Leaf(None, "", line)
        if stack[-1].is_map and stack[-1].key is None:
            text = node.text if isinstance(node, Leaf) else "?"
            stack[-1].key, stack[-1].key_line = text, line
            return
        self._put(stack[-1], node)

    def _put(self, into: _Open, node: Node) -> None:
        self._count(node, into.line)
        if not into.is_map:
            into.items.append(node)
            return
        key = into.key or ""
        if key == "<<":
            self._merge(into, node)
        elif key in into.pairs:
            self._problem(into.key_line, into.place(), f"is set twice, first in line {into.lines[key]}: keep one")
        else:
            into.pairs[key], into.lines[key] = node, into.key_line
        into.key = None

    def _merge(self, into: _Open, node: Node) -> None:
        for one in node.items if isinstance(node, ListNode) else (node,):
            if isinstance(one, MapNode):
                into.merged.append(one)
            else:
                self._problem(into.key_line, into.place(), "merges something that is no mapping")

    def _closed(self, opened: _Open) -> Node:
        if not opened.is_map:
            node: Node = ListNode(tuple(opened.items), opened.line)
            parts = opened.items
        else:
            # What stands there itself beats what is merged in; of several merged ones, the first.
            for other in opened.merged:
                for key, value in other.items.items():
                    if key not in opened.pairs:
                        opened.pairs[key], opened.lines[key] = value, other.lines[key]
            node = MapNode(opened.pairs, opened.lines, opened.line)
            parts = list(opened.pairs.values())
        self._sizes[id(node)] = 1 + sum(self._sizes.get(id(part), 1) for part in parts)
        return node

    def _count(self, node: Node, line: int) -> None:
        self._nodes += 1
        if max(self._nodes, self._sizes.get(id(node), 1)) > MOST_NODES:
            raise _TooMuch(line, f"has more than {MOST_NODES} values, aliases counted: no resource has so many")

    def _check_tag(self, tag: str | None, line: int, place: str) -> None:
        if tag and tag != "!" and tag not in _TAGS:
            self._problem(line, place, f"has the tag {tag}, which means nothing in a resource: remove it")

    def _problem(self, line: int, place: str, message: str) -> None:
        self.problems.append(Problem(self._file, line, place, message))


def _leaf(event: yaml.ScalarEvent, line: int) -> Leaf:
    text = event.value
    plain = not event.style and event.tag is None
    if not plain and event.tag in (None, "!", _TAG + "str"):
        return Leaf(text, text, line)
    if text in ("", "~", "null", "Null", "NULL"):
        return Leaf(None, text, line)
    if text.lower() in ("true", "yes", "on") and text in (text.lower(), text.upper(), text.capitalize()):
        return Leaf(True, text, line)
    if text.lower() in ("false", "no", "off") and text in (text.lower(), text.upper(), text.capitalize()):
        return Leaf(False, text, line)
    # Longer ones are no numbers of anything here, and Python takes no more than 4,300 digits.
    if len(text) < 40 and _INTEGER.fullmatch(text):
        return Leaf(int(text), text, line)
    if len(text) < 40 and _FRACTION.fullmatch(text):
        return Leaf(float(text), text, line)
    return Leaf(text, text, line)


def _no_yaml(exc: yaml.YAMLError, data: bytes, file: Path) -> Problem:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    what = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "it cannot be read"
    lines = data.split(b"\n")
    if mark is None:
        return Problem(file, 0, "", f"is no YAML: {what}")
    before = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else b""
    hint = ": indent with blanks, not with tabs" if before.isspace() and b"\t" in before else ""
    return Problem(file, mark.line + 1, "", f"is no YAML: {what}{hint}")
