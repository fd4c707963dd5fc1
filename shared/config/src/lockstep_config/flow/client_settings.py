"""Settings for the clients of a flow: confluent-kafka's (librdkafka) and our own connections.

Each function returns a new dict, for clients may write into it. It reads the cluster's keystores and truststores now,
so that renewed certificates count from the next call. It raises `StoresUnusable` for unusable stores. They were
usable when the configuration was loaded, so they are just being replaced, one after the other. All values are texts
but one, `oauth_cb` under OAUTHBEARER, which cannot be pickled: call these functions in the process that makes the
client.

`role` is one of MM2's (`mm2-behaviour.md` §5.4), such as `replication-consumer`, or a name of Lockstep's own. It ends
the `client.id`, so that brokers' logs and quotas see the same names as under MirrorMaker.

None of the consumers is in a group. librdkafka needs a `group.id` all the same, and asks brokers for the group's
coordinator, over and over while they refuse. Consumers of the target name a group that the flow's user may read
(`permissions`). Consumers of the source name none, for there is no group that they surely may read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lockstep_config.clients.librdkafka import max_idle_ms, stores_translated, translated, uses_sasl, uses_tls
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.tls import load_material, read_tls, ssl_context
from lockstep_config.clients.token_source import TokenCallback, shared_token_source
from lockstep_config.flow.model import Cluster, FlowSettings
from lockstep_config.keys.client_keys import CONNECTION, ClientKind, Untranslatable
from lockstep_config.resolve.precedence import Side
from lockstep_state.names import service_group

_CONNECTOR_OF_ROLE = (
    ("replication-", "MirrorSourceConnector"),
    ("offset-syncs-", "MirrorSourceConnector"),
    ("checkpoint", "MirrorCheckpointConnector"),
    ("heartbeats-", "MirrorHeartbeatConnector"),
)

LOCKSTEP = "Lockstep"


class StoresUnusable(OSError):
    """Certificates, keys or stores cannot be read now, or do not belong together. The text names the file."""


def source_consumer(settings: FlowSettings, role: str) -> dict[str, Any]:
    """Return the settings of a consumer on the source.

    It never commits. Without `auto.offset.reset` in the file it begins at the earliest offset.
    """
    return _consumer(settings, settings.clients.source_consumer, role)


def source_admin(settings: FlowSettings, role: str = "replication-source-admin") -> dict[str, Any]:
    """Return the settings of an admin client on the source."""
    return _client(settings, settings.clients.source_admin, "admin", role)


def source_producer(settings: FlowSettings, role: str) -> dict[str, Any]:
    """Return the settings of a producer on the source, to which a flow writes only on request."""
    return _producer(settings, settings.clients.source_producer, role)


def target_consumer(settings: FlowSettings, role: str) -> dict[str, Any]:
    """Return the settings of a consumer on the target. It never commits."""
    return _consumer(settings, settings.clients.target_consumer, role) | _permitted_group(settings)


def target_producer(settings: FlowSettings, role: str) -> dict[str, Any]:
    """Return the settings of a producer of facts on the target. Mirrored records never go through librdkafka."""
    return _producer(settings, settings.clients.target_producer, role)


def target_admin(settings: FlowSettings, role: str = "replication-target-admin") -> dict[str, Any]:
    """Return the settings of an admin client on the target."""
    return _client(settings, settings.clients.target_admin, "admin", role)


def offset_syncs_producer(settings: FlowSettings, role: str = "") -> dict[str, Any]:
    """Return the settings of a producer on the cluster that `offset-syncs.topic.location` names."""
    side = settings.data_plane.offset_syncs_location
    properties = settings.clients.source_producer if side == "source" else settings.clients.target_producer
    return _producer(settings, properties, role or f"offset-syncs-{side}-producer")


def offset_syncs_consumer(settings: FlowSettings, role: str = "") -> dict[str, Any]:
    """Return the settings of a consumer on the cluster that `offset-syncs.topic.location` names."""
    side, clients = settings.data_plane.offset_syncs_location, settings.clients
    properties = clients.source_consumer if side == "source" else clients.target_consumer
    conf = _consumer(settings, properties, role or f"offset-syncs-{side}-consumer", "MirrorCheckpointConnector")
    return conf if side == "source" else conf | _permitted_group(settings)


def connections(settings: FlowSettings, side: Side) -> list[dict[str, Any]]:
    """Return the settings of admin clients that connect to one side in each way in which the flow's clients do.

    Equal connections have one admin client.
    """
    return [connection_admin(settings, connection) for connection in _different_connections(settings, side)]


def connection_admin(settings: FlowSettings, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of an admin client that connects as a client with these properties does."""
    return _client(settings, connection_properties(properties), "admin", "connection")


def connection_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which a client connects and logs in."""
    return {key: properties[key] for key in properties if key in CONNECTION}


def connects_in_one_way(settings: FlowSettings, side: Side) -> bool:
    """Return whether all clients of a flow connect to one side in the same way, so that all can log in or none."""
    return len(_different_connections(settings, side)) == 1


def _different_connections(settings: FlowSettings, side: Side) -> list[Mapping[str, str]]:
    per_client = map(connection_properties, settings.clients.of_side(side).values())
    return list({tuple(sorted(connection.items())): connection for connection in per_client}.values())


def client_id(settings: FlowSettings, role: str, properties: Mapping[str, str], connector: str = "") -> str:
    """Return `[user's|]S->T|connector|role`, as MM2 names its clients.

    The user's part is the `client.id` of the client's properties. An empty `connector` is found by the role.
    """
    of_user = properties.get("client.id", "").strip()
    if not connector:
        connector = next((name for prefix, name in _CONNECTOR_OF_ROLE if role.startswith(prefix)), LOCKSTEP)
    return "|".join(part for part in (of_user, str(settings.flow), connector, role) if part)


def wire_connection(properties: Mapping[str, str], client_id: str, opening_s: float) -> dict[str, Any]:
    """Return the keyword arguments for `lockstep_kafka.wire.connection.Connection` from a client's Java properties.

    The files of certificates are read now, so that renewed ones count from the next call. A TLS context cannot be
    pickled: call this in the process that makes the connection.

    Raises:
        StoresUnusable: A certificate, key or store cannot be used.
    """
    idle_ms = max_idle_ms(properties)
    return {
        "client_id": client_id,
        "opening_s": opening_s,
        "max_idle_s": None if idle_ms is None else idle_ms / 1e3,
        **wire_security(properties),
    }


def wire_security(side: Cluster | Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments that are about security: `ssl_context` under TLS, `login` under SASL.

    Raises:
        StoresUnusable: A certificate, key or store cannot be used.
    """
    properties = side.properties if isinstance(side, Cluster) else side
    arguments: dict[str, Any] = {}
    if uses_tls(properties):
        with _stores():
            arguments["ssl_context"] = ssl_context(read_tls(properties))
    if uses_sasl(properties):
        arguments["login"] = read_login(properties)
    return arguments


@contextmanager
def _stores() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoresUnusable(str(exc)) from exc


def _consumer(settings: FlowSettings, properties: Mapping[str, str], role: str, connector: str = "") -> dict[str, Any]:
    conf = _client(settings, properties, "consumer", role, connector)
    conf.setdefault("auto.offset.reset", "earliest")
    return conf | {"enable.auto.commit": "false", "allow.auto.create.topics": "false"}


def _permitted_group(settings: FlowSettings) -> dict[str, str]:
    return {"group.id": service_group("topic-sync", settings.flow, settings.group_id)}


def _producer(settings: FlowSettings, properties: Mapping[str, str], role: str) -> dict[str, Any]:
    return _client(settings, properties, "producer", role) | {"acks": "all", "enable.idempotence": "true"}


def _client(
    settings: FlowSettings, properties: Mapping[str, str], kind: ClientKind, role: str, connector: str = ""
) -> dict[str, Any]:
    translation = translated(properties, kind)
    for key, reason in translation.refused:
        # A loaded configuration has no refused property. Properties made by hand may have one.
        raise Untranslatable(key, f"{key} {reason}")
    conf: dict[str, Any] = {**translation.settings}
    if uses_tls(properties):
        with _stores():
            conf |= stores_translated(load_material(read_tls(properties)))
    if uses_sasl(properties) and (tokens := read_login(properties).tokens) is not None:
        conf["oauth_cb"] = TokenCallback(shared_token_source(tokens))
    conf["client.id"] = client_id(settings, role, properties, connector)
    return conf
