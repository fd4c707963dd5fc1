"""A plan as it is shown, written to a file and published as a JSON Schema. Pure.

Every field is public. An unknown number is None, never a guess.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep_ops.formatting import in_time
from lockstep_ops.status.report import PausedPart

VERSION = 1

CREATE, ALTER, DELETE = "create", "alter", "delete"
SIGNS = {CREATE: "+", ALTER: "~", DELETE: "-"}

TOPIC, PARTITIONS, CONFIG, ACL, CONTROL_TOPIC, GROUP = "topic", "partitions", "config", "acl", "control-topic", "group"

EARLIEST, LATEST, TIMESTAMP = "earliest", "latest", "timestamp"
LOCKSTEP, MIRROR_MAKER, LEGACY_GROUP = "lockstep", "mirrormaker2", "legacy-group"

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """One thing that the services would create, alter or delete."""

    action: str
    """`create` | `alter` | `delete`."""
    kind: str
    """`topic` | `partitions` | `config` | `acl` | `control-topic` | `group`."""
    cluster: str
    """The alias of the cluster on which it changes."""
    name: str
    """The topic, group or ACL."""
    source: str = ""
    """The source topic that it comes from."""
    key: str = ""
    """The config that changes."""
    before: str | None = None
    """The present value. None: unset, or the thing does not exist."""
    after: str | None = None
    """The new value. None: the broker's default, or the thing is deleted."""
    partitions: int = 0
    replication_factor: int = 0
    """The replication factor of a new topic. -1: the broker's default."""
    configs: dict[str, str] = field(default_factory=dict)
    """The configs of a new topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionForecast:
    """The copy of one source partition, and the records that retention removes before they are copied."""

    partition: int
    start: int | None
    """The first source offset that is copied. None: its log was not read."""
    end: int | None
    """The log end offset of the source now."""
    begins: str
    """`earliest` | `latest` | `timestamp` (lockstep.start.timestamp) | `lockstep` | `mirrormaker2` | `legacy-group`.

    The last three continue at a position that Lockstep, MM2 or a consumer group reached before.
    """
    records: int | None
    bytes: int | None
    seconds: float | None
    """Seconds until its last record is copied."""
    oldest_ms: int | None
    """The timestamp of the log's first record, Unix milliseconds."""
    loses_ms: int | None
    """The part of the log, in milliseconds, that retention deletes before it is copied, at most. None: not known."""
    loses_records: int | None
    gone: int = 0
    """Source offsets behind the position that retention has already removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicForecast:
    """The copy of one source topic."""

    topic: str
    remote: str
    begins: str
    """The value of `begins` that all its partitions have; `mixed` if they differ."""
    records: int | None
    bytes: int | None
    seconds: float | None
    retention_ms: int | None
    """`retention.ms` of the source topic. None: unlimited, or not known."""
    retention_bytes: int | None
    """`retention.bytes` of the source topic, for each partition. None: unlimited, or not known."""
    partitions: tuple[PartitionForecast, ...]
    delay_ms: int = 0
    """The time that records stay on the source before they are copied (`lockstep.delay`)."""
    transform: str = ""
    """The transform of its records (`lockstep.transform.NAME`). "": it has none."""
    rules: tuple[str, ...] = ()
    """The effects of rules on its records: `filter` (some may be dropped) | `headers` (headers are changed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyForecast:
    """The volume of a flow's copy, and its time."""

    rate: int
    """Bytes a second that the copy is assumed to move."""
    rate_basis: str
    """`stated` (--rate) | `measured` (--measure) | `limited` (lockstep.max.bytes.per.second) | `assumed`."""
    bytes_basis: str
    """`log-directories` (what brokers say of their disks) | `sampled` (records of a short fetch, uncompressed) |
    `unknown`."""
    growth: int | None
    """Bytes a second that producers add to these topics, on average over the logs. None: not known."""
    records: int | None
    bytes: int | None
    seconds: float | None
    """Seconds until the copy has caught up. None: not known, or never at this rate (`LS018`)."""
    topics: tuple[TopicForecast, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTraffic:
    """The traffic between the slots and one cluster in a day, once the copy has caught up."""

    cluster: str
    """The alias of the cluster."""
    direction: str
    """`received` | `sent`, as `lockstep_link_bytes_total` has it."""
    bytes_a_day: int | None
    """Bytes a day, compressed as batches are. None: not known."""
    basis: str
    """`stored` (on the brokers' disks) | `sampled` (by the newest batches) | `unchanged` (as they are received)
    | `at-most` (some are compressed) | `recompressed` (some change their codec) | `unknown` (nobody says)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficForecast:
    """The records that producers add to the topics of a flow in a day, and their traffic over both links.

    It is the average of the last 24 hours, or of a younger log.
    """

    records_a_day: int | None
    """Records a day. None: not known."""
    record_bytes_a_day: int | None
    """Bytes of records a day, uncompressed, by a sample of records. None: not known."""
    partitions: int
    """The number of partitions that are counted."""
    uncounted: int
    """Partitions whose logs are younger than an hour, or cannot be read."""
    compacted: int
    """Counted partitions of compacted topics: less is left of them than their producers added."""
    source: LinkTraffic
    target: LinkTraffic
    codecs: dict[str, int] = field(default_factory=dict)
    """The number of topics whose newest batches have each codec; `none`: they are not compressed."""
    unsampled: int = 0
    """Topics of which no batch was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """A consumer group of the source."""

    group: str
    fate: str
    """`create` | `sync` (its offsets are set on the target) | `checkpoints` (translated only) | `active` | `excluded` |
    `other-protocol` | `unreadable`. The last four are not synced.
    """
    reason: str = ""


MOVED = frozenset({"create", "sync"})
"""Fates of groups whose offsets are set on the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHazard:
    """Something that goes wrong, or surprises, if the flow runs as it is."""

    code: str
    title: str
    severity: str
    """`error` | `warning` | `note`."""
    subjects: tuple[str, ...]
    """The topics, partitions, groups or clusters that it concerns."""
    details: tuple[str, ...]
    """A sentence for each subject."""
    fix: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRight:
    """A right that the flow needs and does not have."""

    cluster: str
    lacks: str
    command: str
    """The `kafka-acls` command that grants it. "": no single command does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisTopic:
    """A topic as it was when the plan was made."""

    topic_id: str
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    """The configs that the plan relies on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBasis:
    """The facts of a cluster that the plan relies on."""

    alias: str
    bootstrap: str
    cluster_id: str
    topics: dict[str, BasisTopic]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """The plan of one flow."""

    flow: str
    enabled: bool
    """False: the flow is off, and only its heartbeats run."""
    changes: tuple[PlannedChange, ...]
    copy: CopyForecast
    traffic: TrafficForecast
    groups: tuple[PlannedGroup, ...]
    hazards: tuple[PlanHazard, ...]
    rights: tuple[MissingRight, ...]
    remarks: tuple[str, ...]
    """Sentences that say why a part of the plan is not known, or has nothing to do."""
    source: ClusterBasis
    target: ClusterBasis
    settings: dict[str, str]
    """The effective settings of the flow by key, without secrets. A client's key has the client's name before it."""
    held_back: tuple[PausedPart, ...] = ()
    """Parts that were paused or stopped before. They do nothing until they are resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """The sums over all flows."""

    create: int
    alter: int
    delete: int
    begin: int
    """Partitions with records to copy whose first copy begins."""
    records: int | None
    bytes: int | None
    seconds: float | None
    hazards: int
    """The number of hazards of severity error and warning."""
    errors: int
    notes: int
    rights: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plans of the flows of a file. Nothing in it is secret."""

    file: str
    made_at_ms: int
    """When the plan was made, in Unix milliseconds."""
    release: str
    """The release of Lockstep that made it."""
    flows: tuple[FlowPlan, ...]
    summary: PlanSummary


def treatments(topic: TopicForecast) -> tuple[str, ...]:
    """Return what becomes of the records of a topic on the way, as phrases."""
    delay = (f"delayed {in_time(topic.delay_ms)}",) if topic.delay_ms else ()
    transform = (f"transform {topic.transform}",) if topic.transform else ()
    return (*delay, *transform, *topic.rules)


def sum_known(numbers: Iterable[int | None]) -> int | None:
    """Return the sum, or None if one of the numbers is not known."""
    values = list(numbers)
    return None if None in values else sum(filter(None, values))


def longest_known(times: Iterable[float | None]) -> float | None:
    """Return the longest time, or None if one of them is not known."""
    values = list(times)
    return None if None in values else max(filter(None, values), default=0.0)


def summarize(flows: tuple[FlowPlan, ...]) -> PlanSummary:
    """Return the sums over all flows.

    Each flow has the rate for itself, so the slowest one decides how long it takes.
    """
    actions = Counter(change.action for flow in flows for change in flow.changes)
    severities = Counter(hazard.severity for flow in flows for hazard in flow.hazards)
    partitions = [p for flow in flows for topic in flow.copy.topics for p in topic.partitions]
    return PlanSummary(
        create=actions[CREATE],
        alter=actions[ALTER],
        delete=actions[DELETE],
        begin=sum(bool(p.records) and p.begins in (EARLIEST, LATEST, TIMESTAMP) for p in partitions),
        records=sum_known(flow.copy.records for flow in flows),
        bytes=sum_known(flow.copy.bytes for flow in flows),
        seconds=longest_known(flow.copy.seconds for flow in flows),
        hazards=severities[ERROR] + severities[WARNING],
        errors=severities[ERROR],
        notes=severities[NOTE],
        rights=sum(len(flow.rights) for flow in flows),
    )
