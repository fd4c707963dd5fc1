"""The frozen model that every service is given: typed units, MM2's defaults, checked once.

A `Configuration` is a plain value: it compares, pickles (it travels to Spark's workers) and never changes. Intervals
are `timedelta`; a replication factor of -1 means the broker's default; secrets are kept out of `repr`. Defaults are
those of the keys (`key_field`). Services receive the one section that they need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from lockstep_config.flow.connector_settings import (
    NOTHING_STATED,
    AclSyncSettings,
    AutoRestarts,
    CheckpointSettings,
    HeartbeatSettings,
    StatedPhases,
    TopicSyncSettings,
)
from lockstep_config.flow.transform_settings import SeveralTransforms, TransformSettings, find_transform
from lockstep_config.keys.connector_keys import ConnectorName
from lockstep_config.keys.key_values import key_field
from lockstep_config.keys.lockstep_keys import LEGACY_ABORT, LEGACY_COMMIT_EVERY, LEGACY_PARTITIONING
from lockstep_config.keys.lockstep_settings import CopySettings, SwitchSettings, VerifySettings
from lockstep_config.keys.log_levels import LogLevels
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_config.resolve.precedence import Side
from lockstep_config.text.config_errors import Problem, UnknownFlow
from lockstep_config.text.sources import Sources
from lockstep_rules.filters import ConfigPropertyFilter, Names, should_replicate_topic
from lockstep_rules.groups.group_readings import age_limit_ms
from lockstep_rules.policy import (
    DefaultReplicationPolicy,
    ReplicationPolicy,
    hides_origin,
    keeps_names,
    without_renames,
)
from lockstep_rules.record_rules import NO_RULES, RecordRules, RuleSelection
from lockstep_rules.switch.switch_readiness import SwitchLimits
from lockstep_rules.versions import RuleSet, find_rules
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One Kafka cluster by its alias.

    `bootstrap` is `host:port[,host:port...]` with blanks removed. `properties` are its connection properties under
    Java's names, secrets resolved: `bootstrap.servers`, `security.protocol` (upper case), `ssl.*`, `sasl.*` and
    nothing else (the set K of `mm2-behaviour.md` §5.4).
    """

    alias: str
    bootstrap: str
    properties: Mapping[str, str] = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """The limits of a fetch, and the replica that is asked. Defaults are those of Java's consumer.

    A partition's limit is not hard: one batch always comes whole. With `grows` it grows with the distance to the
    broker; this is so if the file does not set it. With a `rack` a leader may name a nearer replica (KIP-392), which
    is read for `replica_lease_s` before the leader is asked again.
    """

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_partition_bytes: int = 1_048_576
    grows: bool = False
    rack: str = ""
    replica_lease_s: float = 300.0


LOCAL_SPARK = SparkSettings()
NOT_VERIFIED = VerifySettings()
RULES = find_rules()
DEFAULT_RESTARTS = AutoRestarts()
DEFAULT_SWITCH = SwitchSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """The compression of batches that are rebuilt.

    The levels are the producer's `compression.<codec>.level` (KIP-390), with Java's defaults. `recompress` says which
    compressed batches are rebuilt for it.
    """

    recompress: str = key_field(KEYS["lockstep.recompress"])
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacySettings:
    """Settings of a flow in the place of a MirrorMaker 1.

    Positions are those of `group` on the source, committed each `commit_every`.
    """

    group: str
    partitioning: Literal["preserve", "key"] = key_field(KEYS[LEGACY_PARTITIONING])
    abort_on_send_failure: bool = key_field(KEYS[LEGACY_ABORT])
    commit_every: timedelta = key_field(KEYS[LEGACY_COMMIT_EVERY])


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlaneSettings(CopySettings):
    """Settings of the copying of records (`mm2-behaviour.md` §3.1, §4.7, `architecture.md` §5).

    `enabled` is the flow's own. `tasks_max` is the upper limit of slots; None means one per core, unlike MM2's 1.
    `compression_type` is the target producer's if the file sets one; None passes batches as they are.
    `auto_offset_reset` is where the first copy of a topic begins without a `start_timestamp` (Unix milliseconds).

    `offset_flush_every` is never longer than a second, so that a crash re-reads little; `offset_flush_interval` is
    the file's value. `max_in_flight_bytes` bounds what a slot holds in memory. The default of `max_bytes_per_s`
    limits the whole flow, its other values each topic that matches. The values of `on_*` are the choices of
    `lockstep_settings`.

    `provenance` is None if topics are renamed, so that names show where a record came from. If they are not,
    `upstream_state_topics` has the state topics, on the source, of the file's flows into it. With `exactly_once`
    records and progress go in transactions, each of which ends after `transaction_interval`, or as soon as it can
    (None).

    `read_back` is no setting of a file: the target neither treats producer ids as Kafka does, nor has transactions.
    `spark` is the same for all flows of a file. `legacy` is None if the flow takes no MirrorMaker 1's place.
    `transforms` change the records of the topics that they select (`transform_of`).
    `record_rules` are asked through `FlowSettings.record_rules`.
    """

    enabled: bool = True
    tasks_max: int | None = key_field(KEYS["tasks.max"])
    offset_lag_max: int = key_field(KEYS["offset.lag.max"])
    offset_syncs_location: Literal["source", "target"] = key_field(KEYS["offset-syncs.topic.location"])
    emit_offset_syncs: bool = key_field(KEYS["emit.offset-syncs.enabled"])
    offset_syncs_replication_factor: int = key_field(KEYS["offset-syncs.topic.replication.factor"])
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    fetch: FetchSettings = FetchSettings()
    compression_type: str | None = None
    compression: CompressionSettings = CompressionSettings()
    offset_flush_every: timedelta = timedelta(seconds=1)
    offset_flush_interval: timedelta = key_field(KEYS["offset.flush.interval.ms"])
    provenance: Literal["local", "relay"] | None = None
    upstream_state_topics: tuple[str, ...] = ()
    exactly_once: bool = False
    read_back: bool = False
    transaction_interval: timedelta | None = None
    transaction_timeout: timedelta = timedelta(seconds=60)
    spark: SparkSettings = LOCAL_SPARK
    legacy: LegacySettings | None = None
    verify: VerifySettings = NOT_VERIFIED
    transforms: tuple[TransformSettings, ...] = ()
    record_rules: RuleSelection = NO_RULES

    @property
    def by_key(self) -> bool:
        """True if each record goes into the partition that its key chooses; then `exactly_once` is True too."""
        return self.legacy is not None and self.legacy.partitioning == "key"

    @property
    def reads_committed(self) -> bool:
        """True if only committed records are copied (`isolation.level`)."""
        return self.isolation_level == "read_committed"

    def transform_of(self, topic: str) -> TransformSettings | None:
        """Return the transform of a topic of the source; None: its records are copied as they are.

        Raises:
            SeveralTransforms: More than one selects the topic.
        """
        return find_transform(self.transforms, topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """Settings of the topics that hold the flow's own state on the target (`architecture.md` §3).

    `replication_factor` is that of Lockstep's topics, `storage_replication_factor` that of MM2's.
    `progress_connector` is the connector's name in the keys of `offset_storage_topic`.
    """

    replication_factor: int
    storage_replication_factor: int = key_field(KEYS["offset.storage.replication.factor"])
    offset_storage_partitions: int = key_field(KEYS["offset.storage.partitions"])
    offset_storage_topic: str
    progress_connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """Client properties of a flow under Java's names.

    They are layered as `mm2-behaviour.md` §5.4: K of the side, then `X.*`, then `side.X.*`. `data_producer` is the
    Connect worker's producer with the flow's `producer.override.*` on top. To hand them to a client use
    `lockstep_config.flow.client_settings`.
    """

    source_consumer: Mapping[str, str] = field(repr=False, hash=False)
    source_producer: Mapping[str, str] = field(repr=False, hash=False)
    source_admin: Mapping[str, str] = field(repr=False, hash=False)
    target_consumer: Mapping[str, str] = field(repr=False, hash=False)
    target_producer: Mapping[str, str] = field(repr=False, hash=False)
    target_admin: Mapping[str, str] = field(repr=False, hash=False)
    data_producer: Mapping[str, str] = field(repr=False, hash=False)

    def of_side(self, side: Side) -> dict[str, Mapping[str, str]]:
        """Return the properties of all clients on one side, by the name of their field."""
        prefixes = (side, "data_producer") if side == "target" else (side,)
        return {name: getattr(self, name) for name in self.__slots__ if name.startswith(prefixes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """The settings that a connector has for itself (`lockstep.connector.NAME.*`), in place of those of the flow."""

    clients: ClientProperties
    admin_timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """All settings of one flow.

    If `enabled` is False only heartbeats run (`mm2-behaviour.md` §5.5). `clients` and `admin_timeout` are the source
    connector's; a service of another connector takes its settings through `as_seen_by`. With `tracing` spans go to
    OpenTelemetry's collector; it is the same for all flows of a file.

    `group_id` is the target's `group.id` if the file sets one (several instances on one target), else None. `rules`
    are those of the MM2 version whose place Lockstep takes; what they say about names is in `policy` already.

    `aliases` is the flow by the aliases that MM2's connectors use (`source.cluster.alias`, `target.cluster.alias`):
    names of topics, heartbeats and progress are made of them. Everything else goes by `flow`, as Connect's own topics
    and groups do.
    """

    flow: Flow
    aliases: Flow
    enabled: bool
    source: Cluster
    target: Cluster
    group_id: str | None
    policy: ReplicationPolicy
    topics: Names
    groups: Names
    config_properties: ConfigPropertyFilter
    topic_sync: TopicSyncSettings
    acl_sync: AclSyncSettings
    checkpoint: CheckpointSettings
    heartbeat: HeartbeatSettings
    data_plane: DataPlaneSettings
    control: ControlSettings
    clients: ClientProperties
    rules: RuleSet = RULES
    auto_restart: AutoRestarts = DEFAULT_RESTARTS
    states: StatedPhases = NOTHING_STATED
    switch: SwitchSettings = DEFAULT_SWITCH
    admin_timeout: timedelta = key_field(KEYS["admin.timeout.ms"])
    tracing: bool = False
    checkpoint_connector: ConnectorSettings | None = None
    heartbeat_connector: ConnectorSettings | None = None

    def as_seen_by(self, connector: ConnectorName) -> "FlowSettings":
        """Return the settings with those that a connector has for itself."""
        own = {"checkpoint": self.checkpoint_connector, "heartbeat": self.heartbeat_connector}.get(connector)
        return self if own is None else replace(self, clients=own.clients, admin_timeout=own.admin_timeout)

    def needs(self, service: str) -> bool:
        """Return whether a service has work in the flow.

        Heartbeats run also if the flow is not enabled (`mm2-behaviour.md` §5.5).
        """
        match service:
            case "heartbeat":
                return self.heartbeat.enabled
            case "acl-sync":
                return self.enabled and self.acl_sync.enabled
            case "checkpoint":
                return self.enabled and self.checkpoint.enabled
        return self.enabled and self.data_plane.enabled

    @property
    def switch_limits(self) -> SwitchLimits:
        """The limits that must hold before clients can move to the target."""
        groups = self.checkpoint
        return SwitchLimits(
            max_lag_ms=round(self.switch.max_lag.total_seconds() * 1000),
            syncs_groups=groups.enabled and groups.sync_group_offsets,
            reads_groups=groups.enabled,
            both_ways=groups.opposite is not None,
            max_groups_age_ms=age_limit_ms(round(groups.emit_every.total_seconds() * 1000)),
        )

    def delay_ms(self, topic: str) -> int:
        """Return how long a record of a source topic stays there before it is copied, in milliseconds; 0: not at all.

        Heartbeats are copied at once, because they show whether the flow is alive.
        """
        delay = self.data_plane.delay.for_topic(topic)
        return 0 if not delay or self.policy.is_heartbeats_topic(topic) else round(delay.total_seconds() * 1000)

    @property
    def offset_syncs_cluster(self) -> str:
        """The alias of the cluster that holds the offset syncs."""
        return self.flow.source if self.data_plane.offset_syncs_location == "source" else self.flow.target

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of the offset syncs, named after the other one of the two clusters (`mm2-behaviour.md` §1.1)."""
        at_source = self.offset_syncs_cluster == self.flow.source
        return self.policy.offset_syncs_topic(self.aliases.target if at_source else self.aliases.source)

    @property
    def checkpoints_topic(self) -> str:
        """The topic of the checkpoints, on the target."""
        return self.policy.checkpoints_topic(self.aliases.source)

    @property
    def keeps_names(self) -> bool:
        """True if names of topics do not show where they came from: they are the same on both sides, or renamed."""
        return keeps_names(self.policy, self.aliases.source)

    @property
    def renames(self) -> bool:
        """True if some topics are renamed (`lockstep.rename`)."""
        return isinstance(self.policy, DefaultReplicationPolicy) and bool(self.policy.renames)

    def hides_origin(self, topic: str) -> bool:
        """Return whether the target's name of a topic does not show where its records came from (`hides_origin`)."""
        return hides_origin(self.policy, self.aliases.source, topic)

    def remote_topic(self, topic: str) -> str:
        """Return the name on the target of a topic of the source."""
        return self.policy.format_remote_topic(self.aliases.source, topic)

    def record_rules(self, topic: str) -> RecordRules | None:
        """Return the rules by which the records of a topic of the source are filtered, and their headers changed.

        None: they are copied as they are, which heartbeats always are.
        """
        selection = self.data_plane.record_rules
        if not selection.rules or self.policy.is_heartbeats_topic(topic):
            return None
        return selection.for_topic(without_renames(self.policy).format_remote_topic(self.aliases.source, topic))

    def transform_dispute(self, topic: str) -> str:
        """Return why nobody can say what becomes of the records of a topic, which is not copied then; "": it is clear.

        Several transforms select it, or a transform and rules of `lockstep.filter` or `lockstep.headers`.
        """
        try:
            transform = self.data_plane.transform_of(topic)
        except SeveralTransforms as exc:
            return str(exc)
        if transform is None or self.record_rules(topic) is None:
            return ""
        return (
            f"the transform {transform.name} selects {topic}, and lockstep.filter or lockstep.headers holds for it "
            "too: limit these rules with `not topic PATTERN`"
        )

    def replicates(self, topic: str, *, one_cluster: bool = False) -> bool:
        """Return whether a topic of the source is mirrored, as far as its name shows.

        Args:
            topic: A topic of the source.
            one_cluster: Source and target have turned out to be the same cluster.
        """
        return should_replicate_topic(
            topic,
            topics=self.topics,
            policy=self.policy,
            flow=self.aliases,
            heartbeats_replicated=self.topic_sync.heartbeats_replicated,
            also_source=self.rules.cycle_by_source,
            one_cluster=one_cluster,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One configuration file, read and checked.

    `clusters` keeps the order of the file's `clusters`. `flows` are the ordered pairs that run anything, by source
    then target in that order. `unused` are the keys that MM2 knows and that have no effect here, with the reason.
    `notes` are other things worth a warning (a key written twice). Both are in the order of the file and meant to be
    shown once. `log` has the log levels that hold if no command line sets one. `sources` are its files, for the check
    whether they have changed (`lockstep_config.flow.changed_credentials`).
    """

    path: Path
    clusters: Mapping[str, Cluster] = field(hash=False)
    flows: tuple[FlowSettings, ...]
    unused: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    log: LogLevels = field(default_factory=LogLevels)
    sources: Sources = field(default=Sources(), compare=False, repr=False)

    def flow(self, flow: Flow) -> FlowSettings:
        """Return the settings of one flow.

        Raises:
            UnknownFlow: The file has no such flow; the error names the flows that it has.
        """
        for settings in self.flows:
            if settings.flow == flow:
                return settings
        raise UnknownFlow(str(flow), [str(settings.flow) for settings in self.flows], self.path)
