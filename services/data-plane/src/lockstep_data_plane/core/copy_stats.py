"""The counts and ages of the records that a slot copies of one partition (no I/O, no clock).

It measures the age of records when the slot fetches them, and when the target has acknowledged them. MM2 measures each
record. Lockstep does not open a batch that passes unchanged: its header has the timestamp of its first record and the
largest one. Its records count as spread evenly between the two, which is exact for batches of one record. The records
of a group count as spread between the oldest and the newest one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch
from lockstep_rules.sliding_window import Window
from lockstep_state.metric import row_metrics
from lockstep_state.rows.state_rows import PartitionProgress

COUNTED = tuple(name for name, one in row_metrics(PartitionProgress).items() if one.since)
"""The fields of the progress row that count from 0 when a slot begins the partition."""

GATHERED_MS = 1_000
"""The longest time, in milliseconds, for which measurements are gathered. Rows are written as often."""


class CopyStats:
    """The counts and ages of one partition since its slot began it."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTED, 0)
        """The counts, by the name of the field in the progress row."""
        self._since_ms = 0
        """The time at which something was fetched first; 0: nothing was."""
        self._latency_ms = 0
        self._age = _Ages()
        self._latency = _Ages()

    def fetched(self, batches: Iterable[Batch], size: int, now_ms: int) -> None:
        """Count batches that came from the source, `size` bytes together, and measure their age."""
        self._since_ms = self._since_ms or now_ms
        self.counts["read_bytes"] += size
        self._age.measure(
            now_ms,
            [
                (
                    batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else batch.base_timestamp,
                    batch.max_timestamp,
                    batch.record_count,
                )
                for batch in batches
                if not batch.attributes & CONTROL
            ],
        )

    def acknowledged(self, acks: Sequence[Ack], now_ms: int) -> None:
        """Count batches that the target has acknowledged, and measure their latency."""
        counts, spans = self.counts, []
        for outgoing, _, size, _, at_ms in acks:
            counts["records"] += outgoing.count
            counts["bytes"] += size
            first, last = outgoing.base_timestamp, outgoing.max_timestamp
            if at_ms and first >= 0 and last >= 0:  # its age at that time counts
                first, last = first + now_ms - at_ms, last + now_ms - at_ms
            spans.append((first, last, outgoing.count))
        latency_ms = (acks[-1].at_ms or now_ms) - acks[-1].outgoing.max_timestamp
        self._latency_ms = latency_ms if latency_ms > 0 else 0
        self._latency.measure(now_ms, spans)

    def in_row(self, row: PartitionProgress) -> PartitionProgress:
        """Return the row with the counts and measurements; the same row as long as nothing was counted.

        Each row that a slot writes passes through here, because its counts and `counts_since` have to belong together.
        """
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


class _Ages:
    """The ages of records at one point of their way, from fetch to acknowledgement.

    A slot measures each batch. The measurements of one second go into the window together.
    """

    __slots__ = ("_count", "_doubled", "_last", "_least", "_most", "_now_ms", "_since_ms", "_window")

    def __init__(self) -> None:
        self._window = Window()
        self._since_ms = self._now_ms = self._last = 0
        self._clear()

    def _clear(self) -> None:
        self._count = self._doubled = 0
        self._least, self._most = inf, -inf

    def measure(self, now_ms: int, spans: Iterable[tuple[int, int, int]]) -> None:
        """Measure batches that arrived now: (first timestamp, largest timestamp, records) of each."""
        count, doubled, least, most = self._count, self._doubled, self._least, self._most
        if count and now_ms - self._since_ms >= GATHERED_MS:
            self._gather()
            count, doubled, least, most = self._count, self._doubled, self._least, self._most
        if not count:
            self._since_ms = now_ms
        for first, last, records in spans:
            if first < 0 or last < 0 or records <= 0:  # records from before Kafka 0.10 have no timestamp
                continue
            if first > last:  # the base of a compacted batch may be its delete horizon, later than all its records
                first = last
            count += records
            doubled += records * (2 * now_ms - first - last)
            age = self._last = now_ms - last
            if age < least:
                least = age
            if now_ms - first > most:
                most = now_ms - first
        if count > self._count:
            self._count, self._doubled, self._least, self._most, self._now_ms = count, doubled, least, most, now_ms

    def _gather(self) -> None:
        if self._count:
            mean, count = self._doubled / 2 / self._count, self._count
            self._window.record(self._now_ms, self._last, least=self._least, most=self._most, mean=mean, count=count)
            self._clear()

    @property
    def summary(self) -> tuple[int, ...]:
        """Return the window's summary, as `Window.summary`, with what was gathered so far."""
        self._gather()
        return self._window.summary
