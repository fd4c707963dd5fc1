"""The reader of JSON text into the nodes of `yaml_nodes`, which know their line.

Several values may follow each other, as `cat` puts them together.
"""

import json
import re
from pathlib import Path

from lockstep_config.text.config_errors import Problem
from lockstep_config.text.yaml_nodes import MOST_BYTES, MOST_DEPTH, Leaf, ListNode, MapNode, Node, join_path

_BLANK = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(r"-?[0-9][0-9.eE+-]*|[A-Za-z]+")
_DECODER = json.JSONDecoder()
_SAYS = {"true": True, "false": False, "null": None}


def read_json(data: bytes, file: Path) -> tuple[tuple[Node, ...], tuple[Problem, ...]]:
    """Return the values of a text, and its problems, as `yaml_nodes.read_yaml` does."""
    if len(data) > MOST_BYTES:
        return (), (Problem(file, 0, "", f"has {len(data)} bytes: connectors have at most {MOST_BYTES}"),)
    try:
        reader = _Reader(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as exc:
        return (), (Problem(file, 0, "", f"is no JSON: it is not written in UTF-8 (byte {exc.start})"),)
    try:
        return tuple(reader.values()), tuple(reader.problems)
    except json.JSONDecodeError as exc:
        return (), (*reader.problems, Problem(file, exc.lineno, "", f"is no JSON: {exc.msg}"))


def _refuse(constant: str) -> None:
    """Refuse NaN and the infinities, which Python's reader takes."""
    raise ValueError(constant)


class _Reader:
    def __init__(self, text: str, file: Path) -> None:
        self._text, self._file, self._position = text, file, 0
        self._line, self._counted = 1, 0
        self.problems: list[Problem] = []

    def values(self) -> list[Node]:
        nodes = []
        while self._peek():
            nodes.append(self._value("", 0))
            if self._peek() == ",":
                raise self._error("one value follows another without a comma, or all in one list: [..., ...]")
        return nodes

    def _peek(self) -> str:
        blank = _BLANK.match(self._text, self._position)
        self._position = blank.end() if blank else self._position
        return self._text[self._position : self._position + 1]

    def _line_number(self) -> int:
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _value(self, path: str, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise self._error(f"it is nested more than {MOST_DEPTH} levels deep")
        begins, line = self._peek(), self._line_number()
        if begins == "{":
            return self._mapping(path, depth, line)
        if begins == "[":
            return ListNode(tuple(self._elements(path, depth)), line)
        if begins == '"':
            text = self._string()
            return Leaf(text, text, line)
        word = _WORD.match(self._text, self._position)
        if word is None:
            raise self._error(f"a value is missing before {begins!r}" if begins else "it ends too early")
        try:
            value = _SAYS[word[0]] if word[0] in _SAYS else json.loads(word[0], parse_constant=_refuse)
        except ValueError:
            raise self._error(
                f"{word[0]!r} is neither a number nor true, false or null: put a text in quotes"
            ) from None
        self._position = word.end()
        return Leaf(value, word[0], line)

    def _mapping(self, path: str, depth: int, line: int) -> MapNode:
        items: dict[str, Node] = {}
        lines: dict[str, int] = {}
        self._position += 1
        while self._has_element("}", bool(items)):
            if self._peek() != '"':
                raise self._error("a key is missing: write it in double quotes")
            key_line = self._line_number()
            key = self._string()
            if self._peek() != ":":
                raise self._error(f"a colon is missing behind {key!r}")
            self._position += 1
            key_path = join_path(path, key)
            value = self._value(key_path, depth + 1)
            if key in items:
                message = f"is set twice, first in line {lines[key]}: keep one"
                self.problems.append(Problem(self._file, key_line, key_path, message))
            else:
                items[key], lines[key] = value, key_line
        return MapNode(items, lines, line)

    def _elements(self, path: str, depth: int) -> list[Node]:
        elements: list[Node] = []
        self._position += 1
        while self._has_element("]", bool(elements)):
            elements.append(self._value(f"{path}[{len(elements)}]", depth + 1))
        return elements

    def _has_element(self, end: str, begun: bool) -> bool:
        """Return whether another element comes; the text before it is read."""
        following = self._peek()
        if following == end:
            self._position += 1
            return False
        if begun:
            if following != ",":
                raise self._error(f"a comma or {end!r} is missing" if following else "it ends too early")
            self._position += 1
            if self._peek() == end:
                raise self._error("a comma is before the end: remove it")
        return True

    def _string(self) -> str:
        text, self._position = _DECODER.raw_decode(self._text, self._position)
        return str(text)

    def _error(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self._text, self._position)
