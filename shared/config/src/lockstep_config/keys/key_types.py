"""The types that describe a property: where it is allowed, what its value is, what becomes of it.

The properties themselves are in `mm2_keys`, `lockstep_keys`, `lockstep_settings` and `client_keys`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

ALIAS_KEYS = ("source.cluster.alias", "target.cluster.alias")
"""Keys with the aliases that MM2's connectors use for the two clusters of a flow.

The aliases around the arrow are only their defaults.
"""

ALIAS_OF_CLUSTER = "alias"
"""The same key behind a cluster's alias: MM2 hands `A.x` to the connectors as `source.cluster.x`."""


class KeyLevel(Enum):
    """A place in the file at which a key is allowed. The value is how the key is written there."""

    TOP = "KEY"
    CLUSTER = "ALIAS.KEY"
    FLOW = "SOURCE->TARGET.KEY"


class ValueKind(Enum):
    """The type of a value. The enum's value is the word for people."""

    BOOLEAN = "true or false"
    INTEGER = "whole number"
    LIST = "list, elements between commas"
    PATTERNS = "list of Java regular expressions between commas"
    STRING = "text"
    CLASS = "class name"
    PYTHON_CLASS = "package.module:Class"
    STATEMENT = "statement"


class KeyStatus(Enum):
    """The treatment of a key by Lockstep."""

    USED = "used"
    WITHOUT_EFFECT = "accepted, without effect"
    REFUSED = "refused"


TOP_ONLY = frozenset({KeyLevel.TOP})
CONNECTOR = frozenset({KeyLevel.TOP, KeyLevel.FLOW})
FLOW_ONLY = frozenset({KeyLevel.FLOW})
WORKER = frozenset({KeyLevel.TOP, KeyLevel.CLUSTER})
CLUSTER_ONLY = frozenset({KeyLevel.CLUSTER})
ANYWHERE = frozenset(KeyLevel)

MAXIMUM = 2_147_483_647
"""The largest number of a Java int."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One property.

    `reason` says why it is without effect or refused. `choices` are its only values, and limits are inclusive. With
    `per_topic` the value may be followed by others for some topics (`per_topic`).

    A refused key is refused only for values other than `choices` (and other than empty): `key.converter` may name the
    converter whose effect Lockstep has anyway. `renamed_to` names the key that took the place of one that Kafka
    removed; the old one still counts if the new one is not set.

    `parse` reads a value that is of no `ValueKind`, and raises BadValue with a sentence. By default a key is a
    connector's.
    """

    name: str
    kind: ValueKind = ValueKind.STRING
    default: str | None = None
    meaning: str
    levels: frozenset[KeyLevel] = CONNECTOR
    status: KeyStatus = KeyStatus.USED
    reason: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    renamed_to: str = ""
    per_topic: bool = False
    parse: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """All properties whose names begin with `prefix`, without effect for one reason."""

    prefix: str
    levels: frozenset[KeyLevel]
    reason: str


def without_effect(name: str, reason: str, levels: frozenset[KeyLevel] = CONNECTOR) -> Key:
    """Return a key that is accepted and changes nothing, for `reason`."""
    return Key(name=name, meaning=reason, levels=levels, status=KeyStatus.WITHOUT_EFFECT, reason=reason)


def flag(name: str, default: str, meaning: str) -> Key:
    """Return a key that is true or false."""
    return Key(name=name, kind=ValueKind.BOOLEAN, default=default, meaning=meaning, levels=CONNECTOR)


def interval(name: str, default: str, meaning: str) -> Key:
    """Return a key with a time of at least 1, in the unit at the end of its name: `.ms` or `.seconds`."""
    return Key(name=name, kind=ValueKind.INTEGER, default=default, meaning=meaning, minimum=1, maximum=MAXIMUM)


def replication(name: str, default: str, meaning: str, levels: frozenset[KeyLevel] = CONNECTOR) -> Key:
    """Return a key with a replication factor."""
    return Key(
        name=name, kind=ValueKind.INTEGER, default=default, meaning=meaning, levels=levels, minimum=-1, maximum=32767
    )
