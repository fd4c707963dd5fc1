"""The offsets of a source partition that a reader of the target cannot read yet. Pure.

The number is never less than what the reader lacks. If that is unknown, it is None, and never 0.
"""

from dataclasses import dataclass

from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress

SILENT_AFTER_S = 15.0
"""Seconds after which a slot counts as ended or not known to copy. A slot reports every 5 s."""

MOST_PATIENCE_S = 60.0
"""The longest such time for a slow slot. After a slot was frozen, its last pause says nothing."""

WRITES_WITHIN_S = 3.0
"""Seconds within which a slot writes a row while records move. If the row is older and both logs go on behind it, the
slot may have been killed after it copied more (`silent` of `count_behind`)."""

NOT_ASKED = -1
"""The target's log end if it was not asked for, or if the copy goes to several logs."""

NEW_LOG = frozenset({"source-recreated", "target-recreated"})
"""Cases (`PartitionProgress.case`) in which nothing of the source's present log is in the target's present log."""

NOT_COUNTABLE = frozenset({"source-truncated", "target-truncated", "in-doubt"})
"""Cases in which the row does not say how much of the source's log the target still holds."""


def silent_after_s(pause_ms: int) -> float:
    """Return the seconds after which a slot counts as silent, by its `SlotStatus.pause_ms`.

    On slow cores a slot reports rarely.
    """
    return max(SILENT_AFTER_S, min(MOST_PATIENCE_S, 3 * pause_ms / 1000))


@dataclass(frozen=True, slots=True)
class LogRange:
    """The log of a source partition: its first offset, and the offset after the last readable record."""

    start: int
    end: int


def is_of_another_log(row: PartitionProgress, topic: MirroredTopic | None) -> bool:
    """Return whether the row is about a topic that was deleted and created again under the same name."""
    if row.case in NEW_LOG:
        return True
    if topic is None:
        return False
    return _differ(row.source_topic_id, topic.source_topic_id) or _differ(row.target_topic_id, topic.target_topic_id)


def _differ(copied_id: str, present_id: str) -> bool:
    """Return whether two topic ids are known, and differ."""
    return copied_id != present_id and copied_id != "" != present_id


def count_behind(
    row: PartitionProgress | None,
    topic: MirroredTopic | None,
    source: LogRange | None,
    target_end: int | None = NOT_ASKED,
    *,
    silent: bool = False,
) -> int | None:
    """Return the number of source offsets that are not on the target yet; None: unknown.

    Records that the flow passes over for good (skipped, quarantined) do not count.

    Args:
        row: The progress of the partition; None: the data plane has not begun.
        topic: The row of its topic.
        source: The source's log, read after the row; None: the source did not answer.
        target_end: The target's log end, read after the row; None: the target did not answer.
        silent: A copy that moves would have written another row by now.
    """
    if source is None or why_unknown(row, topic, source, target_end, silent=silent):
        return None
    upstream = copied_upstream(row, topic)
    return max(0, source.end - (source.start if upstream is None else upstream + 1))


def copied_upstream(row: PartitionProgress | None, topic: MirroredTopic | None) -> int | None:
    """Return the last offset of the source's present log that is on the target, at least; None: the copy has not begun.

    Each record beyond the row has an offset of its own on the target.
    """
    begun = not (row is None or is_of_another_log(row, topic) or row.begins == "reset")
    return row.upstream + row.beyond if row is not None and begun else None


def missing_since_ms(row: PartitionProgress | None, observed_end: tuple[int, int | None] | None) -> int | None:
    """Return since when the oldest missing record has been in the source's log, in Unix milliseconds.

    None: no log end beyond that record was observed.

    `observed_end` is the driver's observation: a log end, and when it was first seen (`SourceEnds.by_partition`).
    """
    times = []
    if row is not None and row.lag_records:
        times.append(row.at_ms - row.lag_ms)
    end, first_seen_ms = observed_end or (0, None)
    if first_seen_ms is not None and end > (0 if row is None else row.upstream + 1):
        times.append(first_seen_ms)
    return min(times, default=None)


def why_unknown(
    row: PartitionProgress | None,
    topic: MirroredTopic | None,
    source: LogRange | None,
    target_end: int | None = NOT_ASKED,
    *,
    silent: bool = False,
) -> str:
    """Return the sentence that says why `count_behind` is None; "" if it is not."""
    if source is None:
        return "the source did not say where its log ends"
    if row is None or is_of_another_log(row, topic):
        return ""
    if row.case in NOT_COUNTABLE:
        return f"how much of it the target holds is not known ({row.case})"
    if target_end is None:
        return "the target did not say where its log ends"
    if target_end != NOT_ASKED and target_end <= row.downstream:
        return f"the target's log ends at {target_end}, before offset {row.downstream} that it had acknowledged"
    if source.end <= row.upstream:
        return f"the source's log ends at {source.end}, before offset {row.upstream} that was copied"
    if silent and source.end > row.upstream + 1 and _may_be_older(row) and target_end > row.downstream + 1:
        return f"the target's log ends at {target_end}, and the row covers it only up to {row.downstream}"
    return ""


def _may_be_older(row: PartitionProgress) -> bool:
    """Return whether more may have been copied than the row says, for example by a slot that was killed."""
    return row.phase != "halted" and not row.located and not row.needs_source
