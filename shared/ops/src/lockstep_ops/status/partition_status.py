"""The state of one partition, and how far behind it is, from its rows and the clusters' answers. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lockstep_ops.formatting import in_time
from lockstep_ops.status.report import COPYING, NOT_BEGUN, SILENT, STALLED, UNASSIGNED, UNKNOWN, PartitionLine
from lockstep_rules.offsets.first_seen import late_ms, no_delay, released_offset
from lockstep_rules.offsets.lag import (
    NOT_ASKED,
    SILENT_AFTER_S,
    WRITES_WITHIN_S,
    LogRange,
    copied_upstream,
    count_behind,
    is_of_another_log,
    missing_since_ms,
    silent_after_s,
    why_unknown,
)
from lockstep_rules.offsets.stalled_copy import why_stalled
from lockstep_rules.selection_count import NOT_COUNTED, SelectionCount
from lockstep_runtime.state.desired_state import copy_ends
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, Row, SeenEnds, SlotStatus

EndSeen = tuple[int, int | None] | None
"""An end that the driver saw, and since when, as `SourceEnds.by_partition`. None: it saw no more than the rows say."""

SILENT_MS, WRITES_WITHIN_MS = round(SILENT_AFTER_S * 1000), round(WRITES_WITHIN_S * 1000)

MOVES_WITHIN_MS = 10_000
"""A partition that is behind, whose row is older than this, and that did not move between two checks is stalled."""


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The answers of both clusters after the rows had been read. What is absent was not answered."""

    source: Mapping[tuple[str, int], LogRange] = field(default_factory=dict)
    target: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The next offset of each partition of the target, by its topic there."""
    source_ids: Mapping[str, str] = field(default_factory=dict)
    target_ids: Mapping[str, str] = field(default_factory=dict)
    selected: Mapping[str, int] = field(default_factory=dict)
    """Topics of the source that the flow selects, with their partitions."""
    topic_count: SelectionCount = NOT_COUNTED
    """Topics of the source, and those that the filters select."""
    in_sync: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Replicas in sync of each partition of the target, and replicas of its topic."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """The reasons why clusters did not answer, by alias."""
    earlier: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The ends of the source's logs some seconds before, if they were read then."""

    def with_present_ids(self, topic: MirroredTopic) -> MirroredTopic:
        """Return the topic's row with the ids that the clusters give it now."""
        return replace(
            topic,
            source_topic_id=self.source_ids.get(topic.source_topic, topic.source_topic_id),
            target_topic_id=self.target_ids.get(topic.target_topic, topic.target_topic_id),
        )


@dataclass(frozen=True, slots=True)
class SlotOwners:
    """The slot of each partition, and the slots that have reported lately."""

    by_partition: Mapping[tuple[str, int], int]
    heard_ms: Mapping[int, int]
    """The last time that each started slot was heard."""
    silent_after_ms: Mapping[int, int] = field(default_factory=dict)
    """The time after which each of them counts as silent."""

    @classmethod
    def from_rows(cls, assignments: list[Assignment], statuses: list[SlotStatus]) -> "SlotOwners":
        return cls(
            {tp: row.slot for row in assignments if not row.ending for tp in row.partitions},
            {row.slot: row.at_ms for row in statuses if row.phase == "started"},
            {row.slot: round(silent_after_s(row.pause_ms) * 1000) for row in statuses},
        )

    def silent(self, slot: int, at_ms: int) -> bool:
        """Return whether a started slot has not been heard for too long, or has a clock of another time."""
        limit_ms = self.silent_after_ms.get(slot, SILENT_MS)
        return slot in self.heard_ms and abs(at_ms - self.heard_ms[slot]) > limit_ms


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a copy on purpose from the end of the source's log.

    `limit` is the first offset that is not to be copied now. `end` is the one at which the copy ends; None: it goes on.
    """

    limit: int
    delay_ms: int = 0
    end: int | None = None

    def describe(self, row: PartitionProgress, lag_ms: int | None) -> str:
        """Return a sentence without a full stop about the copy whose progress is `row`."""
        if self.end is not None:
            beyond = row.upstream + 1 - self.end
            if beyond > 0:
                return f"its end is {self.end:,}, and {beyond:,} offsets beyond it were copied before it was set"
            return f"it ends at {self.end:,}"
        delayed = f"delayed {in_time(self.delay_ms)}"
        if lag_ms is None:
            return delayed
        late = late_ms(lag_ms, self.delay_ms)
        return f"{delayed}, {in_time(late)} late" if late else f"{delayed}, on time"


def find_holds(rows: Iterable[Row], delay_ms: Callable[[str], int] = no_delay) -> dict[TopicPartition, Hold]:
    """Return what holds each partition back that has a progress row.

    Args:
        rows: The rows of the flow.
        delay_ms: Returns the delay of a source topic in milliseconds.
    """
    rows = list(rows)
    partitions = [(row.topic, row.partition) for row in rows if isinstance(row, PartitionProgress)]
    topics = {row.source_topic: row for row in rows if isinstance(row, MirroredTopic)}
    seen = {(row.topic, row.partition): row for row in rows if isinstance(row, SeenEnds)}
    ends, holds = copy_ends(rows, partitions), {}
    delays = {topic: delay_ms(topic) for topic, _ in partitions}
    for tp in partitions:
        if tp in ends:
            holds[tp] = Hold(ends[tp], delays[tp[0]], ends[tp])
        elif delays[tp[0]]:
            holds[tp] = Hold(released_offset(seen.get(tp), topics.get(tp[0])), delays[tp[0]])
    return holds


def partition_line(
    topic: MirroredTopic,
    number: int,
    row: PartitionProgress | None,
    *,
    wanted: str,
    slots: SlotOwners,
    logs: LogOffsets,
    at_ms: int,
    end_seen: EndSeen = None,
    by_key: bool = False,
    hold: Hold | None = None,
) -> PartitionLine:
    """Return the line of one source partition. `end_seen` is the end that the driver saw last.

    `topic` has its present ids (`LogOffsets.with_present_ids`).
    """
    tp = topic.source_topic, number
    source = logs.source.get(tp)
    target_end = NOT_ASKED if by_key else logs.target.get((topic.target_topic, number))
    silent = row is not None and at_ms - row.at_ms > WRITES_WITHIN_MS
    lag = count_behind(row, topic, source, target_end, silent=silent)
    slot = slots.by_partition.get(tp, -1)
    state, reason = _state_by_rows(topic, number, row, wanted, slots, at_ms, topic.copied(by_key=by_key))
    if row is not None and state == COPYING:
        state, reason = _state_by_logs(topic, row, logs, lag, at_ms, hold)
    if not reason and lag is None:
        reason = why_unknown(row, topic, source, target_end, silent=silent)
    copied_row = None if copied_upstream(row, topic) is None else row
    lag_ms = _lag_ms(copied_row, end_seen, lag, state, slots.heard_ms.get(slot, 0), at_ms)
    shown = row or PartitionProgress(topic=topic.source_topic, partition=number, phase=NOT_BEGUN)
    if hold is not None and row is not None and not reason and state in (COPYING, "stopped"):
        reason = hold.describe(row, lag_ms)
    return PartitionLine(
        topic=topic.source_topic,
        partition=number,
        phase=shown.phase,
        wanted=wanted,
        lag_records=lag,
        lag_ms=lag_ms,
        upstream=shown.upstream,
        source_end=shown.source_end if source is None else source.end,
        slot=shown.slot if slot < 0 else slot,
        written_ms=shown.at_ms,
        case=shown.case,
        cause=(shown.cause or ReasonCode.NO_CAUSE.to_reason(phase="halted")) if shown.phase == "halted" else NO_REASON,
        state=state,
        why=reason,
        quarantined=shown.quarantined,
        given_up=shown.given_up,
        target_lost=shown.target_lost,
        appends="" if row is None else _append_mode(row),
        doubled=shown.doubled,
        exact=None if row is None else _is_exact(row),
        delay_ms=0 if hold is None else hold.delay_ms,
        target_end=logs.target.get((topic.target_topic, number)),
        end=None if hold is None else hold.end,
    )


def _append_mode(row: PartitionProgress) -> str:
    """Return the means that keep records of a partition from being on the target twice."""
    return "transactions" if row.transactional else "read back" if row.read_back else "idempotent"


def _is_exact(row: PartitionProgress) -> bool:
    """Return whether the target has each record of a partition once.

    None was found twice or passed over, and no policy led the copy past a gap.
    """
    return not (row.doubled or row.gaps or row.given_up or row.target_lost or row.quarantined)


def is_conclusive(rows: Iterable[Row], at_ms: int, logs: LogOffsets, delay_ms: Callable[[str], int] = no_delay) -> bool:
    """Return whether each row that is behind what is to be copied is recent.

    If one is not, one check cannot distinguish an idle partition from a stalled one.
    """
    rows = list(rows)
    holds = find_holds(rows, delay_ms)
    return all(
        at_ms - row.at_ms <= WRITES_WITHIN_MS
        or row.phase != COPYING
        or source is None
        or _due(source.end, holds.get((row.topic, row.partition))) - 1 <= row.upstream
        for row in rows
        if isinstance(row, PartitionProgress)
        for source in (logs.source.get((row.topic, row.partition)),)
    )


def _due(end: int, hold: Hold | None) -> int:
    """Return the offset up to which a partition is to be copied now, if its log ends at `end`."""
    return end if hold is None else min(end, hold.limit)


def _state_by_rows(
    topic: MirroredTopic,
    number: int,
    row: PartitionProgress | None,
    wanted: str,
    slots: SlotOwners,
    at_ms: int,
    copied: int,
) -> tuple[str, str]:
    """Return the partition's state in one word as far as rows tell it, and the reason if it is not plain.

    It is `copying` only if every row says so.
    """
    if row is not None and row.phase == "halted":
        return "halted", ""
    if wanted != "running":
        return wanted, ""
    if topic.phase != "mirrored":
        return (NOT_BEGUN if row is None else topic.phase), ""
    if number >= copied:
        return (NOT_BEGUN if row is None else UNASSIGNED), "the target's topic has no such partition"
    if row is None:
        return NOT_BEGUN, ""
    if is_of_another_log(row, topic):
        return NOT_BEGUN, "the topic was created anew, and nothing of it is copied yet"
    if row.phase != COPYING:
        return row.phase, ""
    slot = slots.by_partition.get((topic.source_topic, number), -1)
    if slot not in slots.heard_ms:
        return UNASSIGNED, ("no slot copies it" if slot < 0 else f"slot {slot} has not started")
    if slots.silent(slot, at_ms):
        return SILENT, f"slot {slot} has said nothing lately"
    return COPYING, ""


def _state_by_logs(
    topic: MirroredTopic, row: PartitionProgress, logs: LogOffsets, lag: int | None, at_ms: int, hold: Hold | None
) -> tuple[str, str]:
    """Return the state of a partition that rows call `copying`, and the reason if it is another one."""
    if lag is None:
        return UNKNOWN, ""
    earlier_end = _due(logs.earlier.get((row.topic, row.partition), -1), hold)
    if lag and at_ms - row.at_ms > MOVES_WITHIN_MS and earlier_end - 1 > row.upstream:
        return STALLED, _why_stalled(topic, row.partition, logs)
    return COPYING, ""


def _why_stalled(topic: MirroredTopic, number: int, logs: LogOffsets) -> str:
    """Say why the copy does not move, if the target shows it."""
    in_sync, replicas = logs.in_sync.get((topic.target_topic, number), (None, None))
    cause = why_stalled(topic, number, in_sync, replicas)
    return format_sentence(cause) or "the source has more, and the copy does not move"


def _lag_ms(
    row: PartitionProgress | None, end_seen: EndSeen, lag: int | None, state: str, heard_ms: int, at_ms: int
) -> int | None:
    """Return how long the oldest missing record has been in the source's log, in milliseconds, or None if unknown.

    The time counts from when its slot or the driver saw it there. `row` is of the log that there is now.
    """
    if lag is None:
        return None
    if not lag:
        return 0
    if (since := missing_since_ms(row, end_seen)) is not None:
        return max(0, at_ms - since)
    # It was up to date when its slot spoke last: what is missing came since.
    return max(0, at_ms - max(row.at_ms, heard_ms)) if row is not None and state == COPYING else None
