"""A file's checked lines as the settings of each flow, and what several lines must agree on.

Pure. Every value has been judged on its own before (`check`); here a value that does not parse is a programmer's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import permutations
from typing import TypeVar

from lockstep_config import layering, values
from lockstep_config.check import Findings
from lockstep_config.client_keys import CLIENT, ClientKind
from lockstep_config.keys import IDENTITY_POLICIES, KEYS
from lockstep_config.layering import Effective, Layers
from lockstep_config.librdkafka import translated
from lockstep_config.model import (
    AclSyncSettings,
    AutoRestart,
    AutoRestarts,
    CheckpointSettings,
    ClientProperties,
    Cluster,
    CompressionSettings,
    ControlSettings,
    DataPlaneSettings,
    FetchSettings,
    FlowSettings,
    HeartbeatSettings,
    TopicSyncSettings,
)
from lockstep_config.our_keys import MM2_VERSION, START_TIMESTAMP
from lockstep_config.per_topic import PerTopic, per_topic
from lockstep_config.problems import Problem
from lockstep_config.spark import CONF_PREFIX, MASTER, SparkSettings, check_together
from lockstep_config.values import BadValue
from lockstep_protocol.filters import ConfigPropertyFilter, NameFilter
from lockstep_protocol.names import Flow, progress_topic, state_topic
from lockstep_protocol.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_protocol.versions import RuleSet

__all__ = ["cluster_of", "flow_settings", "flows_of", "shadowed", "with_opposites"]

LONGEST_FLUSH = timedelta(seconds=1)
"""Progress is written at least this often, whatever `offset.flush.interval.ms` says: a crash re-reads this much."""

V = TypeVar("V")

_LEGAL_IN_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class _Reader:
    """The effective settings of one flow's connectors, or of the worker on its target, with the table's defaults."""

    layers: Layers
    flow: Flow
    of_worker: bool = False

    def found(self, key: str) -> Effective | None:
        read = layering.worker if self.of_worker else layering.connector
        found = read(self.layers, self.flow, key)
        if found is None and not self.of_worker:
            old = next((name for name, known in KEYS.items() if known.renamed_to == key), None)
            found = layering.connector(self.layers, self.flow, old) if old else None
        return found

    def text(self, key: str) -> str:
        found = self.found(key)
        return values.string(found.value if found else KEYS[key].default or "")

    def boolean(self, key: str) -> bool:
        return values.boolean(self.text(key))

    def integer(self, key: str) -> int:
        return values.integer(self.text(key))

    def integer_if_set(self, key: str) -> int | None:
        return values.integer(self.text(key)) if self.found(key) else None

    def seconds(self, key: str) -> timedelta:
        return timedelta(seconds=self.integer(key))

    def milliseconds(self, key: str) -> timedelta:
        return timedelta(milliseconds=self.integer(key))

    def choice(self, key: str) -> str:
        return values.choice(self.text(key), KEYS[key].choices)

    def per_topic(self, key: str, value: Callable[[str], V]) -> PerTopic[V | None]:
        return per_topic(self.text(key), value, None)

    def policy(self, key: str) -> PerTopic[str]:
        choices = KEYS[key].choices
        return per_topic(self.text(key), lambda own: values.choice(own, choices), choices[0])

    def elements(self, key: str, default: str | None = None) -> tuple[str, ...]:
        """`default` instead of the table's."""
        return values.list_of(self.text(key) if default is None or self.found(key) else default)


def flows_of(layers: Layers, aliases: Sequence[str]) -> tuple[Flow, ...]:
    """The ordered pairs that run anything: enabled for the pair, or with heartbeats (`mm2.md` §5.5).

    A top-level `enabled` starts no pair, as in MM2; where heartbeats run anyway it enables them (`flow_settings`).
    """
    pairs = (Flow(source, target) for source, target in permutations(aliases, 2))
    return tuple(flow for flow in pairs if _enabled_for_pair(layers, flow) or _heartbeats(layers, flow))


def cluster_of(layers: Layers, alias: str, flow: Flow | None = None) -> Cluster:
    """A cluster of the file; with `flow`, as a side of that flow."""
    properties = _texts(layering.connection(layers, alias, flow))
    bootstrap = ",".join(values.list_of(properties.get("bootstrap.servers", "")))
    properties["bootstrap.servers"] = bootstrap
    properties["security.protocol"] = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    return Cluster(alias=alias, bootstrap=bootstrap, properties=properties)


def flow_settings(layers: Layers, flow: Flow, findings: Findings) -> FlowSettings:
    """All settings of one flow; what does not fit together goes into `findings`."""
    of = _Reader(layers, flow)
    worker = _Reader(layers, flow, of_worker=True)
    enabled = of.boolean("enabled")
    rules = values.version(of.text(MM2_VERSION))
    checkpoint = _checkpoint(of, enabled)
    if enabled:
        _check_offset_syncs(of, findings)
        _check_checkpoints(of, findings)
    _check_separator(of, findings)
    plane = _data_plane(layers, flow, of, worker, enabled)
    _check_recompress(of, plane, findings)
    _check_exactly_once(of, plane, findings)
    _check_spark(layers, plane, findings)
    group_id = worker.text("group.id") if worker.found("group.id") else None
    return FlowSettings(
        flow=flow,
        enabled=enabled,
        source=cluster_of(layers, flow.source, flow),
        target=cluster_of(layers, flow.target, flow),
        group_id=None if group_id in ("", f"{flow.source}-mm2") else group_id,
        policy=_policy(of, rules),
        topics=NameFilter(of.elements("topics"), of.elements("topics.exclude", rules.topics_exclude)),
        groups=NameFilter(of.elements("groups"), of.elements("groups.exclude")),
        config_properties=ConfigPropertyFilter(
            of.elements("config.properties.exclude", rules.config_properties_exclude),
            "source" if of.choice("use.defaults.from") == "source" else "target",
        ),
        topic_sync=TopicSyncSettings(
            refresh_enabled=of.boolean("refresh.topics.enabled"),
            refresh_every=of.seconds("refresh.topics.interval.seconds"),
            sync_configs=of.boolean("sync.topic.configs.enabled"),
            sync_configs_every=of.seconds("sync.topic.configs.interval.seconds"),
            replication_factor=of.integer("replication.factor"),
            heartbeats_replicated=of.boolean("heartbeats.replication.enabled"),
        ),
        acl_sync=AclSyncSettings(
            enabled=enabled and of.boolean("sync.topic.acls.enabled"),
            every=of.seconds("sync.topic.acls.interval.seconds"),
            prefixed=of.boolean("lockstep.acls.prefixed"),
            groups=of.boolean("lockstep.acls.groups"),
            delete=of.boolean("lockstep.acls.delete"),
            delete_max=of.integer("lockstep.acls.delete.max"),
        ),
        checkpoint=checkpoint,
        heartbeat=HeartbeatSettings(
            enabled=of.boolean("emit.heartbeats.enabled"),
            every=of.seconds("emit.heartbeats.interval.seconds"),
            topic_replication_factor=of.integer("heartbeats.topic.replication.factor"),
        ),
        data_plane=plane,
        control=_control(of, worker, flow),
        clients=_clients(layers, flow, findings),
        rules=rules,
        auto_restart=_auto_restarts(of, findings),
        admin_timeout=of.milliseconds("admin.timeout.ms"),
    )


def _checkpoint(of: _Reader, enabled: bool) -> CheckpointSettings:
    emits = of.boolean("emit.checkpoints.enabled") and of.boolean("emit.offset-syncs.enabled")
    return CheckpointSettings(
        enabled=enabled and emits,
        emit_every=of.seconds("emit.checkpoints.interval.seconds"),
        refresh_groups=of.boolean("refresh.groups.enabled"),
        refresh_groups_every=of.seconds("refresh.groups.interval.seconds"),
        sync_group_offsets=of.boolean("sync.group.offsets.enabled"),
        sync_group_offsets_every=of.seconds("sync.group.offsets.interval.seconds"),
        topic_replication_factor=of.integer("checkpoints.topic.replication.factor"),
        tasks_max=of.integer_if_set("tasks.max"),
        opposite=of.text("lockstep.checkpoint.opposite") or None,
    )


def with_opposites(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with the state topic of the file's flow in the opposite direction, unless it names one itself."""
    topics = {s.flow: state_topic(s.flow, s.group_id) for s in flows if s.enabled}
    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, opposite=topics.get(Flow(s.flow.target, s.flow.source))))
        if s.checkpoint.opposite is None
        else s
        for s in flows
    )


def _auto_restarts(of: _Reader, findings: Findings) -> AutoRestarts:
    one = AutoRestart(
        enabled=of.boolean("lockstep.auto.restart.enabled"),
        max_restarts=of.integer_if_set("lockstep.auto.restart.max"),
    )
    found = of.found("lockstep.auto.restart.max")
    if found and not one.enabled:
        findings.without_effect(found.entry, "lockstep.auto.restart.enabled=false: nothing is started again")
    return AutoRestarts(source=one, checkpoint=one, heartbeat=one)


def _data_plane(layers: Layers, flow: Flow, of: _Reader, worker: _Reader, enabled: bool) -> DataPlaneSettings:
    consumer = _texts(layering.client(layers, flow, "source", "consumer"))
    producer = _texts(layering.record_producer(layers, flow))
    fetch = FetchSettings()
    committed = _chosen(consumer, "consumer", "isolation.level", "read_uncommitted") == "read_committed"
    latest = _chosen(consumer, "consumer", "auto.offset.reset", "earliest") == "latest"
    return DataPlaneSettings(
        enabled=enabled,
        tasks_max=of.integer_if_set("tasks.max"),
        offset_lag_max=of.integer("offset.lag.max"),
        offset_syncs_location="target" if of.choice("offset-syncs.topic.location") == "target" else "source",
        emit_offset_syncs=of.boolean("emit.offset-syncs.enabled"),
        offset_syncs_replication_factor=of.integer("offset-syncs.topic.replication.factor"),
        isolation_level="read_committed" if committed else "read_uncommitted",
        auto_offset_reset="latest" if latest else "earliest",
        start_timestamp=of.per_topic(START_TIMESTAMP, values.moment),
        fetch=FetchSettings(
            max_wait_ms=values.integer(consumer.get("fetch.max.wait.ms", str(fetch.max_wait_ms))),
            min_bytes=values.integer(consumer.get("fetch.min.bytes", str(fetch.min_bytes))),
            max_bytes=values.integer(consumer.get("fetch.max.bytes", str(fetch.max_bytes))),
            max_partition_bytes=values.integer(
                consumer.get("max.partition.fetch.bytes", str(fetch.max_partition_bytes))
            ),
            grows="max.partition.fetch.bytes" not in consumer,
            rack=consumer.get("client.rack", "").strip(),
            replica_lease_s=values.integer(consumer.get("metadata.max.age.ms", "300000")) / 1e3,
        ),
        compression_type=_chosen(producer, "producer", "compression.type", None),
        compression=_compression(of, producer),
        max_in_flight_bytes=of.integer("lockstep.max.in.flight.bytes"),
        max_bytes_per_s=of.per_topic("lockstep.max.bytes.per.second", values.integer),
        on_gap=of.policy("lockstep.on.gap"),
        on_recreate=of.policy("lockstep.on.recreate"),
        on_doubt=of.policy("lockstep.on.doubt"),
        on_refused=of.policy("lockstep.on.refused"),
        offset_flush_every=min(worker.milliseconds("offset.flush.interval.ms"), LONGEST_FLUSH),
        fence=of.choice("lockstep.fence"),
        exactly_once=worker.choice("exactly.once.source.support") == "enabled",
        transaction_interval=_transaction_interval(of, worker),
        transaction_timeout=_transaction_timeout(producer),
        spark=_spark(layers),
    )


def _transaction_interval(of: _Reader, worker: _Reader) -> timedelta | None:
    """None: as soon as it can (`transaction.boundary=poll`). Connect's own default is its flush interval."""
    if of.choice("transaction.boundary") == "poll":
        return None
    key = "transaction.boundary.interval.ms"
    return of.milliseconds(key) if of.found(key) else worker.milliseconds("offset.flush.interval.ms")


def _transaction_timeout(producer: Mapping[str, str]) -> timedelta:
    usual = DataPlaneSettings().transaction_timeout
    text = producer.get("transaction.timeout.ms")
    return usual if text is None else timedelta(milliseconds=values.integer(text))


def _spark(layers: Layers) -> SparkSettings:
    master = layers.top.get(MASTER)
    return SparkSettings(
        master=master.value.strip() if master else "",
        conf={
            key.removeprefix(CONF_PREFIX): entry.value.strip()
            for key, entry in layers.top.items()
            if key.startswith(CONF_PREFIX)
        },
    )


def _check_spark(layers: Layers, plane: DataPlaneSettings, findings: Findings) -> None:
    try:
        check_together(plane.spark.master, plane.spark.conf)
    except BadValue as exc:
        findings.problem(layers.top[MASTER], str(exc))


def _compression(of: _Reader, producer: Mapping[str, str]) -> CompressionSettings:
    java = CompressionSettings()
    return CompressionSettings(
        recompress=of.boolean("lockstep.recompress"),
        gzip_level=values.integer(producer.get("compression.gzip.level", str(java.gzip_level))),
        lz4_level=values.integer(producer.get("compression.lz4.level", str(java.lz4_level))),
        zstd_level=values.integer(producer.get("compression.zstd.level", str(java.zstd_level))),
    )


def _check_recompress(of: _Reader, plane: DataPlaneSettings, findings: Findings) -> None:
    found = of.found("lockstep.recompress")
    if found and plane.compression.recompress and plane.compression_type is None:
        findings.note(
            found.entry,
            f"is true, but no compression.type of the producer on {of.flow.target} says into what: batches pass as "
            "they are",
        )


def _check_exactly_once(of: _Reader, plane: DataPlaneSettings, findings: Findings) -> None:
    found = of.found("exactly.once.support")
    if not (found and plane.enabled and of.choice("exactly.once.support") == "required"):
        return
    lacking = []
    if not plane.exactly_once:
        lacking.append(f"{of.flow.target}.exactly.once.source.support=enabled")
    if plane.isolation_level != "read_committed":
        lacking.append(f"{of.flow.source}.consumer.isolation.level=read_committed")
    if lacking:
        findings.problem(found.entry, f"is required, so {of.flow} needs {' and '.join(lacking)}")


def _control(of: _Reader, worker: _Reader, flow: Flow) -> ControlSettings:
    storage = worker.integer("offset.storage.replication.factor")
    ours = of.found("lockstep.control.replication.factor")
    topic = worker.found("offset.storage.topic")
    return ControlSettings(
        replication_factor=values.integer(ours.value) if ours else storage,
        storage_replication_factor=storage,
        offset_storage_partitions=worker.integer("offset.storage.partitions"),
        offset_storage_topic=topic.value.strip() if topic else progress_topic(flow),
        progress_connector=of.text("lockstep.progress.connector"),
    )


def _policy(of: _Reader, rules: RuleSet) -> ReplicationPolicy:
    separator = of.text("replication.policy.separator")
    internal = of.boolean("replication.policy.internal.topic.separator.enabled") and rules.separator_in_internal
    if of.text("replication.policy.class") in IDENTITY_POLICIES:
        return IdentityReplicationPolicy(of.flow.source, separator, internal, rules.narrow_internal)
    return DefaultReplicationPolicy(separator, internal, rules.narrow_internal)


def _clients(layers: Layers, flow: Flow, findings: Findings) -> ClientProperties:
    properties: dict[str, Mapping[str, str]] = {}
    for side in layering.SIDES:
        for kind in CLIENT:
            found = layering.client(layers, flow, side, kind)
            _check_translation(found, kind, flow.source if side == "source" else flow.target, findings)
            properties[f"{side}_{kind}"] = _texts(found)
    producer = layering.record_producer(layers, flow)
    _check_translation(producer, "producer", flow.target, findings)
    return ClientProperties(**properties, data_producer=_texts(producer))


def _check_translation(found: Mapping[str, Effective], kind: ClientKind, alias: str, findings: Findings) -> None:
    for key, why in translated(_texts(found), kind).refused:
        if key in found:
            findings.problem(found[key].entry, why)
        else:
            findings.problems.append(Problem(findings.file, 0, f"{alias}.{key}", why))


def _check_offset_syncs(of: _Reader, findings: Findings) -> None:
    """KIP-1031: who writes no offset syncs must not say where they go (`mm2.md` §5.2)."""
    if of.boolean("emit.offset-syncs.enabled"):
        return
    for key in ("offset-syncs.topic.replication.factor", "offset-syncs.topic.location"):
        found = of.found(key)
        if found:
            findings.problem(
                found.entry, f"is set, but {of.flow} writes no offset syncs (emit.offset-syncs.enabled=false)"
            )
    off = of.found("emit.offset-syncs.enabled")
    if off and of.boolean("emit.checkpoints.enabled"):
        findings.note(
            off.entry, f"is false, so {of.flow} has no checkpoints: set emit.checkpoints.enabled=false to say so"
        )


def _check_checkpoints(of: _Reader, findings: Findings) -> None:
    """MM2 refuses a checkpoint connector that writes none (`mm2.md` §7 no. 32); here the rest of the flow goes on."""
    off = of.found("emit.checkpoints.enabled")
    if off is None or of.boolean("emit.checkpoints.enabled"):
        return
    unmoved = " and moves no group, although sync.group.offsets.enabled is true"
    findings.note(
        off.entry,
        f"is false, so {of.flow} has no checkpoints{unmoved if of.boolean('sync.group.offsets.enabled') else ''}",
    )


def _check_separator(of: _Reader, findings: Findings) -> None:
    found = of.found("replication.policy.separator")
    if found and not _LEGAL_IN_TOPIC.fullmatch(found.value.strip()):
        message = f"is {found.value!r}, which a topic's name cannot hold: use letters, digits, '.', '_', '-'"
        findings.problem(found.entry, message)


def _enabled_for_pair(layers: Layers, flow: Flow) -> bool:
    own = layers.of_flow(flow).get("enabled")
    return own is not None and values.boolean(own.value)


def _heartbeats(layers: Layers, flow: Flow) -> bool:
    return _Reader(layers, flow).boolean("emit.heartbeats.enabled")


def _chosen(properties: Mapping[str, str], kind: ClientKind, key: str, default: str | None) -> str | None:
    return values.choice(properties[key], CLIENT[kind][key].choices) if key in properties else default


def _texts(found: Mapping[str, Effective]) -> dict[str, str]:
    return {key: effective.value for key, effective in found.items()}


def shadowed(layers: Layers, flows: Sequence[Flow]) -> Iterator[tuple[Effective, Effective]]:
    """Lines `S->T.source.cluster.x` that count for nothing because `S.x` or `x` does, with the line that counts."""
    for flow in flows:
        for side, alias in (("source", flow.source), ("target", flow.target)):
            counting = layering.connection(layers, alias)
            for key, entry in layers.of_flow(flow).items():
                name = key.removeprefix(f"{side}.cluster.")
                if name != key and name in counting:
                    yield Effective(entry.value, entry), counting[name]
