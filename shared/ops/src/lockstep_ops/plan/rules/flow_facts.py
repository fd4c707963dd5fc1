"""The facts that were found on both clusters of a flow, from which the plan is computed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config import FlowSettings
from lockstep_ops.plan.rules.batch_sample import TopicSample
from lockstep_ops.plan.rules.flow_plan import MissingRight, PlannedGroup
from lockstep_ops.status.report import PausedPart
from lockstep_rules.clusters.cluster_capabilities import Capability
from lockstep_rules.clusters.cluster_limits import TopicCount
from lockstep_rules.selection_count import NOT_COUNTED, SelectionCount
from lockstep_rules.topic_plan import Selection, TopicSyncPlan
from lockstep_state.acl_binding import AclBinding
from lockstep_state.kafka.kafka_apis import UnfitRequest
from lockstep_state.offsets import TopicPartition

RELIED_ON = (
    *("cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas"),
    *("delete.retention.ms", "retention.bytes", "retention.ms"),
)
"""Configs of topics that forecasts and hazards are made of."""


@dataclass(frozen=True, slots=True)
class ReachedPosition:
    """The next source offset of a partition that was copied before, and by which program."""

    next: int
    by: str


@dataclass(frozen=True, slots=True)
class LogFacts:
    """A source partition's log.

    `size` is in bytes on disk. `oldest_ms` is the timestamp of its first record.
    """

    begin: int
    end: int
    oldest_ms: int | None = None
    size: int | None = None
    day_ago: int | None = None
    """The offset of the first record of the last 24 hours. None: not known."""
    record_bytes: float | None = None
    """The size of an average record, uncompressed. None: not known."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The facts of one topic."""

    topic_id: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    """The configs of `RELIED_ON`, as they are in effect."""
    own: Mapping[str, str] = field(default_factory=dict)
    """The configs that are copied of a source topic, or that are set on a target topic."""
    is_there: bool = True
    """False: another flow of the file creates it."""
    replicas: int = 0
    """The fewest replicas of one of its partitions. 0: not known."""


@dataclass(frozen=True, slots=True)
class TopicClaim:
    """Another flow of the file that writes to a topic of the target."""

    flow: str
    source: str
    """The alias of its source."""
    topic: TopicFacts | None = None
    """The topic on its source. None: not known."""
    groups: frozenset[str] = frozenset()
    """The groups that it moves on the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The state of one cluster."""

    alias: str
    bootstrap: str
    cluster_id: str
    brokers: int
    names: Mapping[str, int]
    """Every topic that we may describe, with its number of partitions."""
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    """The topics that the flow mirrors, or mirrors into."""
    message_max: int | None = None
    """`message.max.bytes` of its brokers."""
    product: str = ""
    """The product that the cluster looks like (`guess_cluster_kind`). "": not known."""
    lacks: tuple[Capability, ...] = ()
    """Requests without which the flow goes on."""
    unfit: tuple[UnfitRequest, ...] = ()
    """Requests that the flow needs, and that its brokers know in no version of ours."""
    min_insync: int | None = None
    """`min.insync.replicas` of its brokers, which counts for topics without a value of their own."""

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, or 0 if there is none that we may describe."""
        facts = self.topics.get(topic)
        return self.names.get(topic, 0) if facts is None else facts.partitions


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A config of a remote topic that differs from the one that its source topic asks for.

    None means unset, or the default.
    """

    source: str
    target: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TopicReading:
    """The topics of both clusters, and what topic-sync makes of them."""

    source: ClusterState
    target: ClusterState
    selection: Selection
    partitions: TopicSyncPlan
    config_changes: tuple[ConfigChange, ...]
    unreadable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AclFacts:
    """The ACLs that the target lacks, and those of Lockstep that the source revoked.

    `note` says why there are none.
    """

    missing: tuple[AclBinding, ...] = ()
    taken_back: tuple[AclBinding, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class ControlTopicFacts:
    """A topic of Lockstep's own, or of MirrorMaker 2's, that the flow needs and `alias` does not have."""

    alias: str
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MirrorMakerFacts:
    """The progress of an MM2 of this source.

    With `own` it is in the place of the flow's own progress, so it counts at the start. `members` are those of the
    group of MM2's workers.
    """

    place: str
    group: str
    partitions: int
    own: bool
    members: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """Everything that was found for one flow."""

    settings: FlowSettings
    at_ms: int
    """The time of the facts, in Unix milliseconds."""
    source: ClusterState
    target: ClusterState
    selection: Selection
    partitions: TopicSyncPlan
    refused: Mapping[str, str] = field(default_factory=dict)
    """Remote topics that the target would not create, each with its words."""
    refused_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Configs that a cluster would leave out, each with its words, by the topic to create."""
    factors: Mapping[str, int] = field(default_factory=dict)
    """Replication factors that a cluster takes instead of the wanted ones, by the topic to create."""
    config_changes: tuple[ConfigChange, ...] = ()
    logs: Mapping[TopicPartition, LogFacts] = field(default_factory=dict)
    batches: Mapping[str, TopicSample] = field(default_factory=dict)
    """The newest batches of topics, as far as they could be read, by the source topic."""
    bytes_basis: str = "unknown"
    reached: Mapping[TopicPartition, ReachedPosition] = field(default_factory=dict)
    dated: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets at which the first copy begins by `lockstep.start.timestamp`."""
    unaccounted: Mapping[str, int] = field(default_factory=dict)
    """Remote topics with records though no progress of theirs is known, with how many."""
    mirror_makers: tuple[MirrorMakerFacts, ...] = ()
    groups: tuple[PlannedGroup, ...] = ()
    group_count: SelectionCount = NOT_COUNTED
    """Consumer groups that read mirrored topics, and those that the filters select."""
    acls: AclFacts = AclFacts()
    control_topics: tuple[ControlTopicFacts, ...] = ()
    """The control topics that are missing."""
    control_faults: tuple[tuple[str, str, str], ...] = ()
    """The faults of existing control topics: the topic, what is wrong with it, and the command that sets it right."""
    rights: tuple[MissingRight, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Selected topics that could not be described or read, each with the reason."""
    remarks: tuple[str, ...] = ()
    held_back: tuple[PausedPart, ...] = ()
    claims: Mapping[str, TopicClaim] = field(default_factory=dict)
    """Topics of the target that other flows write to."""
    comes_back: Mapping[str, str] = field(default_factory=dict)
    """Topics of the source that the file's opposite flow writes to, each with the topic of the target that it has."""
    former_names: Mapping[str, str] = field(default_factory=dict)
    """Topics that the flow has copied to another name than they would have now, each with that name."""
    file_topics: Mapping[str, TopicCount] = field(default_factory=dict)
    """The topics that all flows of the file create, by the id of the cluster."""
    opposite: bool = False
    """The file has the flow in the opposite direction."""
    effective: Mapping[str, str] = field(default_factory=dict)
    """The effective settings, by key, without secrets."""

    @property
    def one_cluster(self) -> bool:
        """Return whether both aliases lead to one cluster."""
        return self.source.cluster_id == self.target.cluster_id

    @property
    def copied(self) -> Mapping[str, str]:
        """Return the source topics that would be copied, with their remote names."""
        left_out = self.refused.keys() | self.unreadable.keys()
        return {name: remote for name, remote in self.selection.topics.items() if not {name, remote} & left_out}
