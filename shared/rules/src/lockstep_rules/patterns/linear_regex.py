"""Regular expressions that take no longer on one name than on another.

Python's `re`, as Java's, tries one way after another. For `(a+)+b` there are too many ways, and a topic named `aaaa...`
would stop a service. Two kinds of patterns are therefore matched step by step instead, with all ways at once. In the
first, something that may repeat is inside something that may repeat. In the second, many such follow each other. That
is as exact, and slower only where `re` would be fast.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

# Python has no public parser of its own syntax; what is used of this one has been the same since 3.11.
parser: Any = importlib.import_module("re._parser")

MOST_STATES = 20_000
MOST_REMEMBERED = 20_000
FEW_CHOICES = 3
"""From so many choices in a row on, a name of some length has too many ways to match."""

Test = Callable[[str], bool]
Condition = Callable[[str, int], bool]


class NotSteady(ValueError):
    """The pattern may take for ever and cannot be matched step by step; the text says why."""


class Matcher(Protocol):
    """What matches whole names. Can be pickled."""

    def fullmatch(self, name: str) -> object:
        """Something true where all of `name` matches."""
        ...


def build_matcher(pattern: str) -> Matcher:
    """For a pattern in Python's syntax (`java_regex.to_python`). Raises NotSteady, and re.error."""
    tree = list(parser.parse(pattern))
    # The elements of a list are tried one after another, and nothing follows them that could be tried anew.
    alone = len(tree) == 1 and str(tree[0][0]) == "BRANCH"
    if max(map(_choices, tree[0][1][1] if alone else [tree])) < FEW_CHOICES:
        return re.compile(pattern)
    return _Steps(pattern)


def _choices(nodes: Iterable[Any]) -> int:
    """How many choices follow each other at most; FEW_CHOICES or more, if one is in what is repeated."""
    count = 0
    for operator, argument in nodes:
        match str(operator):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                within = _choices(inner)
                if int(most) > 1 and within:
                    return FEW_CHOICES
                count += within + (int(most) > int(least) and str(operator) != "POSSESSIVE_REPEAT")
            case "BRANCH":
                count += max(map(_choices, argument[1])) + 1
            case "SUBPATTERN":
                count += _choices(argument[3])
            case "ATOMIC_GROUP":
                count = max(count, FEW_CHOICES if _choices(argument) >= FEW_CHOICES else 0)
            case "ASSERT" | "ASSERT_NOT":
                count = max(count, FEW_CHOICES if _choices(argument[1]) >= FEW_CHOICES else 0)
        if count >= FEW_CHOICES:
            return FEW_CHOICES
    return count


class _Steps:
    """All ways at once: a set of places in the pattern, moved on by each character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._ways = _Ways()
        self._ways.end = self._ways.sequence(parser.parse(pattern), 0, frozenset("a"))
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return build_matcher, (self.pattern,)

    def fullmatch(self, name: str) -> bool:
        if self._ways.conditions:
            return len(name) in self._ways.ends(name, 0)
        at = self._ways.reached([0], name, 0)
        for character in name:
            step = (at, character)
            if step not in self._known:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[step] = self._ways.reached(self._ways.moved(at, character), name, 0)
            at = self._known[step]
            if not at:
                return False
        return self._ways.end in at


class _Ways:
    """A pattern as places with ways between them: some take a character, the others are free or hold where a condition
    does. Place 0 is the beginning."""

    def __init__(self) -> None:
        self.tests: list[tuple[Test, int] | None] = [None]
        self.free: list[list[tuple[int, Condition | None]]] = [[]]
        self.conditions = False
        self.end = 0

    def place(self) -> int:
        if len(self.tests) >= MOST_STATES:
            raise NotSteady("it repeats too much")
        self.tests.append(None)
        self.free.append([])
        return len(self.tests) - 1

    def reached(self, places: Iterable[int], name: str, at: int) -> frozenset[int]:
        """The places, and those that can be reached from them for free where `at` characters are behind us."""
        found = set(places)
        open_ = list(found)
        while open_:
            for to, condition in self.free[open_.pop()]:
                if to not in found and (condition is None or condition(name, at)):
                    found.add(to)
                    open_.append(to)
        return frozenset(found)

    def moved(self, places: Iterable[int], character: str) -> set[int]:
        ways = (self.tests[place] for place in places)
        return {way[1] for way in ways if way is not None and way[0](character)}

    def ends(self, name: str, begin: int) -> set[int]:
        """Where a match that begins there may end."""
        found: set[int] = set()
        places = self.reached([0], name, begin)
        for at in range(begin, len(name) + 1):
            if self.end in places:
                found.add(at)
            if at == len(name) or not places:
                break
            places = self.reached(self.moved(places, name[at]), name, at + 1)
        return found

    def sequence(self, nodes: Iterable[Any], begin: int, flags: frozenset[str]) -> int:
        for operator, argument in nodes:
            begin = self._node(str(operator), argument, begin, flags)
        return begin

    def _node(self, operator: str, argument: Any, begin: int, flags: frozenset[str]) -> int:
        match operator:
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = argument
                return self._repeat(least, most, inner, begin, flags)
            case "BRANCH":
                end = self.place()
                for branch in argument[1]:
                    self.free[self.sequence(branch, self._free_place(begin), flags)].append((end, None))
                return end
            case "SUBPATTERN":
                _, added, removed, inner = argument
                ignoring = (flags | {"i"}) if added & re.IGNORECASE else flags
                return self.sequence(inner, begin, ignoring - {"i"} if removed & re.IGNORECASE else ignoring)
            case "AT":
                return self._free_place(begin, _position(str(argument)))
            case "ASSERT" | "ASSERT_NOT":
                direction, inner = argument
                return self._free_place(begin, _lookaround(direction, inner, flags, operator == "ASSERT"))
            case "POSSESSIVE_REPEAT" | "ATOMIC_GROUP":
                raise NotSteady("it has a possessive or atomic part")
            case "GROUPREF" | "GROUPREF_EXISTS":
                raise NotSteady("it refers back to what a group has matched")
        end = self.place()
        self.tests[begin] = (_test(operator, argument, "i" in flags), end)
        return end

    def _repeat(self, least: Any, most: Any, inner: Any, begin: int, flags: frozenset[str]) -> int:
        for _ in range(int(least)):
            begin = self.sequence(inner, self._free_place(begin), flags)
        end = self.place()
        self.free[begin].append((end, None))
        if most == parser.MAXREPEAT:
            loop = self._free_place(begin)
            self.free[self.sequence(inner, self._free_place(loop), flags)] += [(loop, None), (end, None)]
            return end
        for _ in range(int(most) - int(least)):
            begin = self.sequence(inner, self._free_place(begin), flags)
            self.free[begin].append((end, None))
        return end

    def _free_place(self, begin: int, condition: Condition | None = None) -> int:
        self.conditions = self.conditions or condition is not None
        place = self.place()
        self.free[begin].append((place, condition))
        return place


def _lookaround(direction: int, inner: Any, flags: frozenset[str], wanted: bool) -> Condition:
    ways = _Ways()
    ways.end = ways.sequence(inner, 0, flags)
    width = inner.getwidth()[0]

    def ahead(name: str, at: int) -> bool:
        return bool(ways.ends(name, at)) is wanted

    def behind(name: str, at: int) -> bool:
        return (at >= width and at in ways.ends(name, at - width)) is wanted

    return ahead if direction > 0 else behind


def _position(where: str) -> Condition:
    def boundary(name: str, at: int) -> bool:
        before, behind = at > 0 and _is_word(name[at - 1]), at < len(name) and _is_word(name[at])
        return before != behind

    match where:
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return lambda _, at: at == 0
        case "AT_END_STRING":
            return lambda name, at: at == len(name)
        case "AT_BOUNDARY":
            return boundary
    raise NotSteady(f"it has a place that is not known here ({where})")


def _test(operator: str, argument: Any, ignoring: bool) -> Test:
    """Of one character; letters are folded as `(?ai)` does, ASCII's only."""
    match operator:
        case "LITERAL":
            literals = _folded(chr(argument)) if ignoring else {chr(argument)}
            return literals.__contains__
        case "NOT_LITERAL":
            others = _folded(chr(argument)) if ignoring else {chr(argument)}
            return lambda character: character not in others
        case "IN":
            return member(argument, ignoring)
        case "ANY":
            return lambda character: character != "\n"
    raise NotSteady(f"it has a part that is not known here ({operator})")


def member(members: Sequence[Any], ignoring: bool) -> Test:
    negated = str(members[0][0]) == "NEGATE"
    tests = [_member_test(str(operator), argument) for operator, argument in members[negated:]]

    def holds(character: str) -> bool:
        forms = _folded(character) if ignoring else (character,)
        return any(test(form) for test in tests for form in forms) is not negated

    return holds


def _member_test(operator: str, argument: Any) -> Test:
    match operator:
        case "LITERAL":
            return chr(argument).__eq__
        case "RANGE":
            first, last = map(chr, argument)
            return lambda character: first <= character <= last
        case "CATEGORY":
            test = _CATEGORIES[str(argument).removeprefix("CATEGORY_").removeprefix("NOT_")]
            if "_NOT_" in str(argument):
                return lambda character: not test(character)
            return test
    raise NotSteady(f"it has a class that is not known here ({operator})")


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


_CATEGORIES: dict[str, Test] = {
    "DIGIT": lambda character: "0" <= character <= "9",
    "SPACE": frozenset(" \t\n\r\f\v").__contains__,
    "WORD": _is_word,
}


def _folded(character: str) -> set[str]:
    return {character, character.swapcase()} if character.isascii() else {character}
