"""The checked lines of a file as the settings of each flow.

This module is pure. Every value has been judged on its own before (`check_line`): no cell here has a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

from lockstep_config.clients.librdkafka import translated
from lockstep_config.flow.connector_settings import (
    AclSyncSettings,
    AutoRestart,
    AutoRestarts,
    CheckpointSettings,
    HeartbeatSettings,
    StatedPhase,
    StatedPhases,
    TopicSyncSettings,
)
from lockstep_config.flow.cross_checks import check_agreements, check_rules_beside_transforms
from lockstep_config.flow.filters import read_filters
from lockstep_config.flow.mm1_flow import RESET, check_legacy, legacy_defaults, legacy_settings
from lockstep_config.flow.model import (
    ClientProperties,
    Cluster,
    CompressionSettings,
    ConnectorSettings,
    ControlSettings,
    DataPlaneSettings,
    FetchSettings,
    FlowSettings,
)
from lockstep_config.flow.reader import Reader, cell_texts
from lockstep_config.flow.record_transforms import read_transforms
from lockstep_config.keys.client_keys import CLIENT, ClientKind
from lockstep_config.keys.connector_keys import CONNECTORS, ConnectorName, client_kind, connector_prefix
from lockstep_config.keys.lockstep_keys import CYCLES, MM2_VERSION, STATE, TRACING
from lockstep_config.keys.lockstep_settings import SwitchSettings, VerifySettings
from lockstep_config.keys.spark_settings import CONF_PREFIX, MASTER, SparkSettings
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_rules.policy import LegacyReplicationPolicy
from lockstep_rules.versions import RuleSet
from lockstep_state.names import Flow, progress_topic

LONGEST_FLUSH = timedelta(seconds=1)
"""The longest time between two writes of progress, also with a longer `offset.flush.interval.ms`.

After a crash the records of this time are read again.
"""


_FETCH = {
    "fetch.max.wait.ms": "max_wait_ms",
    "fetch.min.bytes": "min_bytes",
    "fetch.max.bytes": "max_bytes",
    "max.partition.fetch.bytes": "max_partition_bytes",
}
METADATA_AGE = "metadata.max.age.ms"
_LEVELS = {f"compression.{codec}.level": f"{codec}_level" for codec in ("gzip", "lz4", "zstd")}


def find_flows(layers: Layers, aliases: Sequence[str]) -> tuple[Flow, ...]:
    """Return the ordered pairs of clusters that run anything: enabled for the pair, or with heartbeats.

    See `mm2-behaviour.md` §5.5. If `enabled` is no boolean, MM2 takes the pair as not enabled and its connectors
    refuse to start: nothing runs. A top-level `enabled` starts no pair, as in MM2. If heartbeats run anyway it
    enables them (`flow_settings`).
    """
    pairs = (Flow(source, target) for source, target in permutations(aliases, 2))
    readers = (Reader(layers, flow, defaults=legacy_defaults(layers, flow)) for flow in pairs)
    return tuple(
        reader.flow
        for reader in readers
        if reader.value("enabled") is not None and (_enabled_for_pair(layers, reader.flow) or _heartbeats(reader))
    )


def read_cluster(layers: Layers, alias: str, flow: Flow | None = None) -> Cluster:
    """Return a cluster of the file; with `flow`, as a side of that flow."""
    cells = precedence.connection(layers, alias, flow)
    servers, protocol = cells.get("bootstrap.servers"), cells.get("security.protocol")
    bootstrap = ",".join(servers.value or ()) if servers else ""
    properties = cell_texts(cells)
    properties["bootstrap.servers"] = bootstrap
    properties["security.protocol"] = (protocol and protocol.value) or "PLAINTEXT"
    return Cluster(alias=alias, bootstrap=bootstrap, properties=properties)


def flow_settings(layers: Layers, flow: Flow, findings: Diagnostics) -> FlowSettings:
    """Return all settings of one flow. What does not fit together is reported to `findings`."""
    reader = Reader(layers, flow, defaults=legacy_defaults(layers, flow))
    connectors = {name: replace(reader, connector=name) for name in CONNECTORS}
    source, checkpoints, heartbeats = connectors.values()
    worker = Reader(layers, flow, of_worker=True)
    enabled: bool = reader.value("enabled")
    copies = enabled and _runs(source)
    rules: RuleSet = reader.value(MM2_VERSION)
    checkpoint = _checkpoint(checkpoints, enabled and _runs(checkpoints))
    plane = _data_plane(layers, flow, source, worker, copies, findings)
    filters = read_filters(layers, _with_defaults_of(rules, reader), rules, findings)
    plane = replace(plane, record_rules=filters.rules)
    policy = (
        filters.policy
        if plane.legacy is None
        else LegacyReplicationPolicy(flow.source, renames=getattr(filters.policy, "renames", ()))
    )
    check_agreements(layers, reader, plane, policy, findings)
    check_legacy(reader, findings)
    group_id = worker.value("group.id") if worker.cell("group.id") else None
    settings = FlowSettings(
        flow=flow,
        aliases=precedence.aliases(layers, flow),
        enabled=enabled,
        source=read_cluster(layers, flow.source, flow),
        target=read_cluster(layers, flow.target, flow),
        group_id=None if group_id in ("", f"{flow.source}-mm2") else group_id,
        policy=policy,
        topics=filters.topics,
        groups=filters.groups,
        config_properties=filters.config_properties,
        topic_sync=reader.settings(
            TopicSyncSettings,
            keeps_counts=plane.by_key,
            cycles_exact=reader.value(CYCLES) == "exact",
            aliases=precedence.every_alias(layers, flow),
        ),
        acl_sync=reader.settings(AclSyncSettings, enabled=copies and reader.value("sync.topic.acls.enabled")),
        checkpoint=checkpoint,
        heartbeat=reader.settings(HeartbeatSettings, enabled=_heartbeats(reader) and _runs(heartbeats)),
        data_plane=plane,
        control=_control(reader, worker, flow),
        tracing=_tracing(layers),
        clients=_clients(layers, flow, findings),
        rules=rules,
        auto_restart=AutoRestarts(**{name: _auto_restart(own, findings) for name, own in connectors.items()}),
        states=StatedPhases(**{name: _stated(own, findings) for name, own in connectors.items()}),
        switch=reader.settings(SwitchSettings),
        admin_timeout=source.value("admin.timeout.ms"),
        checkpoint_connector=_connector_settings(checkpoints, findings),
        heartbeat_connector=_connector_settings(heartbeats, findings),
    )
    check_rules_beside_transforms(settings, reader, findings)
    return settings


def _with_defaults_of(rules: RuleSet, reader: Reader) -> Reader:
    """Return the reader with the default exclusions of this MM2 version, unless the flow has defaults of its own."""
    defaults = {"topics.exclude": rules.topics_exclude, "config.properties.exclude": rules.config_properties_exclude}
    return replace(reader, defaults=defaults | dict(reader.defaults))


def _data_plane(
    layers: Layers, flow: Flow, reader: Reader, worker: Reader, enabled: bool, findings: Diagnostics
) -> DataPlaneSettings:
    """Return the settings of the data plane.

    Args:
        layers: The lines of the file.
        flow: The flow.
        reader: A reader of the flow's source connector.
        worker: A reader of the Connect worker on the flow's target.
        enabled: The flow copies records.
        findings: Takes what is wrong with its transforms.
    """
    consumer = precedence.client(layers, flow, "source", "consumer")
    producer = precedence.record_producer(layers, flow)
    legacy = legacy_settings(reader)
    by_key = legacy is not None and legacy.partitioning == "key"
    committed = _value(consumer, "isolation.level", "read_uncommitted") == "read_committed"
    latest = _value(consumer, "auto.offset.reset", RESET if legacy else "earliest") == "latest"
    flush_every: timedelta = worker.value("offset.flush.interval.ms")
    return reader.settings(
        DataPlaneSettings,
        enabled=enabled,
        isolation_level="read_committed" if committed else "read_uncommitted",
        auto_offset_reset="latest" if latest else "earliest",
        fetch=FetchSettings(
            **_numbers(consumer, "consumer", _FETCH),
            grows="max.partition.fetch.bytes" not in consumer,
            rack=_value(consumer, "client.rack", "").strip(),
            replica_lease_s=CLIENT["consumer"][METADATA_AGE].nearest(_value(consumer, METADATA_AGE, 300_000)) / 1e3,
        ),
        compression_type=_value(producer, "compression.type", None),
        compression=reader.settings(CompressionSettings, **_numbers(producer, "producer", _LEVELS)),
        offset_flush_every=min(flush_every, LONGEST_FLUSH),
        offset_flush_interval=flush_every,
        exactly_once=worker.value("exactly.once.source.support") == "enabled" or by_key,
        transaction_interval=_transaction_interval(reader, flush_every),
        transaction_timeout=timedelta(milliseconds=_value(producer, "transaction.timeout.ms", 60_000)),
        spark=_spark(layers),
        legacy=legacy,
        verify=reader.settings(VerifySettings),
        transforms=read_transforms(layers, reader, findings),
    )


def _transaction_interval(reader: Reader, flush_every: timedelta) -> timedelta | None:
    """Return how long a transaction stays open; None if it ends as soon as it can (`transaction.boundary=poll`).

    Connect's own default is its flush interval.
    """
    if reader.value("transaction.boundary") == "poll":
        return None
    key = "transaction.boundary.interval.ms"
    interval: timedelta = reader.value(key) if reader.cell(key) else flush_every
    return interval


def _spark(layers: Layers) -> SparkSettings:
    master = layers.top.get(MASTER)
    return SparkSettings(
        master=master.value if master else "",
        conf={
            key.removeprefix(CONF_PREFIX): cell.entry.value.strip()
            for key, cell in layers.top.items()
            if key.startswith(CONF_PREFIX)
        },
    )


def _numbers(cells: Mapping[str, Cell], kind: ClientKind, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of settings that the properties of a client set, as the note on each line says."""
    return {field: CLIENT[kind][key].nearest(int(cells[key].value)) for key, field in fields.items() if key in cells}


def _value(cells: Mapping[str, Cell], key: str, default: Any) -> Any:
    return cells[key].value if key in cells else default


def _runs(connector: Reader) -> bool:
    """Return whether a connector takes part in its flow.

    `enabled` at the top or of the flow is about all connectors, and false for most pairs of clusters. A connector's
    own line decides whether it takes part if the flow runs.
    """
    own = connector.layers.flow_lines(connector.flow).get(f"{connector_prefix(connector.connector or 'source')}enabled")
    return own is None or bool(own.value)


def _stated(connector: Reader, findings: Diagnostics) -> StatedPhase | None:
    cell = connector.cell(STATE)
    if cell is None or cell.value == "running":
        return None
    return StatedPhase(phase=cell.value, key=findings.place_of(cell.entry))


def _connector_settings(connector: Reader, findings: Diagnostics) -> ConnectorSettings | None:
    """Return the settings that a connector has for itself; None if it has none."""
    assert connector.connector is not None
    prefix = connector_prefix(connector.connector)
    own = [key for key in connector.layers.flow_lines(connector.flow) if key.startswith(prefix)]
    if not any(client_kind(key.removeprefix(prefix)) or key == f"{prefix}admin.timeout.ms" for key in own):
        return None
    return ConnectorSettings(
        clients=_clients(connector.layers, connector.flow, findings, connector.connector),
        admin_timeout=connector.value("admin.timeout.ms"),
    )


def _checkpoint(reader: Reader, enabled: bool) -> CheckpointSettings:
    emits = reader.value("emit.checkpoints.enabled") and reader.value("emit.offset-syncs.enabled")
    return reader.settings(
        CheckpointSettings,
        enabled=enabled and emits,
        follow_rewinds=reader.value("lockstep.groups.on.rewind") == "follow",
    )


def with_shared_acls(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with `acl_sync.shared`: other flows that may bring its ACLs to its target or its source.

    Only ACLs that keep their name can come that way: on topics under the identity policy, and on groups. A binding
    that one flow would delete may be another's, or may come round again. Filters only match names, so they are not
    compared with each other.
    """
    keeping = [s.flow for s in flows if _acls_keep_names(s)]
    return tuple(
        replace(s, acl_sync=replace(s.acl_sync, shared=_shared(s.flow, keeping))) if _acls_keep_names(s) else s
        for s in flows
    )


def _acls_keep_names(settings: FlowSettings) -> bool:
    acls = settings.acl_sync
    return acls.enabled and (acls.groups or settings.keeps_names)


def _shared(flow: Flow, flows: Sequence[Flow]) -> tuple[Flow, ...]:
    reached = {flow.target}
    while further := {f.target for f in flows if f.source in reached} - reached:
        reached |= further
    others = (f for f in flows if f != flow)
    return tuple(f for f in others if f.target == flow.target or (f.target == flow.source and f.source in reached))


def _auto_restart(reader: Reader, findings: Diagnostics) -> AutoRestart:
    settings = reader.settings(AutoRestart)
    limit = reader.entry("lockstep.auto.restart.max")
    if limit and not settings.enabled:
        findings.without_effect(limit, "lockstep.auto.restart.enabled=false: nothing is started again")
    return settings


def _tracing(layers: Layers) -> bool:
    """Return whether spans are sent. Tracing is of a process with all its flows: a flow's own line has no effect."""
    cell = layers.top.get(TRACING)
    return cell is not None and cell.value == "opentelemetry"


def _control(reader: Reader, worker: Reader, flow: Flow) -> ControlSettings:
    factor = reader.cell("lockstep.control.replication.factor")
    topic = reader.cell("offsets.storage.topic") or worker.cell("offset.storage.topic")
    return worker.settings(
        ControlSettings,
        replication_factor=factor.value if factor else worker.value("offset.storage.replication.factor"),
        offset_storage_topic=topic.value if topic else progress_topic(flow),
        progress_connector=reader.value("lockstep.progress.connector"),
    )


def _clients(
    layers: Layers, flow: Flow, findings: Diagnostics, connector: ConnectorName = "source"
) -> ClientProperties:
    properties: dict[str, Mapping[str, str]] = {}
    for side in precedence.SIDES:
        for kind in CLIENT:
            cells = precedence.client(layers, flow, side, kind, connector)
            _check_translation(cells, kind, flow.source if side == "source" else flow.target, findings)
            properties[f"{side}_{kind}"] = cell_texts(cells)
    producer = precedence.record_producer(layers, flow)
    _check_translation(producer, "producer", flow.target, findings)
    return ClientProperties(**properties, data_producer=cell_texts(producer))


def _check_translation(cells: Mapping[str, Cell], kind: ClientKind, alias: str, findings: Diagnostics) -> None:
    for key, reason in translated(cell_texts(cells), kind).refused:
        findings.problem(cells[key].entry if key in cells else f"{alias}.{key}", reason)


def _enabled_for_pair(layers: Layers, flow: Flow) -> bool:
    own = layers.flow_lines(flow).get("enabled")
    return own is not None and bool(own.value)


def _heartbeats(reader: Reader) -> bool:
    return bool(reader.value("emit.heartbeats.enabled"))
