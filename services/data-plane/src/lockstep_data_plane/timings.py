"""How old records are when a slot fetches them, and when the target has acknowledged them (no I/O, no clock).

MM2 measures each record. A batch that passes as it lies is not opened for that: its header names the timestamp of its
first record and the largest one, and its records count as spread evenly between them, which is exact for batches of
one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lockstep_data_plane.batches.layout import CONTROL, LOG_APPEND_TIME, Batch
from lockstep_data_plane.chain import Receipt
from lockstep_data_plane.partition import Partition
from lockstep_protocol.state import PartitionProgress
from lockstep_runtime.window import Window

__all__ = ["Timings"]


@dataclass(slots=True)
class _Timing:
    since_ms: int
    read_bytes: int = 0
    age: Window = field(default_factory=Window)
    latency: Window = field(default_factory=Window)


class Timings:
    """Of the partitions of one slot, each from when the slot took it up until it is forgotten."""

    def __init__(self) -> None:
        self._of: dict[Partition, _Timing] = {}

    def fetched(self, partition: Partition, batches: Iterable[Batch], size: int, now_ms: int) -> None:
        """Batches came from the source, `size` bytes together."""
        timing = self._timing(partition, now_ms)
        timing.read_bytes += size
        for batch in batches:
            if batch.attributes & CONTROL:
                continue
            first = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else batch.base_timestamp
            _add(timing.age, now_ms, first, batch.max_timestamp, batch.record_count)

    def acknowledged(self, partition: Partition, receipts: Iterable[Receipt], now_ms: int) -> None:
        """The target has these."""
        timing = self._timing(partition, now_ms)
        for receipt in receipts:
            piece = receipt.piece
            _add(timing.latency, now_ms, piece.base_timestamp, piece.max_timestamp, piece.count)

    def told(self, partition: Partition, row: PartitionProgress) -> PartitionProgress:
        """The row with what was measured; the one it was, as long as nothing was."""
        timing = self._of.get(partition)
        if timing is None:
            return row
        return replace(
            row,
            counts_since=timing.since_ms,
            read_bytes=timing.read_bytes,
            age_window=timing.age.summary,
            latency_window=timing.latency.summary,
        )

    def forget(self, partition: Partition) -> None:
        """The partition has left the slot."""
        self._of.pop(partition, None)

    def _timing(self, partition: Partition, now_ms: int) -> _Timing:
        timing = self._of.get(partition)
        if timing is None:
            timing = self._of[partition] = _Timing(now_ms)
        return timing


def _add(window: Window, now_ms: int, first: int, last: int, count: int) -> None:
    if first >= 0 and last >= 0 and count > 0:  # records of before Kafka 0.10 have no timestamp
        # The base of a compacted batch may be its delete horizon, which lies behind all its records.
        window.add(now_ms, now_ms - last, least=now_ms - last, most=now_ms - min(first, last), count=count)
