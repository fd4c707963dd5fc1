"""Match whole names against a pattern in Python's syntax (`java_regex.translate`) in bounded time.

Python's `re`, as Java's, tries one way after another. For `(a+)+b` there are exponentially many, and a topic named
`aaaa...` would stop a service. RE2 needs time in proportion to the name. What RE2 does not have (look-around,
back-references, atomic and possessive parts) runs on `re`, or is refused where it could take exponential time.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import re2

# Python has no public parser of its own syntax; what is used of this one has been the same since 3.11.
parser: Any = importlib.import_module("re._parser")

MOST_CHOICES = 3
"""Choices in a row that `re` may take. With more, a name of 249 letters has too many ways to match."""

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_CATEGORIES = {"DIGIT": "0-9", "NOT_DIGIT": r"\D", "WORD": r"\w", "NOT_WORD": r"\W", "SPACE": r"\t-\r "}
_NOT_SPACE = r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{10ffff}"
_POSITIONS = {"AT_BEGINNING": r"\A", "AT_BEGINNING_STRING": r"\A", "AT_END_STRING": r"\z", "AT_BOUNDARY": r"\b"}
_NOT_IN_RE2 = {
    **dict.fromkeys(("ASSERT", "ASSERT_NOT"), "it looks around"),
    **dict.fromkeys(("POSSESSIVE_REPEAT", "ATOMIC_GROUP"), "it has a possessive or atomic part"),
    **dict.fromkeys(("GROUPREF", "GROUPREF_EXISTS"), "it refers back to what a group has matched"),
}


class UnboundedPattern(ValueError):
    """The pattern could take exponential time on some names; the text says why it does not run on RE2."""


class Matcher(Protocol):
    """Matches whole names. Can be pickled."""

    def fullmatch(self, name: str) -> object:
        """Return something true where all of `name` matches."""
        ...


class _Re2Matcher:
    """A pattern that runs on RE2."""

    def __init__(self, pattern: str, compiled: Any) -> None:
        self._pattern = pattern
        self.fullmatch = compiled.fullmatch

    def __reduce__(self) -> tuple[Any, ...]:
        return build_matcher, (self._pattern,)


class _NoCounterpart(ValueError):
    """RE2 has no counterpart for a part of the pattern; the text says for which."""


def build_matcher(pattern: str) -> Matcher:
    """Compile a pattern in Python's syntax.

    Raises:
        UnboundedPattern: If RE2 cannot run it and `re` could take exponential time.
        re.error: If it is no pattern.
    """
    tree = parser.parse(pattern)
    try:
        return _Re2Matcher(pattern, re2.compile(_to_re2(tree, ignore_case=False), _OPTIONS))
    except _NoCounterpart as exc:
        reason = str(exc)
    except (re2.error, UnicodeEncodeError):
        reason = "it repeats too much"
    if _choices(tree) > MOST_CHOICES:
        raise UnboundedPattern(reason)
    return re.compile(pattern)


def _choices(nodes: Iterable[Any]) -> int:
    """Return how many choices follow each other at most; more than MOST_CHOICES where one is inside a repetition."""
    count = 0
    for operator, argument in nodes:
        match str(operator):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                inside = _choices(inner)
                if int(most) > 1 and inside:
                    return MOST_CHOICES + 1
                count += inside + (int(most) > int(least) and str(operator) != "POSSESSIVE_REPEAT")
            case "BRANCH":
                count += max(map(_choices, argument[1])) + 1
            case "SUBPATTERN":
                count += _choices(argument[3])
            case "ATOMIC_GROUP":
                count = max(count, _choices(argument))
            case "ASSERT" | "ASSERT_NOT":
                count = max(count, _choices(argument[1]))
    return count


def _to_re2(nodes: Iterable[Any], *, ignore_case: bool) -> str:
    return "".join(_node_to_re2(str(operator), argument, ignore_case) for operator, argument in nodes)


def _node_to_re2(operator: str, argument: Any, ignore_case: bool) -> str:
    match operator:
        case "LITERAL":
            return class_text([(operator, argument)], ignore_case=ignore_case) if ignore_case else _code(argument)
        case "NOT_LITERAL":
            return class_text([("NEGATE", None), ("LITERAL", argument)], ignore_case=ignore_case)
        case "IN":
            return class_text(argument, ignore_case=ignore_case)
        case "ANY":
            return r"[^\n]"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = argument
            bounds = f"{{{int(least)},{'' if most == parser.MAXREPEAT else int(most)}}}"
            return f"(?:{_to_re2(inner, ignore_case=ignore_case)}){bounds}"
        case "BRANCH":
            return f"(?:{'|'.join(_to_re2(branch, ignore_case=ignore_case) for branch in argument[1])})"
        case "SUBPATTERN":
            _, added, removed, inner = argument
            inside = (ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            return f"(?:{_to_re2(inner, ignore_case=inside)})"
        case "AT" if (position := _POSITIONS.get(str(argument))) is not None:
            return position
        case "ASSERT_NOT" if [str(part) for part in argument[1]] == ["(AT, AT_BOUNDARY)"]:
            return r"\B"
    raise _NoCounterpart(_NOT_IN_RE2.get(operator, f"it has a part that is not known here ({operator})"))


def class_text(members: Sequence[Any], *, ignore_case: bool) -> str:
    """Return a class of characters as RE2 writes it. Only ASCII's letters are folded, as Java does."""
    return f"[{''.join(_member_text(str(operator), argument, ignore_case) for operator, argument in members)}]"


def _member_text(operator: str, argument: Any, ignore_case: bool) -> str:
    match operator:
        case "NEGATE":
            return "^"
        case "CATEGORY":
            category = str(argument).removeprefix("CATEGORY_")
            return _NOT_SPACE if category == "NOT_SPACE" else _CATEGORIES[category]
    first, last = (argument, argument) if operator == "LITERAL" else argument
    text = f"{_code(first)}-{_code(last)}"
    if ignore_case:
        for letters in ("AZ", "az"):
            low, high = max(first, ord(letters[0])), min(last, ord(letters[1]))
            text += f"{_code(low ^ 32)}-{_code(high ^ 32)}" if low <= high else ""
    return text


def _code(point: int) -> str:
    return chr(point) if chr(point).isascii() and chr(point).isalnum() else f"\\x{{{point:x}}}"
