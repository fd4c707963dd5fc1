"""The matching of whole names by a pattern, in a time that no name can drive up.

Python's `re`, as Java's, tries one way after another. `(a+)+b` has exponentially many ways, and a topic named
`aaaa...` would stop a service. A pattern with few choices runs on `re`. One with more runs on RE2, which needs time
in proportion to the name. RE2 lacks look-around, back-references, and atomic and possessive parts. Patterns with
these run on `re`, or are refused if they could take exponential time.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Protocol

# Python has no public parser of its own syntax; what is used of this one has been the same since 3.11.
parser: Any = importlib.import_module("re._parser")

FEW_CHOICES = 2
"""Choices in a row up to which a pattern runs on `re`: a name of 249 letters is refused within 0.1 ms."""
MOST_CHOICES = 3
"""Choices in a row up to which `re` takes a pattern that RE2 cannot run: 3 ms. With a fourth it would be 300 ms."""

_CATEGORIES = {"DIGIT": "0-9", "NOT_DIGIT": r"\D", "WORD": r"\w", "NOT_WORD": r"\W", "SPACE": r"\t-\r "}
_NOT_SPACE = r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{10ffff}"
_POSITIONS = {"AT_BEGINNING": r"\A", "AT_BEGINNING_STRING": r"\A", "AT_END_STRING": r"\z", "AT_BOUNDARY": r"\b"}
_NOT_IN_RE2 = {
    **dict.fromkeys(("ASSERT", "ASSERT_NOT"), "it looks around"),
    **dict.fromkeys(("POSSESSIVE_REPEAT", "ATOMIC_GROUP"), "it has a possessive or atomic part"),
    **dict.fromkeys(("GROUPREF", "GROUPREF_EXISTS"), "it refers back to what a group has matched"),
}


class UnboundedPattern(ValueError):
    """The pattern could take exponential time on some names. The text says why it does not run on RE2."""


class Matcher(Protocol):
    """A compiled pattern that matches whole names and can be pickled."""

    def fullmatch(self, name: str) -> Any:
        """Return a true value if all of `name` matches."""
        ...

    def search(self, name: str) -> Any:
        """Return the first match in `name`, as `re` does. Its groups are known if the matcher was built to capture."""
        ...


class _Re2Matcher:
    """A pattern that runs on RE2."""

    def __init__(self, pattern: str, compiled: Any, *, captures: bool) -> None:
        self._arguments = pattern, captures
        self.fullmatch = compiled.fullmatch
        self.search = compiled.search

    def __reduce__(self) -> tuple[Any, ...]:
        return build_matcher, self._arguments


class _NoCounterpart(ValueError):
    """RE2 has no counterpart for a part of the pattern. The text says for which."""


def build_matcher(pattern: str, captures: bool = False) -> Matcher:
    """Compile a pattern in Python's syntax.

    Args:
        pattern: The pattern.
        captures: A match is asked for its groups. Without them RE2 is quicker.

    Raises:
        UnboundedPattern: RE2 cannot run it, and `re` could take exponential time.
        re.error: It is not a valid pattern.
    """
    tree = parser.parse(pattern)
    # The elements of a list are tried one after another, and nothing follows them that could be tried again.
    is_list = len(tree) == 1 and str(tree[0][0]) == "BRANCH"
    choices = max(map(_choices, tree[0][1][1] if is_list else [tree]))
    if choices <= FEW_CHOICES:
        return re.compile(pattern)
    re2 = _load_re2()
    try:
        text = _to_re2(tree, ignore_case=False, captures=captures)
        return _Re2Matcher(pattern, re2.compile(text, _quiet(re2)), captures=captures)
    except _NoCounterpart as exc:
        reason = str(exc)
    except (re2.error, UnicodeEncodeError):
        reason = "it repeats too much"
    if choices > MOST_CHOICES:
        raise UnboundedPattern(reason)
    return re.compile(pattern)


def _load_re2() -> ModuleType:
    # Few patterns need it, and it takes 4 MiB of a service.
    return importlib.import_module("re2")


@cache
def _quiet(re2: ModuleType) -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def _choices(nodes: Iterable[Any]) -> int:
    """Return how many choices follow each other at most, or more than MOST_CHOICES if one is inside a repetition."""
    count = inside = 0
    for operator, argument in nodes:
        match str(operator):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                repeated = _choices(inner)
                if int(most) > 1 and repeated:
                    return MOST_CHOICES + 1
                count += repeated + (int(most) > int(least) and str(operator) != "POSSESSIVE_REPEAT")
            case "BRANCH":
                count += max(map(_choices, argument[1])) + 1
            case "SUBPATTERN":
                count += _choices(argument[3])
            case "ATOMIC_GROUP":  # What is behind it never enters it again, and neither with the next two.
                inside = max(inside, count + _choices(argument))
            case "ASSERT" | "ASSERT_NOT":
                inside = max(inside, count + _choices(argument[1]))
    return max(count, inside)


def _to_re2(nodes: Iterable[Any], *, ignore_case: bool, captures: bool) -> str:
    return "".join(_node_to_re2(str(operator), argument, ignore_case, captures) for operator, argument in nodes)


def _node_to_re2(operator: str, argument: Any, ignore_case: bool, captures: bool) -> str:
    match operator:
        case "LITERAL":
            return _class_text([(operator, argument)], ignore_case=ignore_case) if ignore_case else _code(argument)
        case "NOT_LITERAL":
            return _class_text([("NEGATE", None), ("LITERAL", argument)], ignore_case=ignore_case)
        case "IN":
            return _class_text(argument, ignore_case=ignore_case)
        case "ANY":
            return r"[^\n]"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = argument
            bounds = f"{{{int(least)},{'' if most == parser.MAXREPEAT else int(most)}}}"
            # A lazy repetition matches the same names. What its groups hold differs.
            lazy = "?" if operator == "MIN_REPEAT" and captures else ""
            return f"(?:{_to_re2(inner, ignore_case=ignore_case, captures=captures)}){bounds}{lazy}"
        case "BRANCH":
            branches = (_to_re2(branch, ignore_case=ignore_case, captures=captures) for branch in argument[1])
            return f"(?:{'|'.join(branches)})"
        case "SUBPATTERN":
            group, added, removed, inner = argument
            inside = (ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            opening = "(" if captures and group is not None else "(?:"
            return f"{opening}{_to_re2(inner, ignore_case=inside, captures=captures)})"
        case "AT" if (position := _POSITIONS.get(str(argument))) is not None:
            return position
        case "ASSERT_NOT" if [str(part) for part in argument[1]] == ["(AT, AT_BOUNDARY)"]:
            return r"\B"
    raise _NoCounterpart(_NOT_IN_RE2.get(operator, f"it has a part that is not known here ({operator})"))


def _class_text(members: Sequence[Any], *, ignore_case: bool) -> str:
    """Return a class of characters in RE2's syntax. Only ASCII letters ignore case, as in Java."""
    return f"[{''.join(_member_text(str(operator), argument, ignore_case) for operator, argument in members)}]"


def _member_text(operator: str, argument: Any, ignore_case: bool) -> str:
    match operator:
        case "NEGATE":
            return "^"
        case "CATEGORY":
            category = str(argument).removeprefix("CATEGORY_")
            return _NOT_SPACE if category == "NOT_SPACE" else _CATEGORIES[category]
    begin, end = (argument, argument) if operator == "LITERAL" else argument
    text = f"{_code(begin)}-{_code(end)}"
    if ignore_case:
        for letters in ("AZ", "az"):
            low, high = max(begin, ord(letters[0])), min(end, ord(letters[1]))
            text += f"{_code(low ^ 32)}-{_code(high ^ 32)}" if low <= high else ""
    return text


def _code(point: int) -> str:
    return chr(point) if chr(point).isascii() and chr(point).isalnum() else f"\\x{{{point:x}}}"
