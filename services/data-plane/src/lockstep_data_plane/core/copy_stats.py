"""How much a slot has copied of a partition. How old records are when it fetches them, and when the target has
acknowledged them (no I/O, no clock).

MM2 measures each record. A batch that passes unchanged is not opened for that: its header has the timestamp of its
first record and the largest one. Its records count as spread evenly between them, which is exact for batches of one.
Those of a group count as spread between the oldest and the newest."""

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
"""The fields of the row that count from 0 when a slot takes the partition up."""

GATHERED_MS = 1_000
"""How long measurements are gathered at most; rows are written as often."""


class CopyStats:
    """Of one partition, from when the slot took it up."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTED, 0)
        """By field of the row."""
        self._since_ms = 0
        """When something was fetched first; 0: nothing was."""
        self._latency_ms = 0
        self._age = _Ages()
        self._latency = _Ages()

    def fetched(self, batches: Iterable[Batch], size: int, now_ms: int) -> None:
        """Batches came from the source, `size` bytes together."""
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
        """The target has these: count them, and measure their latency."""
        counts, spans = self.counts, []
        for outgoing, _, size, _, at_ms in acks:
            counts["records"] += outgoing.count
            counts["bytes"] += size
            first, last = outgoing.base_timestamp, outgoing.max_timestamp
            if at_ms and first >= 0 and last >= 0:  # of that age it was then
                first, last = first + now_ms - at_ms, last + now_ms - at_ms
            spans.append((first, last, outgoing.count))
        latency_ms = (acks[-1].at_ms or now_ms) - acks[-1].outgoing.max_timestamp
        self._latency_ms = latency_ms if latency_ms > 0 else 0
        self._latency.measure(now_ms, spans)

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


class _Ages:
    """How old records are at one point of their way. A slot measures each batch; what it measured within a second goes
    into the window at once."""

    __slots__ = ("_count", "_doubled", "_last", "_least", "_most", "_now_ms", "_since_ms", "_window")

    def __init__(self) -> None:
        self._window = Window()
        self._since_ms = self._now_ms = self._last = 0
        self._clear()

    def _clear(self) -> None:
        self._count = self._doubled = 0
        self._least, self._most = inf, -inf

    def measure(self, now_ms: int, spans: Iterable[tuple[int, int, int]]) -> None:
        """Batches arrived now: first timestamp, largest one and number of records of each."""
        count, doubled, least, most = self._count, self._doubled, self._least, self._most
        if count and now_ms - self._since_ms >= GATHERED_MS:
            self._gather()
            count, doubled, least, most = self._count, self._doubled, self._least, self._most
        if not count:
            self._since_ms = now_ms
        for first, last, records in spans:
            if first < 0 or last < 0 or records <= 0:  # records of before Kafka 0.10 have no timestamp
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
        """As `Window.summary`."""
        self._gather()
        return self._window.summary
