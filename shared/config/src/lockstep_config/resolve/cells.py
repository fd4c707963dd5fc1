"""Take a file's lines apart: where each belongs, and its value as its key declares it. Every line is parsed here, once.

Pure, but for the import of a Python class that a line names.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lockstep_config.keys.connector_keys import own_key
from lockstep_config.keys.key_types import Key, Status
from lockstep_config.keys.key_values import parse_value
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.text.properties import Entry
from lockstep_config.text.values import BadValue
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_state.names import Flow

ALIAS = re.compile(r"[A-Za-z0-9_-]+")
"""What a cluster may be called."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """Where a line belongs: to a flow, to a cluster (by alias), or, with neither, to the top of the file.

    `key` is without prefix.
    """

    key: str
    flow: Flow | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A line of a file with its scope and its typed value.

    `refusal` says why the key does not take the value, which is None then. A line of no table, a class of Java's and a
    client's property have their text as value.
    """

    entry: Entry
    scope: KeyScope
    value: Any = None
    refusal: str = ""


def read_cells(entries: Iterable[Entry], aliases: Iterable[str]) -> tuple[Cell, ...]:
    """Parse the lines of a file that has these clusters."""
    known = frozenset(aliases)
    return tuple(_read_cell(entry, parse_key(entry.key, known)) for entry in entries)


def _read_cell(entry: Entry, scope: KeyScope) -> Cell:
    own = own_key(scope.key) if scope.flow is not None else None
    key = KEYS.get(scope.key if own is None else own[1])
    try:
        return Cell(entry, scope, entry.value if key is None else parse_used(key, entry.value))
    except (BadValue, UntranslatablePattern) as exc:
        return Cell(entry, scope, refusal=str(exc))


def parse_used(key: Key, text: str) -> Any:
    """Parse the value of a key, or trim that of a key that is refused or without effect."""
    return parse_value(key, text) if key.status is Status.USED else text.strip()


def parse_key(key: str, aliases: Iterable[str]) -> KeyScope:
    """Take the prefix off a key.

    A name of the tables is never taken apart, though an alias may look like its beginning. A flow is recognised by
    its arrow, whether its aliases are known or not. An alias has no dot, so the flow ends at the first dot behind the
    arrow.
    """
    if key in KEYS:
        return KeyScope(key)
    before, arrow, behind = key.partition("->")
    if arrow:
        target, dot, rest = behind.partition(".")
        if dot and before.strip() and target.strip():
            return KeyScope(rest, flow=Flow(before.strip(), target.strip()))
        return KeyScope(key)
    alias, dot, rest = key.partition(".")
    if dot and alias in aliases:
        return KeyScope(rest, alias=alias)
    return KeyScope(key)
