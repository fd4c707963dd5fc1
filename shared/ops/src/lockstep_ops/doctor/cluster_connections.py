"""The connections of the clients of some flows to each cluster. Pure.

Usually a cluster has one: its own settings. Settings of a client (`A.consumer.security.protocol`,
`producer.override.sasl.jaas.config`) make others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import connection_properties
from lockstep_config.flow.rotation import by_client
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_rules.clusters.cluster_capabilities import Role, needed_apis

WORDS = {"data_producer": "record producer"}
"""The words for clients whose name differs from their kind."""

ConnectionKey = tuple[str, frozenset[tuple[str, str]]]
"""The alias of the cluster, and the connection's settings."""


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """One way in which clients connect to a cluster.

    `settings` and `side` are those of the first flow that connects so. With `is_main` it is the connection that
    findings about the cluster without a client's name are about.
    """

    subject: str
    settings: FlowSettings
    side: Side
    properties: Mapping[str, str]
    is_main: bool

    @property
    def alias(self) -> str:
        return _alias(self.settings, self.side)

    @property
    def bootstrap(self) -> str:
        return self.properties.get("bootstrap.servers", "")


@dataclass(frozen=True, slots=True)
class _Use:
    """A client, and the flow and side of its connection."""

    settings: FlowSettings
    side: Side
    client: str


def _alias(settings: FlowSettings, side: Side) -> str:
    """Return the alias of the cluster on one side of a flow."""
    return settings.flow.source if side == "source" else settings.flow.target


def _key(settings: FlowSettings, side: Side, properties: Mapping[str, str]) -> ConnectionKey:
    """Return the key of a connection. It is the same for all clients that connect alike."""
    return _alias(settings, side), frozenset(connection_properties(properties).items())


def main_key(settings: FlowSettings, side: Side) -> ConnectionKey:
    """Return the key of the flow's admin client, which asks the cluster everything."""
    clients = settings.clients
    return _key(settings, side, clients.source_admin if side == "source" else clients.target_admin)


def cluster_connections(flows: Sequence[FlowSettings]) -> dict[ConnectionKey, ClusterConnection]:
    """Return the connections of all clients by key, in the order of the flows.

    The main one of each cluster comes before its others.
    """
    uses: dict[ConnectionKey, list[_Use]] = {}
    for settings in flows:
        for side in SIDES:
            uses.setdefault(main_key(settings, side), [])
            for field, properties in by_client(settings, side).items():
                use = _Use(settings, side, WORDS.get(field) or field.removeprefix(f"{side}_"))
                uses.setdefault(_key(settings, side, properties), []).append(use)
    aliases = list(dict.fromkeys(alias for alias, _ in uses))
    connections: dict[ConnectionKey, ClusterConnection] = {}
    for alias in aliases:
        alias_uses = [(key, key_uses) for key, key_uses in uses.items() if key[0] == alias]
        every_use = [use for _, key_uses in alias_uses for use in key_uses]
        for ordinal, (key, key_uses) in enumerate(alias_uses):
            is_main = ordinal == 0
            subject = alias if is_main else f"{alias} ({_clients(key_uses, every_use)})"
            settings, side = key_uses[0].settings, key_uses[0].side
            connections[key] = ClusterConnection(subject, settings, side, dict(key[1]), is_main)
    return connections


def required_requests(flows: Iterable[FlowSettings], alias: str) -> frozenset[str]:
    """Return the requests (of `kafka_apis.APIS`) that the flows cannot do without on one cluster."""
    roles = ((settings, Role.TARGET if settings.flow.target == alias else Role.SOURCE) for settings in flows)
    needed = (
        needed_apis(role, transactions=settings.data_plane.exactly_once, keeps_names=settings.keeps_names)
        for settings, role in roles
    )
    return needed_apis(Role.SOURCE, transactions=False, keeps_names=False).union(*needed)


def _clients(uses: Iterable[_Use], every: Sequence[_Use]) -> str:
    """Return the names of clients, each with its flow if clients of other flows connect otherwise."""
    flows: dict[str, list[str]] = {}
    for use in uses:
        flows.setdefault(use.client, []).append(str(use.settings.flow))
    words = []
    for client, names in flows.items():
        others = {str(use.settings.flow) for use in every if use.client == client} - set(names)
        words.append(f"{', '.join(dict.fromkeys(names))} {client}" if others else client)
    return ", ".join(words)
