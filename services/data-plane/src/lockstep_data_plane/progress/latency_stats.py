"""How much a slot copies, and how old records are when it fetches them and when the target has acknowledged them (no
I/O, no clock).

MM2 measures each record. A batch that passes as it lies is not opened for that: its header names the timestamp of its
first record and the largest one, and its records count as spread evenly between them, which is exact for batches of
one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress
from lockstep_protocol.sliding_window import Window

__all__ = ["LatencyStats"]


@dataclass(slots=True)
class _PartitionStats:
    since_ms: int
    records: int = 0
    bytes: int = 0
    read_bytes: int = 0
    age: Window = field(default_factory=Window)
    latency: Window = field(default_factory=Window)


class LatencyStats:
    """Of the partitions of one slot, each from when the slot took it up until it is forgotten."""

    def __init__(self) -> None:
        self._of: dict[TopicPartition, _PartitionStats] = {}

    def fetched(self, partition: PartitionMachine, batches: Iterable[Batch], size: int, now_ms: int) -> None:
        """Batches came from the source, `size` bytes together."""
        timing = self._timing(partition, now_ms)
        timing.read_bytes += size
        _measure(timing.age, now_ms, (_span(batch) for batch in batches if not batch.attributes & CONTROL))

    def acknowledged(self, partition: PartitionMachine, acks: Sequence[Ack], now_ms: int) -> None:
        """The target has these, and they count."""
        timing = self._timing(partition, now_ms)
        pieces = [ack.piece for ack in acks]
        timing.records += sum(piece.count for piece in pieces)
        timing.bytes += sum(ack.size for ack in acks)
        _measure(timing.latency, now_ms, ((p.base_timestamp, p.max_timestamp, p.count) for p in pieces))

    def with_stats(self, row: PartitionProgress) -> PartitionProgress:
        """The row with what was counted and measured; the one it was, as long as nothing was. Each row that a slot
        writes passes through here: its counts and `counts_since` have to belong together."""
        timing = self._of.get((row.topic, row.partition))
        if timing is None:
            return row
        return replace(
            row,
            counts_since=timing.since_ms,
            records=timing.records,
            bytes=timing.bytes,
            read_bytes=timing.read_bytes,
            age_window=timing.age.summary,
            latency_window=timing.latency.summary,
        )

    def state(self, partition: PartitionMachine) -> tuple[int, ...]:
        """Differs from what it was before whenever `told` would."""
        timing = self._of.get(partition.tp)
        return () if timing is None else (timing.since_ms, timing.records, timing.read_bytes)

    def remove(self, partition: PartitionMachine) -> None:
        """The partition has left the slot."""
        self._of.pop(partition.tp, None)

    def _timing(self, partition: PartitionMachine, now_ms: int) -> _PartitionStats:
        tp = partition.tp
        timing = self._of.get(tp)
        if timing is None:
            timing = self._of[tp] = _PartitionStats(now_ms)
        return timing


def _span(batch: Batch) -> tuple[int, int, int]:
    """First timestamp, largest one, records."""
    first = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else batch.base_timestamp
    return first, batch.max_timestamp, batch.record_count


def _measure(window: Window, now_ms: int, spans: Iterable[tuple[int, int, int]]) -> None:
    """All at once, because one record a batch is common."""
    count = total = newest = 0
    earliest, latest = float("inf"), float("-inf")
    for first, last, records in spans:
        if first < 0 or last < 0 or records <= 0:  # records of before Kafka 0.10 have no timestamp
            continue
        if first > last:  # the base of a compacted batch may be its delete horizon, which lies behind all its records
            first = last
        count += records
        total += records * (first + last)
        earliest, latest, newest = min(earliest, first), max(latest, last), last
    if count:
        mean = now_ms - total / 2 / count
        window.add(now_ms, now_ms - newest, least=now_ms - latest, most=now_ms - earliest, mean=mean, count=count)
