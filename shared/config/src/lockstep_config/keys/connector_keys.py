"""The keys that each of MM2's three connectors reads, and those that each may have for itself.

In mm2.properties a flow's lines are for all its connectors. `SOURCE->TARGET.lockstep.connector.NAME.KEY` is for one
alone, and beats the flow's own line. Strimzi's resources have such settings. This module is pure.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from lockstep_config.keys.client_keys import ClientKind
from lockstep_state.commands.command_vocabulary import Connector

ConnectorName = Literal["source", "checkpoint", "heartbeat"]
CONNECTORS: tuple[ConnectorName, ...] = get_args(ConnectorName)

_NAMES: Mapping[Connector, ConnectorName] = MappingProxyType(dict(zip(Connector, CONNECTORS, strict=True)))

PREFIX = "lockstep.connector."

OWN_KEYS: Mapping[str, tuple[ConnectorName, ...]] = MappingProxyType(
    {
        "enabled": CONNECTORS,
        "tasks.max": ("source", "checkpoint"),
        "admin.timeout.ms": CONNECTORS,
        "lockstep.state": CONNECTORS,
        "lockstep.auto.restart.enabled": CONNECTORS,
        "lockstep.auto.restart.max": CONNECTORS,
    }
)
"""The keys that a connector may have for itself besides those of its clients, each with these connectors."""

_BOTH: tuple[ConnectorName, ...] = ("source", "checkpoint")


def _keys(connectors: tuple[ConnectorName, ...], names: str) -> dict[str, tuple[ConnectorName, ...]]:
    return dict.fromkeys(names.split(), connectors)


_READERS: Mapping[str, tuple[ConnectorName, ...]] = MappingProxyType(
    {
        **_keys(
            ("source",),
            """
            config.property.filter.class config.properties.exclude config.properties.blacklist use.defaults.from
            refresh.topics.enabled refresh.topics.interval.seconds sync.topic.configs.enabled
            sync.topic.configs.interval.seconds sync.topic.acls.enabled sync.topic.acls.interval.seconds
            replication.factor offset-syncs.topic.replication.factor offset.lag.max heartbeats.replication.enabled
            exactly.once.support transaction.boundary transaction.boundary.interval.ms
            use.incremental.alter.configs add.source.alias.to.metrics
            """,
        ),
        **_keys(
            _BOTH,
            """
            topics topics.exclude topics.blacklist topic.filter.class offset-syncs.topic.location
            emit.offset-syncs.enabled consumer.poll.timeout.ms
            """,
        ),
        **_keys(
            ("checkpoint",),
            """
            groups groups.exclude groups.blacklist group.filter.class refresh.groups.enabled
            refresh.groups.interval.seconds emit.checkpoints.enabled emit.checkpoints.interval.seconds
            sync.group.offsets.enabled sync.group.offsets.interval.seconds checkpoints.topic.replication.factor
            """,
        ),
        **_keys(
            ("heartbeat",),
            "emit.heartbeats.enabled emit.heartbeats.interval.seconds heartbeats.topic.replication.factor",
        ),
    }
)


def connector_name(connector: Connector) -> ConnectorName:
    """Return the name of a connector in keys."""
    return _NAMES[connector]


def connectors_reading(key: str) -> tuple[ConnectorName, ...]:
    """Return the connectors that read a key; all three if the key is not known to be read by some only."""
    return _READERS.get(key, CONNECTORS)


def connector_prefix(connector: ConnectorName) -> str:
    """Return the prefix of the keys that are this connector's alone, behind the flow."""
    return f"{PREFIX}{connector}."


def own_key(key: str) -> tuple[str, str] | None:
    """Return the connector's name, known or not, and the key, of a line `lockstep.connector.NAME.KEY`, or None."""
    if not key.startswith(PREFIX):
        return None
    name, _, inner = key.removeprefix(PREFIX).partition(".")
    return name, inner


def client_kind(key: str) -> tuple[ClientKind, str] | None:
    """Return the kind of client and the property of a key `[source.|target.]KIND.[override.]PROPERTY`, or None."""
    inner = key.removeprefix("source.").removeprefix("target.")
    for kind in get_args(ClientKind):
        if inner.startswith(f"{kind}."):
            name = inner.removeprefix(f"{kind}.")
            return kind, name.removeprefix("override.") if kind == "producer" and inner == key else name
    return None
