"""The values of `lockstep.filter` and `lockstep.headers`: rules between semicolons. This module is pure."""

import re

from lockstep_config.text.values import BadValue
from lockstep_rules.filters import NameFilter
from lockstep_rules.record_rules import (
    WILDCARD,
    AddHeader,
    Condition,
    DropHeaders,
    DropRecord,
    HasHeader,
    InTopic,
    IsTombstone,
    RecordCondition,
    split_conditions,
)

FILTER_KEY, HEADERS_KEY = "lockstep.filter", "lockstep.headers"
SEPARATOR = ";"

MOST_RULES = 100
MOST_ADDED_BYTES = 4096
"""The most bytes of names and values that a record may get."""

_AND = re.compile(r"\s+and\s+")
_IF = re.compile(r"\s+if\s+")
_CONDITION = re.compile(r"(?P<negated>not\s+)?(?:(?P<kind>header|topic)\s+(?P<text>\S+)|tombstone)")
_CONDITIONS = "header NAME, tombstone or topic PATTERN, each with not before it or without, and between several"


def parse_filter(text: str) -> tuple[DropRecord, ...]:
    """Return the rules of `lockstep.filter`: a record is dropped if all conditions of one rule hold.

    Raises:
        BadValue: An element is no rule.
        UntranslatablePattern: A pattern cannot be used.
    """
    return tuple(DropRecord(*_parse_conditions(element)) for element in _elements(text))


def parse_headers(text: str) -> tuple[DropHeaders | AddHeader, ...]:
    """Return the rules of `lockstep.headers`, in their order.

    Raises:
        BadValue: An element is no rule, or all of them add too much.
        UntranslatablePattern: A pattern cannot be used.
    """
    rules = tuple(_parse_header_rule(element) for element in _elements(text))
    added = sum(len(rule.name.encode()) + len(rule.value) for rule in rules if isinstance(rule, AddHeader))
    if added > MOST_ADDED_BYTES:
        raise BadValue(f"adds {added} bytes to each record: at most {MOST_ADDED_BYTES} are allowed")
    return rules


def _elements(text: str) -> list[str]:
    elements = [element.strip() for element in text.split(SEPARATOR) if element.strip()]
    if len(elements) > MOST_RULES:
        raise BadValue(f"has {len(elements)} rules: at most {MOST_RULES} are allowed")
    return elements


def _parse_header_rule(element: str) -> DropHeaders | AddHeader:
    rule, *rest = _IF.split(element, maxsplit=1)
    conditions, topics = _parse_conditions(rest[0]) if rest else ((), ())
    word, _, argument = rule.partition(" ")
    argument = argument.strip()
    if word == "drop" and argument:
        return DropHeaders(_header_pattern(argument), conditions, topics)
    name, equals, value = argument.partition("=")
    if word != "add" or not equals or not name.strip():
        raise BadValue(
            f"has {element!r}, which is no rule: write drop NAME, or add NAME=VALUE. Behind it may be if, and "
            f"{_CONDITIONS}"
        )
    return AddHeader(header_name(name.strip()), value.strip().encode(), conditions, topics)


def _parse_conditions(text: str) -> tuple[tuple[RecordCondition, ...], tuple[InTopic, ...]]:
    return split_conditions(_parse_condition(part.strip()) for part in _AND.split(text))


def _parse_condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BadValue(f"has {text!r}, which is no condition: write {_CONDITIONS}")
    negated = match["negated"] is not None
    match match["kind"]:
        case "header":
            return HasHeader(_header_pattern(match["text"]), negated)
        case "topic":
            return InTopic(NameFilter((match["text"],)), negated)
        case _:
            return IsTombstone(negated)


def _header_pattern(text: str) -> str:
    """Return a header's name, or the beginning of names, which ends with `*`. Raises BadValue."""
    if WILDCARD in text.removesuffix(WILDCARD):
        raise BadValue(f"has {text!r}: {WILDCARD} stands only at the end of a header's name")
    return text


def header_name(text: str) -> str:
    """Return the name of one header. Raises BadValue."""
    if WILDCARD in text or any(character.isspace() for character in text):
        raise BadValue(f"has {text!r}, which is not the name of one header")
    return text
