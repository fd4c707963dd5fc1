"""The rows of the state topic that the data plane owns: progress, offset runs, assignments, slots, producer ids.

Import them from `state_rows`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lockstep_state.metric import counted, counter, gauge
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence, read_reason
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import (
    BatchSequence,
    Count,
    Epoch,
    LeaderEpoch,
    Offset,
    PartitionNumber,
    ProducerId,
    SlotNumber,
    UnixMs,
)

PARTITION, SLOT = ("flow", "topic", "partition"), ("flow", "slot")
"""`PARTITION` has the labels of metrics about one partition, `SLOT` those about one slot."""

TransformCount: TypeAlias = tuple[str, str, Count, Count, Count, Count, Count]
"""What a slot has evaluated of one transform (`SlotStatus.transforms`)."""

LOST = "lost"
"""The value of `PartitionProgress.begins` if there was no row, although the target holds records that may be ours."""


@row_kind("partition", "topic", "partition", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress(ReasonedRow):
    """The progress of a partition's chain of appends, as last written. Owner: data plane (the slot).

    Written before the first append of an epoch, then at least every second while records move and at drain. The truth
    may be further on, never behind: the producer id and sequence in the target's log say by how much (`kafka-wire.md`
    §2).
    """

    topic: str
    partition: PartitionNumber
    phase: str = "copying"
    """`copying` | `halted` | `paused` | `stopped`. Halted: `cause` says why, and nothing moves until an operator
    decides. Paused and stopped: an operator wants it so. Batches in flight have been acknowledged, and nothing moves
    until it is resumed."""
    case: str = ""
    """The case that halted it: `records-gone` | `source-truncated` | `source-recreated` | `target-truncated` |
    `target-recreated` | `in-doubt` | `refused`; "" while it copies."""
    upstream: Offset = field(
        default=-1,
        metadata=gauge(
            "lockstep_upstream_offset", PARTITION, "Last source offset that the target has acknowledged; -1: none"
        ),
    )
    """Last upstream offset that is durable downstream, or decided to be passed over (control batches); -1: none."""
    upstream_epoch: LeaderEpoch = -1
    """Leader epoch the source's log gave the batch at `upstream`."""
    downstream: Offset = -1
    """Downstream offset of the last record appended; before the first one, the target's log end minus 1 then."""
    producer_id: ProducerId = -1
    producer_epoch: Epoch = 0
    transactional: bool = False
    """The records are appended in transactions. The progress that counts is committed with them in MM2's progress
    topic, and `upstream` is known to be committed."""
    read_back: bool = False
    """The records carry no producer id. One batch at a time is in flight, and unanswered appends are found by comparing
    the target's records with the source's. `sequence` counts the records of this epoch."""
    left_epoch: Epoch = -1
    """The last epoch of the flow's own producer id here, while another id is used. This is so for transactions, and for
    releases that knew `lockstep.fence=marker`. A chain that goes back to the own id begins behind it."""
    sequence: BatchSequence = -1
    """Sequence of the last record appended in this epoch; -1: none yet, the next is 0."""
    others: tuple[tuple[ProducerId, BatchSequence], ...] = ()
    """(producer id, sequence of its last record) of records that came from elsewhere, sorted. They are passed on under
    an id of their origin's, in the same epoch. See `Origin`."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    open_run: tuple[Offset, ...] = ()
    """(first upstream, first downstream, records) of the run of the last record appended; () if nothing was appended in
    this epoch. See `OffsetRuns`. If the offset was altered to one further on, it is the run of the epoch before, which
    stays true."""
    source_end: Offset = -1
    """The source's high watermark when last fetched."""
    lag_records: int = 0
    lag_ms: int = 0
    """The time for which the oldest record that is not on the target has been in the source's log, as far as observed.
    It counts from when an end beyond the record was first observed. Timestamps have no part in it. 0 without lag."""
    records: Count = field(
        default=0,
        metadata=counter("lockstep_records", PARTITION, "Records appended to the target", since="counts_since"),
    )
    """Records appended since `counts_since`. `bytes` has the bytes of their batches as stored in the log."""
    bytes: Count = field(
        default=0,
        metadata=counter(
            "lockstep_bytes", PARTITION, "Bytes of the batches appended to the target", since="counts_since"
        ),
    )
    read_bytes: Count = field(default=0, metadata=counted("counts_since"))
    """Bytes of batches fetched from the source since `counts_since`."""
    counts_since: UnixMs = 0
    """The Unix milliseconds at which the slot began the partition and counted from 0. Each beginning has another value:
    a row with another one counts from 0 again. 0: the row is of a release that does not say it."""
    skips: tuple[tuple[Offset, Offset], ...] = ()
    """Upstream offsets (first, last) beyond `upstream` that are quarantined and passed over in this epoch."""
    given_up: Count = field(
        default=0,
        metadata=counter(
            "lockstep_given_up_offsets",
            PARTITION,
            "Source offsets that a policy skipped, since the first copy of the partition",
        ),
    )
    target_lost: Count = field(
        default=0,
        metadata=counter(
            "lockstep_target_lost_offsets",
            PARTITION,
            "Target offsets that the target lost and that a policy did not copy again, since the first copy of the"
            " partition",
        ),
    )
    quarantined: Count = field(
        default=0,
        metadata=counter(
            "lockstep_quarantined",
            PARTITION,
            "Records, or unreadable batches, written to the quarantine topic, since the first copy of the partition",
        ),
    )
    doubled: Count = field(
        default=0,
        metadata=counter(
            "lockstep_doubled_records",
            PARTITION,
            "Records found twice on the target, which keeps no producer ids, since the first copy of the partition",
        ),
    )
    gaps: tuple[tuple[str, Count], ...] = ()
    """(case, times): how often a policy led the partition on past a case, in its life."""
    latency_ms: int = field(
        default=0,
        metadata=gauge(
            "lockstep_latency_seconds",
            PARTITION,
            "From the record timestamp to the target's acknowledgement, last batch",
            divisor=1000,
        ),
    )
    age_window: tuple[int, ...] = ()
    """Record timestamp to fetch, in milliseconds, over the last minute: (Unix milliseconds of the last one, last,
    least, most, mean); () before the first."""
    latency_window: tuple[int, ...] = ()
    """The same from record timestamp to acknowledgement."""
    slot: SlotNumber = -1
    located: bool = False
    """`upstream` is where the copy ends in the target's log. Then the partition is at rest, and the log was read, or
    every append was acknowledged. False while it is copied, after a kill, and in rows of releases that do not say it.
    """
    beyond: int = 0
    """Records of ours that the target's log holds behind `downstream`, of a partition at rest whose source did not
    answer. Only the source knows which records they are, so `upstream` stays in front of them. 0: none, or not read, or
    the partition is copied."""
    uncounted: Count = 0
    """Records of ours that the target's log holds behind `downstream`, and that a resumed copy has yet to count in the
    source's log. It appends nothing until then. 0: none, or `beyond` has them."""
    transform: str = ""
    """The version of the transform, or of the header rules, that the records behind `transform_since` up to `upstream`
    were made with; "": they are as they were. Records of ours that the target holds behind `downstream` were made with
    it too."""
    transform_since: Offset = -1
    """The first upstream offset under that version; -1: the version never changed."""
    begins: str = ""
    """The operator's change of the offset, until the copy goes on: `altered` (it begins behind `upstream`) | `reset`
    (it begins where the first one would). Or `lost`: nothing says where the copy ends, and it is halted."""

    @property
    def skips_ahead(self) -> bool:
        """An operator moved the copy forward, past records that stay uncopied. Its last offset run still holds."""
        return self.begins == "altered" and not self.begun and len(self.open_run) == 3

    @property
    def begun(self) -> bool:
        """Something was appended in this epoch."""
        return self.sequence != -1 or bool(self.others)

    def continues(self, other: "PartitionProgress") -> bool:
        """Return whether both rows are about the same two logs and the same producer id, in any epochs."""
        return (self.producer_id, self.source_topic_id, self.target_topic_id) == (
            other.producer_id,
            other.source_topic_id,
            other.target_topic_id,
        )

    def is_outdated_by(self, other: "PartitionProgress") -> bool:
        """Return whether it is of an earlier epoch of the same chain: a slot that woke late wrote it."""
        return self.continues(other) and self.producer_epoch < other.producer_epoch

    @property
    def is_set(self) -> bool:
        """An operator has set where the copy begins, and nothing was appended since."""
        return self.begins not in ("", LOST)

    @property
    def has_end(self) -> bool:
        """The row says where the copy ends, by the target's log or as an operator has set it."""
        return self.located or self.is_set

    @property
    def needs_source(self) -> bool:
        """Only the source can say where the copy ends: the target's log was read."""
        return self.beyond > 0


def progress_by_partition(rows: Iterable[Row]) -> dict[TopicPartition, PartitionProgress]:
    """Return the progress of each partition. Rows of other kinds are ignored."""
    return {(row.topic, row.partition): row for row in rows if isinstance(row, PartitionProgress)}


@row_kind("runs", "topic", "partition", "chunk", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRuns(Row):
    """A chunk of a partition's ended offset runs. Owner: data plane (the slot).

    Along a run downstream minus upstream is constant. The run that still grows is the `open_run` of
    `PartitionProgress`. More in `docs/reference/offset-runs.md`. Every run ever written stays true for its topics,
    producer id and generation. So a reader who misses some translates to an earlier offset, never to one too far
    (`offset_runs.py`).
    """

    topic: str
    partition: PartitionNumber
    chunk: Count
    """Number in the ring of the partition's chunks, from 0."""
    edition: Count = 0
    """The number of times that the chunk got other runs. Within an edition runs are only appended."""
    generation: Epoch = 0
    """Epoch of our chain in which the runs hold."""
    producer_id: ProducerId = -1
    source_topic_id: str = ""
    target_topic_id: str = ""
    upstream: Count = 0
    """First upstream offset of the first run; `downstream` is its offset on the target."""
    downstream: Count = 0
    runs: tuple[tuple[Count, Count, Count], ...] = ()
    """Each as (upstream offsets passed over since the run before, downstream offsets since it, records)."""


@row_kind("assignment", "slot", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Row):
    """The partitions that a slot is to copy. Owner: data plane (the driver).

    A slot drains what is no longer in its newest assignment.
    """

    slot: SlotNumber
    generation: Count = 0
    partitions: tuple[tuple[str, PartitionNumber], ...] = ()
    ending: bool = False
    """The slot drains everything, writes that in its status and ends."""


@row_kind("slot", "slot", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus(Row):
    """The status of a slot, by itself. Owner: data plane (the slot). phase: `started` | `released`."""

    slot: SlotNumber
    phase: str
    run: str = ""
    """The run of the slot that wrote the row. The driver ignores rows of earlier runs."""
    generation: Count = 0
    partitions: Count = 0
    """Partitions that the slot tends."""
    resting: Count = 0
    """Partitions of its assignment that an operator wants to rest."""
    held_bytes: Count = field(
        default=0, metadata=gauge("lockstep_held_bytes", SLOT, "Bytes of batches fetched and not yet acknowledged")
    )
    held_records: Count = field(
        default=0, metadata=gauge("lockstep_held_records", SLOT, "Records fetched and not yet acknowledged")
    )
    commit_window: tuple[int, ...] = ()
    """The time that it took to write progress, as `PartitionProgress.age_window`."""
    syncs: Count = field(
        default=0, metadata=counter("lockstep_offset_syncs", SLOT, "Offset syncs acknowledged", since="run")
    )
    """Offset syncs acknowledged in this run."""
    sync_window: tuple[int, ...] = ()
    """The time to their acknowledgement, as `PartitionProgress.age_window`."""
    resuming: int = -1
    """Tended partitions that had not found what the target's log has of them when the slot last wrote its rows. Their
    rows may say less. -1: unknown, or it has written no rows since its status before."""
    pause_ms: Count = 0
    """Milliseconds since its status before this one, by its own clock; 0: unknown, or this is the first."""
    unreadable: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, count) of records that this run passed over, of the first 100 partitions that have some."""
    link_bytes: tuple[tuple[str, str, str, int], ...] = ()
    """(cluster, direction, rack, bytes) of what this run sent to brokers and received from them."""
    transforms: tuple[TransformCount, ...] = ()
    """(name, version, records in, records out, failed records, milliseconds of evaluation, bytes that wait) of what
    this run has evaluated, also to find out where copies end."""
    causes: tuple[tuple[str, Reason], ...] = ()
    """(part, reason) of what fails and is tried again; `TOPIC-N` is a partition. At most 20. An earlier release wrote
    none, only `troubles`."""
    troubles: tuple[tuple[str, str], ...] = field(default=(), init=False)
    """The sentences of `causes`, for people and for earlier releases."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "troubles", tuple((part, format_sentence(cause)) for part, cause in self.causes))

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> "SlotStatus":
        """Return the row of these fields. Texts without causes get the code `unknown`."""
        row_fields = dict(values)
        texts = tuple((part, read_reason(NO_REASON, text)) for part, text in row_fields.pop("troubles", ()))
        return cls(**{**row_fields, "causes": row_fields.get("causes") or texts})


@row_kind("origin", "producer_id", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Row):
    """The flow and the origin of a producer id in the target's log. Never deleted (`kafka-wire.md` §4).

    Owner: data plane (the driver; a slot where it passes records of another origin on). Acknowledged before the first
    batch with the id. The flow's producer id for an origin is in the *first* such row in the log whose target cluster
    id is the target's present one. If the log is read back, no batch has it, and Lockstep chooses it: 2^52 and more.
    """

    producer_id: ProducerId
    source: str
    target: str
    origin_cluster_id: str
    target_cluster_id: str
    appends: str = ""
    """The way in which the flow appends to this target, by a trial before its first record: `sequences` |
    `transactions` | `read-back`. Empty: not tried, or the file asks for transactions."""


@row_kind("transform", "name", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class Transform(Row):
    """A transform of the flow, as the driver compiled it last. Owner: data plane (the driver).

    A partition's row has the version that its records were made with (`PartitionProgress.transform`).
    """

    name: str
    transform_version: str = ""
    """The version of statement or function, options and secrets together; "": there is none, and `refused` says why."""
    statement: str = ""
    """The statement. It has the names of secrets only."""
    function: str = ""
    """The function in Python, `package.module:function`; "": it has a statement."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets that it needs, or that its function gets."""
    written: tuple[str, ...] = ()
    """The columns that it makes anew: `headers` | `key` | `timestamp` | `value`."""
    tombstones: str = ""
    """`pass` | `filter`, as `lockstep.transform.NAME.tombstones`."""
    filtered: str = ""
    """`drop` | `tombstone`, as `lockstep.transform.NAME.filtered`."""
    spark: str = ""
    """The version of Spark that compiled it."""
    java: Count = 0
    """The major version of Java, likewise."""
    jar: str = ""
    """The hash of the sources of the transforms' jar, likewise."""
    package: str = ""
    """The distribution that has the function, with its version."""
    python: str = ""
    """The version of Python that the function runs on."""
    pyarrow: str = ""
    """The version of pyarrow, likewise."""
    refused: str = ""
    """The reason for which it was not compiled. No topic of it is copied then."""
