"""The properties of transforms of records, `lockstep.transform.NAME.KEY`. Each name is one transform.

This module is pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_config.keys.key_types import Key, ValueKind
from lockstep_config.text.values import BadValue
from lockstep_rules.mask_statement import SALT, MaskInvalid, mask_statement

PREFIX = "lockstep.transform."
ANY = f"{PREFIX}NAME."
"""The beginning of these keys in tables and messages."""
SECRET = "secret."  # noqa: S105  # the beginning of a key
STATEMENTS = ("sql", "sql.file", "mask", "python")
"""The keys that say what a transform does. A transform has one of them."""
STATEMENT_FILE = re.compile(r"(?:^|\.)lockstep\.transform\.[^.]+\.sql\.file$")
"""The keys whose value is a file with a statement."""

NAME = re.compile(r"[A-Za-z0-9_-]+")
"""The form of a transform's name. It has no dot, so a key ends it."""
SECRET_NAME = re.compile(r"[\w.-]+", re.ASCII)
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class TransformKey:
    """The parts of a key `lockstep.transform.NAME.KEY`; `key` is one of `TRANSFORM_KEYS` or a misspelling."""

    name: str
    key: str


def _statement(text: str) -> str:
    if not text.strip():
        raise BadValue("is empty: write SELECT ... FROM records [WHERE ...]")
    return text.strip()


def _mask(text: str) -> str:
    try:
        mask_statement(text)
    except MaskInvalid as exc:
        raise BadValue(f"cannot be read: {exc}") from exc
    return text.strip()


def _function(text: str) -> str:
    if not _FUNCTION.fullmatch(text.strip()):
        raise BadValue(f"is {text!r}, which is no function: write package.module:function")
    return text.strip()


_KEYS = (
    Key(
        name=f"{ANY}topics",
        kind=ValueKind.PATTERNS,
        meaning="topics of the source whose records are [transformed](../guides/filter-and-mask.md). A topic has one "
        "transform at most, and `heartbeats` has none",
    ),
    Key(
        name=f"{ANY}sql",
        kind=ValueKind.STATEMENT,
        parse=_statement,
        meaning="the transform: SELECT ... FROM records [WHERE ...], in Spark SQL. A row that is left out is a record "
        "that is filtered; a column that is left out stays the record's own",
    ),
    Key(
        name=f"{ANY}sql.file",
        kind=ValueKind.STATEMENT,
        parse=_statement,
        meaning="in place of the statement: a file that holds it",
    ),
    Key(
        name=f"{ANY}mask",
        kind=ValueKind.STATEMENT,
        parse=_mask,
        meaning="in place of the statement: PATH: MASKING, several between commas, such as $.name: hash_salted, "
        "$.iban: truncate(4). Maskings are remove, mask, truncate(n), hash_salted and tokenise",
    ),
    Key(
        name=f"{ANY}python",
        parse=_function,
        meaning="in place of the statement: package.module:function, from pyarrow.Table to pyarrow.Table",
    ),
    Key(
        name=f"{ANY}{SALT}",
        meaning="the secret of hash_salted and tokenise, as a reference to where it is: ${file:/PATH:KEY}",
    ),
    Key(
        name=f"{ANY}{SECRET}SECRET",
        meaning="another secret, likewise. A masking takes it by its name: tokenise(SECRET)",
    ),
    Key(
        name=f"{ANY}tombstones",
        default="pass",
        choices=("pass", "filter"),
        meaning="a record without a value: it passes every filter, or is filtered as other records are",
    ),
    Key(
        name=f"{ANY}filtered",
        default="drop",
        choices=("drop", "tombstone"),
        meaning="what is left of a record that is filtered: nothing, or a tombstone if it has a key",
    ),
    Key(
        name=f"{ANY}on.error",
        default="halt",
        choices=("halt", "quarantine", "quarantine-metadata"),
        meaning="when a record cannot be transformed. halt: its partition waits for an operator. quarantine: write its "
        "key and headers to the quarantine topic, unless the transform makes them anew, and never its value. "
        "quarantine-metadata: only where it was",
    ),
)

TRANSFORM_KEYS: Mapping[str, Key] = MappingProxyType({key.name.removeprefix(ANY): key for key in _KEYS})
"""The properties of one transform, by what is behind its name."""

THREADS = Key(
    name=f"{PREFIX}threads",
    kind=ValueKind.INTEGER,
    default="2",
    minimum=1,
    maximum=64,
    meaning="connections of each slot to its executor's JVM for each transform. Each evaluates by a thread of its own",
)


def secret_key(transform: str, secret: str) -> str:
    """Return the key of a secret of a transform, by the name that maskings take it by."""
    return f"{PREFIX}{transform}.{SALT if secret == SALT else f'{SECRET}{secret}'}"


def split_transform_key(name: str) -> TransformKey | None:
    """Return the parts of a key of a transform, without its flow; None for other keys."""
    if not name.startswith(PREFIX) or name == THREADS.name:
        return None
    transform, _, key = name.removeprefix(PREFIX).partition(".")
    return TransformKey(transform, key)


def find_transform_key(name: str) -> Key | None:
    """Return the property that a key of a transform is; None if it is none, or misspelt."""
    parts = split_transform_key(name)
    if parts is None or not NAME.fullmatch(parts.name):
        return None
    if parts.key.startswith(SECRET):
        is_named = SECRET_NAME.fullmatch(parts.key.removeprefix(SECRET)) is not None
        return TRANSFORM_KEYS[f"{SECRET}SECRET"] if is_named and parts.key != f"{SECRET}{SALT}" else None
    return TRANSFORM_KEYS.get(parts.key)


def explain_transform_key(parts: TransformKey) -> str:
    """Return what is wrong with a key of a transform that `find_transform_key` does not know."""
    if not parts.name:
        return f"has no name of a transform: write {PREFIX}NAME.KEY, such as {PREFIX}pii.topics"
    if not NAME.fullmatch(parts.name):
        return f"has the name {parts.name!r}: a transform's name may hold letters, digits, '_' and '-' only"
    if parts.key == f"{SECRET}{SALT}":
        return f"is written {PREFIX}{parts.name}.{SALT}"
    return f"is no key of a transform: write {PREFIX}{parts.name}. and one of {', '.join(TRANSFORM_KEYS)}"
