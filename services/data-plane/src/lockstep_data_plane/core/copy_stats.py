"""How much a slot has copied of a partition. How old records are when it fetches them, and when the target has
acknowledged them (no I/O, no clock).

MM2 measures each record. A batch that passes unchanged is not opened for that: its header has the timestamp of its
first record and the largest one. Its records count as spread evenly between them, which is exact for batches of one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch
from lockstep_protocol.metric import row_metrics
from lockstep_protocol.rows.state_rows import PartitionProgress
from lockstep_protocol.sliding_window import Window

COUNTED = tuple(name for name, one in row_metrics(PartitionProgress).items() if one.since)
"""The fields of the row that count from 0 when a slot takes the partition up."""


class CopyStats:
    """Of one partition, from when the slot took it up."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTED, 0)
        """By field of the row."""
        self._since_ms = 0
        """When something was fetched first; 0: nothing was."""
        self._latency_ms = 0
        self._age = Window()
        self._latency = Window()

    def fetched(self, batches: Iterable[Batch], size: int, now_ms: int) -> None:
        """Batches came from the source, `size` bytes together."""
        self._since_ms = self._since_ms or now_ms
        self.counts["read_bytes"] += size
        _measure(self._age, now_ms, [_span(batch) for batch in batches if not batch.attributes & CONTROL])

    def acknowledged(self, acks: Sequence[Ack], now_ms: int) -> None:
        """The target has these: count them, and measure their latency."""
        spans = []
        for outgoing, _, size, _ in acks:
            self.counts["records"] += outgoing.count
            self.counts["bytes"] += size
            spans.append((outgoing.base_timestamp, outgoing.max_timestamp, outgoing.count))
        self._latency_ms = max(0, now_ms - acks[-1].outgoing.max_timestamp)
        _measure(self._latency, now_ms, spans)

    def in_row(self, row: PartitionProgress) -> PartitionProgress:
        """The row with what was counted and measured; the one it was, as long as nothing was counted. Each row that a
        slot writes passes through here: its counts and `counts_since` have to belong together."""
        if not any(self.counts.values()):
            return row
        counts: dict[str, Any] = self.counts
        return replace(
            row,
            **counts,
            counts_since=self._since_ms,
            latency_ms=self._latency_ms,
            age_window=self._age.summary,
            latency_window=self._latency.summary,
        )

    @property
    def state(self) -> tuple[int, ...]:
        """Differs from what it was before whenever the row of `in_row` would."""
        return (self._since_ms, self._latency_ms, *self.counts.values())


def _span(batch: Batch) -> tuple[int, int, int]:
    """First timestamp, largest one, records."""
    first = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else batch.base_timestamp
    return first, batch.max_timestamp, batch.record_count


def _measure(window: Window, now_ms: int, spans: Iterable[tuple[int, int, int]]) -> None:
    """All at once, because one record a batch is common."""
    count = total = newest = 0
    earliest, latest = inf, -inf
    for first, last, records in spans:
        if first < 0 or last < 0 or records <= 0:  # records of before Kafka 0.10 have no timestamp
            continue
        if first > last:  # the base of a compacted batch may be its delete horizon, which is later than all its records
            first = last
        count += records
        total += records * (first + last)
        earliest, latest, newest = min(earliest, first), max(latest, last), last
    if count:
        mean = now_ms - total / 2 / count
        window.record(now_ms, now_ms - newest, least=now_ms - latest, most=now_ms - earliest, mean=mean, count=count)
