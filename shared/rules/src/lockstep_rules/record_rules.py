"""Rules that drop records and change their headers on the way (`lockstep.filter`, `lockstep.headers`).

They ask for a record's header names and whether it has a value, and never for what is in it. So they are a pure
function of one record, and only header names are read. Decision 0097 has the reasons.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from lockstep_rules.filters import NameFilter

Header: TypeAlias = tuple[str, bytes | None]

WILDCARD = "*"
ENCODING = ("utf-8", "surrogateescape")
"""Header names that are not UTF-8 become texts with surrogates (PEP 383), and the same bytes again."""

_NUMBER = struct.Struct("<I")
_DROP_RECORD, _DROP_HEADERS, _ADD_HEADER = range(1, 4)
_HEADER, _TOMBSTONE = range(1, 3)


@dataclass(frozen=True, slots=True)
class HasHeader:
    """The condition that a record has a header of this name. With `*` at its end it is the beginning of a name."""

    name: str
    negated: bool = False

    def holds(self, headers: Iterable[Header], *, is_tombstone: bool) -> bool:
        """Return whether the condition holds for a record."""
        return any(matches_name(self.name, name) for name, _ in headers) is not self.negated


@dataclass(frozen=True, slots=True)
class IsTombstone:
    """The condition that a record has no value."""

    negated: bool = False

    def holds(self, headers: Iterable[Header], *, is_tombstone: bool) -> bool:
        """Return whether the condition holds for a record."""
        return is_tombstone is not self.negated


@dataclass(frozen=True, slots=True)
class InTopic:
    """The condition that the name that the replication policy gives a topic, without renames, matches a pattern."""

    names: NameFilter
    negated: bool = False

    def holds_for(self, remote_topic: str) -> bool:
        """Return whether the condition holds for all records of a topic."""
        return self.names.matches(remote_topic) is not self.negated


RecordCondition: TypeAlias = HasHeader | IsTombstone
Condition: TypeAlias = RecordCondition | InTopic


def split_conditions(conditions: Iterable[Condition]) -> tuple[tuple[RecordCondition, ...], tuple[InTopic, ...]]:
    """Return the conditions about a record, and those about its topic, as a rule takes them."""
    stated = tuple(conditions)
    of_records = tuple(condition for condition in stated if not isinstance(condition, InTopic))
    return of_records, tuple(condition for condition in stated if isinstance(condition, InTopic))


@dataclass(frozen=True, slots=True)
class DropRecord:
    """The rule that a record of these topics is dropped if all conditions hold. Without topics it is about all."""

    conditions: tuple[RecordCondition, ...]
    topics: tuple[InTopic, ...] = ()

    def effect(self) -> bytes:
        """Return the rule without its conditions, as the compiled code reads it."""
        return bytes((_DROP_RECORD,))


@dataclass(frozen=True, slots=True)
class DropHeaders:
    """The rule that all headers of a name are left out, if all conditions hold.

    With `*` at its end, `name` is the beginning of names.
    """

    name: str
    conditions: tuple[RecordCondition, ...] = ()
    topics: tuple[InTopic, ...] = ()

    def effect(self) -> bytes:
        """Return the rule without its conditions, as the compiled code reads it."""
        return bytes((_DROP_HEADERS,)) + _packed_name(self.name)


@dataclass(frozen=True, slots=True)
class AddHeader:
    """The rule that a header is added behind the others, if all conditions hold."""

    name: str
    value: bytes
    conditions: tuple[RecordCondition, ...] = ()
    topics: tuple[InTopic, ...] = ()

    def effect(self) -> bytes:
        """Return the rule without its conditions, as the compiled code reads it."""
        name = self.name.encode(*ENCODING)
        return bytes((_ADD_HEADER,)) + _sized(name) + _sized(self.value)


Rule: TypeAlias = DropRecord | DropHeaders | AddHeader


@dataclass(frozen=True)
class RecordRules:
    """The rules of one topic, which are applied to each record in their order.

    It can be pickled.
    """

    rules: tuple[Rule, ...]

    def apply(self, headers: Sequence[Header], *, is_tombstone: bool) -> Sequence[Header] | None:
        """Return the headers that a record gets; None: the record is dropped.

        Each rule sees the headers that the rules before it have left.
        """
        for rule in self.rules:
            if not all(condition.holds(headers, is_tombstone=is_tombstone) for condition in rule.conditions):
                continue
            match rule:
                case DropRecord():
                    return None
                case DropHeaders(name=name):
                    headers = tuple(header for header in headers if not matches_name(name, header[0]))
                case AddHeader(name=name, value=value):
                    headers = (*headers, (name, value))
        return headers

    @cached_property
    def program(self) -> bytes:
        """The rules as the compiled code reads them (`compiled_records.c`)."""
        parts = []
        for rule in self.rules:
            parts += [rule.effect(), bytes((len(rule.conditions),)), *map(_packed_condition, rule.conditions)]
        return b"".join(parts)

    @cached_property
    def version(self) -> str:
        """The version: rules with one version make the same of every record. Values of headers cannot be read in it."""
        return f"rules-{hashlib.sha256(self.program).hexdigest()[:16]}"

    @cached_property
    def added_bytes(self) -> int:
        """The most bytes that a record gets."""
        added = (rule for rule in self.rules if isinstance(rule, AddHeader))
        return sum(len(rule.name.encode(*ENCODING)) + len(rule.value) + 10 for rule in added)

    @property
    def drops_records(self) -> bool:
        """True if some records may be dropped."""
        return any(isinstance(rule, DropRecord) for rule in self.rules)

    @property
    def changes_headers(self) -> bool:
        """True if records may get other headers."""
        return any(not isinstance(rule, DropRecord) for rule in self.rules)

    @property
    def drops_tombstones(self) -> bool:
        """True if a record without a value may be dropped."""
        return any(
            isinstance(rule, DropRecord) and IsTombstone(negated=True) not in rule.conditions for rule in self.rules
        )


@dataclass(frozen=True, slots=True)
class RuleSelection:
    """The rules of a flow, of which each topic has those whose conditions about topics hold for it."""

    rules: tuple[Rule, ...] = ()

    def for_topic(self, remote_topic: str) -> RecordRules | None:
        """Return the rules of a topic; None: its records are copied as they are.

        `remote_topic` is the name that the replication policy gives the topic, without renames.
        """
        kept = [
            replace(rule, topics=())
            for rule in self.rules
            if all(condition.holds_for(remote_topic) for condition in rule.topics)
        ]
        return RecordRules(tuple(kept)) if kept else None

    def loop_header(self) -> str | None:
        """Return the header by which the rules keep records from coming back; None: they do not.

        Records that have the header are dropped, and all others get it.
        """
        dropped = {
            rule.conditions[0].name
            for rule in self.rules
            if isinstance(rule, DropRecord)
            and not rule.topics
            and len(rule.conditions) == 1
            and isinstance(rule.conditions[0], HasHeader)
            and not rule.conditions[0].negated
        }
        added = (rule.name for rule in self.rules if isinstance(rule, AddHeader))
        return next((name for name in added if any(matches_name(pattern, name) for pattern in dropped)), None)


NO_RULES = RuleSelection()


def matches_name(pattern: str, name: str) -> bool:
    """Return whether a header's name is the pattern, or begins with it if it ends with `*`."""
    if pattern.endswith(WILDCARD):
        return name.startswith(pattern.removesuffix(WILDCARD))
    return name == pattern


def _packed_condition(condition: RecordCondition) -> bytes:
    if isinstance(condition, IsTombstone):
        return bytes((_TOMBSTONE, condition.negated))
    return bytes((_HEADER, condition.negated)) + _packed_name(condition.name)


def _packed_name(pattern: str) -> bytes:
    return bytes((pattern.endswith(WILDCARD),)) + _sized(pattern.removesuffix(WILDCARD).encode(*ENCODING))


def _sized(text: bytes) -> bytes:
    return _NUMBER.pack(len(text)) + text
