"""What altering or resetting its offset makes of a partition's row. Pure.

The row names where the copy is to begin, in an epoch that the target has not seen. The slot that starts the partition
next obeys (`Resumer`). Until then no run and no place has that epoch, so no translation uses records that do not exist
yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lockstep_data_plane.record_batch.stamp import EPOCHS
from lockstep_protocol.connect_offsets import OffsetChange, RefusedOffsets
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress

ALTERED, RESET = "altered", "reset"


def altered_rows(
    rows: Iterable[PartitionProgress], source: str, changes: Sequence[OffsetChange]
) -> list[PartitionProgress]:
    """Rows that differ because of the changes, in the order of `rows`; `source` is the alias in them. What has no row
    needs none: its first start goes by Connect's own record. The same changes twice change nothing the second time.
    Raises RefusedOffsets."""
    wanted = {tp: change.offset for change in changes if (tp := changed_partition(change, source)) is not None}
    found = []
    for row in rows:
        tp = (row.topic, row.partition)
        if tp in wanted and (new := with_position(row, wanted[tp])) != row:
            found.append(new)
    return found


def reset_rows(rows: Iterable[PartitionProgress]) -> list[PartitionProgress]:
    """All rows, reset; but those that are already. Raises RefusedOffsets."""
    return [new for row in rows if (new := with_position(row, None)) != row]


def partitions_to_check(
    changes: Iterable[OffsetChange], source: str, topics: Iterable[MirroredTopic]
) -> set[TopicPartition]:
    """The partitions that are given an offset and are there on the source: whose end `refuse_beyond` is to know."""
    there = {row.source_topic: row.partitions for row in topics if row.phase != "deleted"}
    given = (changed_partition(change, source) for change in changes if change.offset is not None)
    return {tp for tp in given if tp is not None and tp[1] < there.get(tp[0], 0)}


def refuse_beyond(changes: Iterable[OffsetChange], source: str, ends: Mapping[TopicPartition, int]) -> None:
    """`ends`: the next offset of each source partition; what is not among them is not judged. Raises RefusedOffsets for
    an offset that the source has not written: the partition would halt as truncated."""
    for change in changes:
        tp = changed_partition(change, source)
        if tp is None or change.offset is None or tp not in ends or change.offset < ends[tp]:
            continue
        last = ends[tp] - 1
        at_most = f"its last offset is {last:,}: name that one at most" if last >= 0 else "it is empty: reset it"
        raise RefusedOffsets(
            f"{tp[0]}-{tp[1]} has no offset {change.offset:,} on {source}, and would halt as truncated; {at_most}"
        )


def not_located(rows: Iterable[PartitionProgress], topics: Iterable[MirroredTopic]) -> list[PartitionProgress]:
    """Rows that do not say where the copy ends, of topics that are mirrored; what an operator has altered is known. In
    doubt ones come last."""
    mirrored = {topic.source_topic for topic in topics if topic.phase == "mirrored"}
    found = [row for row in rows if row.topic in mirrored and not row.has_end]
    return sorted(found, key=lambda row: (row.phase == "halted", row.topic, row.partition))


def changed_partition(change: OffsetChange, source: str) -> TopicPartition | None:
    """Which partition of the flow a change is about, None for rubbish and for other sources."""
    place = change.source_partition()
    return place[1] if place is not None and place[0] == source else None


def connect_entry(row: PartitionProgress, source: str) -> OffsetChange:
    """The offset of a partition as Connect would have it: None where nothing was copied, or it was reset."""
    partition = {"cluster": source, "partition": row.partition, "topic": row.topic}
    return OffsetChange(partition, row.upstream if row.upstream >= 0 and row.begins != RESET else None)


def with_position(row: PartitionProgress, offset: int | None) -> PartitionProgress:
    """The row of a copy that is to begin behind upstream `offset` (-1: at 0); None: where a first one would. Raises
    RefusedOffsets where the producer id has no epoch left."""
    upstream = -1 if offset is None else offset
    begins = RESET if offset is None else ALTERED
    if row.begins:  # nothing was appended in its epoch yet
        return replace(row, upstream=upstream, begins=begins, lag_records=max(0, row.source_end - 1 - upstream))
    if row.producer_epoch >= EPOCHS:
        raise RefusedOffsets(f"our producer id has no epoch left in {row.topic}-{row.partition}")
    return replace(
        row,
        phase="stopped",
        reason="",
        case="",
        upstream=upstream,
        upstream_epoch=-1,
        producer_epoch=row.producer_epoch + 1,
        sequence=-1,
        others=(),
        open_run=(),
        skips=(),
        lag_records=max(0, row.source_end - 1 - upstream),
        lag_ms=0,
        located=False,
        begins=begins,
    )
