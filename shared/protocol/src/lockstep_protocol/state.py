"""Rows of the state topic: what is so now (design §3).

Each row is a frozen dataclass with a key of its own and one owning service; what they have in common is `rows.py`'s.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from lockstep_protocol.rows import ROWS, MalformedRow, NewerVersion, Row, decode_row, row_kind

__all__ = [
    "ROWS",
    "AclStatus",
    "Assignment",
    "CopiedAcl",
    "FlowPulse",
    "GroupStatus",
    "Handover",
    "Leader",
    "LegacyGroup",
    "MalformedRow",
    "MirroredTopic",
    "NewerVersion",
    "OffsetRuns",
    "Origin",
    "PartitionProgress",
    "Restarts",
    "Row",
    "SlotStatus",
    "Wanted",
    "decode_row",
]


@row_kind("topic")
@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredTopic(Row):
    """A source topic and its remote topic. Owner: topic-sync. The data plane copies those in phase `mirrored`.

    phase: `mirrored` (both exist, the target has at least as many partitions, or keys choose among those it has) |
    `failed` (reason says why; tried again) | `deleted` (gone on the source) | `excluded` (no longer selected). Topic
    ids are Kafka's own base64 text.
    """

    source_topic: str
    target_topic: str
    source_topic_id: str = ""
    target_topic_id: str = ""
    partitions: int = 0
    target_partitions: int = 0
    phase: str = "mirrored"
    reason: str = ""
    target_configs: tuple[tuple[str, str], ...] = ()
    """What the data plane needs of the target topic: max.message.bytes, message.timestamp.type, cleanup.policy,
    compression.type."""

    def copied(self, *, by_key: bool) -> int:
        """How many partitions of the source are copied: each into the one of the same number, or, where keys choose the
        partition, into all that there are."""
        return self.partitions if by_key else min(self.partitions, self.target_partitions)

    def identity(self) -> tuple[str, ...]:
        return (self.source_topic,)


@row_kind("partition")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress(Row):
    """How far a partition's chain of appends has got, as last written down. Owner: data plane (the slot).

    Written before the first append of an epoch, then at least every second while records move and at drain. The truth
    may be further on, never behind: the producer id and sequence in the target's log say by how much (`wire.md` §2).
    """

    topic: str
    partition: int
    phase: str = "copying"
    """`copying` | `halted` (reason says why; nothing moves until somebody decides) | `paused` | `stopped` (an operator
    wants it so: what flew has been acknowledged, nothing moves until it is resumed)."""
    reason: str = ""
    case: str = ""
    """Why it halted, as a word: `records-gone` | `source-truncated` | `source-recreated` | `target-truncated` |
    `target-recreated` | `in-doubt` | `refused`; "" while it copies."""
    upstream: int = -1
    """Last upstream offset that is durable downstream, or decided to be passed over (control batches); -1: none."""
    upstream_epoch: int = -1
    """Leader epoch the source's log gave the batch at `upstream`."""
    downstream: int = -1
    """Downstream offset of the last record appended; before the first one, the target's log end minus 1 then."""
    producer_id: int = -1
    producer_epoch: int = 0
    transactional: bool = False
    """The records go in transactions: progress counts that is committed with them in MM2's progress topic, and
    `upstream` is what is known to be committed."""
    left_epoch: int = -1
    """While another producer id than the flow's own is used (transactions, `lockstep.fence=marker`): the epoch of the
    own one that was used here last; a chain that goes back to it begins behind."""
    sequence: int = -1
    """Sequence of the last record appended in this epoch; -1: none yet, the next is 0."""
    others: tuple[tuple[int, int], ...] = ()
    """(producer id, sequence of its last record) of records that came from elsewhere and are passed on under an id of
    their origin's, in the same epoch; sorted. See `Origin`."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    open_run: tuple[int, ...] = ()
    """(first upstream, first downstream, records) of the run that the last record appended lies in; () when nothing was
    appended in this epoch. See `OffsetRuns`."""
    source_end: int = -1
    """The source's high watermark when last fetched."""
    lag_records: int = 0
    lag_ms: int = 0
    """Age of the oldest record not yet acknowledged by the target; 0 when there is none."""
    records: int = 0
    """Records appended since `counts_since`, with the bytes of their batches as they lie in the log."""
    bytes: int = 0
    read_bytes: int = 0
    """Bytes of batches fetched from the source since `counts_since`."""
    counts_since: int = 0
    """When (Unix milliseconds) the slot took the partition up and counted from 0. Each time has one of its own: a row
    with another one counts anew. 0: by no release that says it."""
    skips: tuple[tuple[int, int], ...] = ()
    """Upstream offsets (first, last) beyond `upstream` that are quarantined and passed over in this epoch."""
    given_up: int = 0
    """Upstream offsets that policies gave up in the life of the partition: gaps skipped."""
    quarantined: int = 0
    """Records, or batches that cannot be read, put into the quarantine topic in the life of the partition."""
    gaps: tuple[tuple[str, int], ...] = ()
    """How often a policy led the partition on past a case, in its life, as (case, times)."""
    latency_ms: int = 0
    """Record timestamp to acknowledgement, of the last batch."""
    age_window: tuple[int, ...] = ()
    """Record timestamp to fetch, in milliseconds, over the last minute: (Unix milliseconds of the last one, last,
    least, most, mean); () before the first."""
    latency_window: tuple[int, ...] = ()
    """The same from record timestamp to acknowledgement."""
    slot: int = -1
    begins: str = ""
    """What an operator did to the offset, until the copy goes on: `altered` (it begins behind `upstream`) | `reset` (it
    begins where the first one would)."""

    @property
    def begun(self) -> bool:
        """Whether something was appended in this epoch."""
        return self.sequence != -1 or bool(self.others)

    def is_of_the_chain_of(self, known: PartitionProgress) -> bool:
        """Whether both are about the same two logs and the same producer id, in whatever epochs."""
        return (self.producer_id, self.source_topic_id, self.target_topic_id) == (
            known.producer_id,
            known.source_topic_id,
            known.target_topic_id,
        )

    def is_outdated_by(self, known: PartitionProgress) -> bool:
        """Whether it is of an earlier epoch of the same chain: the word of a slot that woke late, which was sure of
        what no longer holds."""
        return self.is_of_the_chain_of(known) and self.producer_epoch < known.producer_epoch

    def identity(self) -> tuple[str, ...]:
        return (self.topic, str(self.partition))


@row_kind("runs")
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRuns(Row):
    """Stretches along which downstream minus upstream is constant: one chunk of a partition's ended ones. Owner: data
    plane (the slot). The one that still grows is the `open_run` of `PartitionProgress`. `docs/offset-runs.md`.

    Every run ever written stays true for its topics, producer id and generation, so a reader who misses some translates
    to an earlier place, never to one too far (`offset_runs.py`).
    """

    topic: str
    partition: int
    chunk: int
    """Place in the ring of the partition's chunks, from 0."""
    edition: int = 0
    """How often the place was given other runs. Within an edition runs are only added, behind."""
    generation: int = 0
    """Epoch of our chain in which the runs hold."""
    producer_id: int = -1
    source_topic_id: str = ""
    target_topic_id: str = ""
    upstream: int = 0
    """First upstream offset of the first run; `downstream` is where it stands."""
    downstream: int = 0
    runs: tuple[tuple[int, int, int], ...] = ()
    """Each as (upstream offsets passed over since the run before, downstream offsets since it, records)."""

    def identity(self) -> tuple[str, ...]:
        return (self.topic, str(self.partition), str(self.chunk))


@row_kind("assignment")
@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Row):
    """What a slot is to copy.

    Owner: data plane (the driver). A slot drains what is no longer in its newest assignment.
    """

    slot: int
    generation: int = 0
    partitions: tuple[tuple[str, int], ...] = ()
    ending: bool = False
    """The slot drains everything, says so in its status and ends."""

    def identity(self) -> tuple[str, ...]:
        return (str(self.slot),)


@row_kind("slot")
@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus(Row):
    """A slot as it sees itself. Owner: data plane (the slot). phase: `started` | `released`."""

    slot: int
    phase: str
    run: str = ""
    """Which run of the slot speaks; the driver ignores the words of earlier ones."""
    generation: int = 0
    partitions: int = 0
    """Those it tends."""
    resting: int = 0
    """Those of its assignment that an operator wants to rest."""
    held_bytes: int = 0
    """Of batches fetched and not yet acknowledged by the target."""
    held_records: int = 0
    commit_window: tuple[int, ...] = ()
    """How long it took to write progress down, as `PartitionProgress.age_window`."""
    syncs: int = 0
    """Offset syncs acknowledged in this run."""
    sync_window: tuple[int, ...] = ()
    """How long their acknowledgement took, as `PartitionProgress.age_window`."""

    def identity(self) -> tuple[str, ...]:
        return (str(self.slot),)


@row_kind("origin")
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Row):
    """What a producer id in the target's log stands for. Owner: data plane (the driver; a slot where it passes records
    of another origin on). Never deleted (`wire.md` §4). Acknowledged before the first batch that bears the id.

    The flow's producer id for an origin is the one of the *first* such row in the log whose target cluster id is the
    target's present one.
    """

    producer_id: int
    source: str
    target: str
    origin_cluster_id: str
    target_cluster_id: str

    def identity(self) -> tuple[str, ...]:
        return (str(self.producer_id),)


@row_kind("acl")
@dataclass(frozen=True, slots=True, kw_only=True)
class AclStatus(Row):
    """How ACL sync stands. Owner: acl-sync. phase: `in-sync` | `no-authorizer` | `not-permitted` | `oauth` (a cluster
    says who may do what in OAuth tokens, not in ACLs: there are no rules to copy) | `failing`."""

    phase: str
    reason: str = ""
    copied: int = 0
    left_out: int = 0
    """Source bindings that are not copied."""
    left_out_for: tuple[tuple[str, int], ...] = ()
    """(why, how many) of them, where why is a word of `docs/acls.md`."""
    left_out_named: tuple[tuple[str, str], ...] = ()
    """(binding, why), those first that one would least expect; at most 20."""
    owned: int = 0
    """Bindings on the target that are ours to take back: nobody else had made them before us."""
    revoked: int = 0
    """Those of them that the source has no more, and that are still there."""
    notes: tuple[str, ...] = ()
    """What an operator should know though nothing fails, one sentence each: why something is not taken back, and where
    principals come from tokens."""

    def identity(self) -> tuple[str, ...]:
        return ("sync",)


@row_kind("acl-binding")
@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedAcl(Row):
    """A binding that ACL sync made on the target. Owner: acl-sync. Words as Kafka spells them (TOPIC, LITERAL, ALLOW).

    Written before the binding is made, so a binding without such a row is never ours. phase: `owned` (ours, or about to
    be) | `deleting` (it is being taken back) | `released` (not ours, or not there any more; reason says why).
    """

    resource: str
    name: str
    """As on the target; `source_name` is the topic, prefix or group it was copied from."""
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    source_name: str = ""
    since_ms: int = 0
    """Unix milliseconds since when it is ours."""
    phase: str = "owned"
    reason: str = ""

    def identity(self) -> tuple[str, ...]:
        """Principals hold slashes and are long, hence a digest (SHA-256, its first half) of the binding's words."""
        words = (self.resource, self.name, self.pattern, self.principal, self.host, self.operation, self.permission)
        return (hashlib.sha256("\0".join(words).encode()).hexdigest()[:32],)


@row_kind("group")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(Row):
    """Where a consumer group stands on the target. Owner: checkpoint. One row a group, all its partitions in it."""

    group: str
    phase: str
    """`translated` | `waiting` (reason says for what) | `failing`."""
    reason: str = ""
    synced: bool = False
    """Its offsets were written to the target's group of the same name."""
    positions: tuple[tuple[str, int, int, int], ...] = ()
    """(target topic, partition, upstream, downstream) as last emitted."""
    exact: int = 0
    """How many partitions stand exactly where they should: whoever goes on there reads nothing again."""
    behind: tuple[tuple[str, int, int], ...] = ()
    """(target topic, partition, records) of those where at most so many records are read again; the most first."""
    waiting: tuple[tuple[str, int, str], ...] = ()
    """(target topic, partition, why) of those whose place is not known."""
    more_behind: int = 0
    """Partitions that are behind and not in the list, for it would be too long."""
    more_waiting: int = 0
    """The same of those that wait."""

    def identity(self) -> tuple[str, ...]:
        return (self.group,)


@row_kind("flow")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPulse(Row):
    """The flow's own heartbeat as last acknowledged.

    Owner: heartbeat. Written when its phase changes, not each beat.
    """

    source: str
    target: str
    phase: str
    """`beating` | `failing`."""
    reason: str = ""

    def identity(self) -> tuple[str, ...]:
        return (f"{self.source}->{self.target}",)


@row_kind("wanted")
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Row):
    """What an operator wants of a part of the flow's work. Owner: topic-sync, for the checkpoint connector checkpoint
    (its partition 0), for the heartbeat connector heartbeat. Where there is no row it is to run.

    phase: `running` | `paused` (it keeps its processes and assignments and does nothing) | `stopped` (it ends).
    """

    scope: str
    """`connector:NAME`, `slot:N`, `topic:T` or `partition:T-N` (`verbs.Scope`)."""
    phase: str = "running"
    restart: str = ""
    """Id of the last command that asked for a new start: whoever works on the scope ends and begins anew when it
    changes."""

    def identity(self) -> tuple[str, ...]:
        return (self.scope,)


@row_kind("restarts")
@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts(Row):
    """Starts of what failed, in a row, where they are limited (`lockstep.auto.restart.*`). Owner: the leader `owner`.

    phase: `running` | `failed` (waits for the command `restart`; reason says why).
    """

    owner: str
    """`Leader.service` of who starts it."""
    subject: str = "service"
    """`service`: its main loop; `slot:N`."""
    count: int = 0
    phase: str = "running"
    reason: str = ""
    asked: tuple[str, ...] = ()
    """`Wanted.restart` of what it lies in, when it failed: with other ids somebody has asked for a new start since, and
    it counts from none."""

    def identity(self) -> tuple[str, ...]:
        return (self.owner, self.subject)


@row_kind("handover")
@dataclass(frozen=True, slots=True, kw_only=True)
class Handover(Row):
    """Whose progress the flow went on from, or left its own to. Owner: nobody; `lockstep takeover` and `handback` write
    it, while the flow does not copy. Nothing decides by it but these two.

    phase: `taken-over` | `handed-back`.
    """

    phase: str
    topic: str
    """Connect's topic of offsets, on the target."""
    connector: str
    """The source connector's name in its keys."""
    group: str
    """The group of its Connect workers, on the target."""
    origin: str = "dedicated"
    """`dedicated` (MM2's own mode) | `strimzi` | `connect`."""
    partitions: int = 0
    """Source partitions whose offset there counted."""

    def identity(self) -> tuple[str, ...]:
        return ("progress",)


@row_kind("legacy")
@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyGroup(Row):
    """The consumer group on the source as which a legacy flow keeps its positions. Owner: data plane (the driver).

    phase: `waiting` (somebody else is in the group; nothing is copied, reason says who it is) | `copying`.
    """

    group: str
    phase: str
    reason: str = ""
    members: tuple[str, ...] = ()
    """Client ids and hosts of who is in the group, some of them."""
    partitions: int = 0
    """Those whose positions are committed."""
    committed_ms: int = 0
    """When a position was committed last, Unix milliseconds; 0: not yet."""

    def identity(self) -> tuple[str, ...]:
        return ("group",)


@row_kind("leader")
@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Row):
    """Who acts for a service in this flow. The record's own offset is the term (design §4, `wire.md` §7)."""

    service: str
    instance: str
    labels: tuple[tuple[str, str], ...] = field(default=())

    def identity(self) -> tuple[str, ...]:
        return (self.service,)
