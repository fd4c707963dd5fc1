"""Patterns that no legal name matches (no I/O).

A topic's name has ASCII letters, digits, `.`, `_` and `-` only (Kafka's `Topic.validate`), and so have the names of a
topic's configs. A pattern that needs another character selects nothing, ever.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from lockstep_rules.patterns.java_regex.translate import to_python
from lockstep_rules.patterns.matcher import parser
from lockstep_state.names import TOPIC_CHARACTERS

compiler: Any = importlib.import_module("re._compiler")


def needed_but_illegal(pattern: str) -> tuple[str, ...]:
    """Return sets of characters that a Java pattern needs and no topic name has, in the order of the pattern.

    Each name that the pattern matches must have one character of each set. A set is given by one of its members, or
    by "" if none is usual. An empty tuple means that some name may match. A pattern that depends on places (`a^b`) or
    on what a group matched before counts as possible, so a non-empty answer is certain.

    Raises:
        UntranslatablePattern: The pattern has no counterpart in Python.
    """
    if TOPIC_CHARACTERS.issuperset(pattern):
        return ()  # a name as it is, as most are: nothing to translate
    try:
        return tuple(dict.fromkeys(_needed(parser.parse(to_python(pattern)))))
    except RecursionError:
        return ()


def _needed(nodes: Iterable[Any]) -> list[str]:
    needed: list[str] = []
    for operator, argument in nodes:
        needed += _needed_by(str(operator), argument)
    return needed


def _needed_by(operator: str, argument: Any) -> list[str]:
    match operator:
        case "LITERAL":
            return [] if chr(argument) in TOPIC_CHARACTERS else [chr(argument)]
        case "IN":
            return _needed_by_class(argument)
        case "BRANCH":
            branches = [_needed(branch) for branch in argument[1]]
            return [part for branch in branches for part in branch] if all(branches) else []
        case "SUBPATTERN":
            return _needed(argument[3])
        case "ATOMIC_GROUP":
            return _needed(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, inner = argument
            return _needed(inner) if int(least) else []
        case "ASSERT":
            return _needed(argument[1])
    return []


def _needed_by_class(members: Sequence[Any]) -> list[str]:
    # Letters of either case are legal, so that ignoring it makes no difference.
    is_member = compiler.compile(parser.SubPattern(parser.State(), [(parser.IN, members)]), re.ASCII).fullmatch
    if any(map(is_member, TOPIC_CHARACTERS)):
        return []
    return [next((character for character in (" ", *map(chr, range(0x2100))) if is_member(character)), "")]
