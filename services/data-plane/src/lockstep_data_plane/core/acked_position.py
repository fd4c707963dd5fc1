"""The acknowledged position of one partition on the target, with counts and ages, and the progress row of them.

No I/O, no clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence
from lockstep_data_plane.core.offset_run_log import OffsetRunLog
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch, stretches_within
from lockstep_rules.offsets.observed_ends import ObservedEnds
from lockstep_rules.offsets.offset_runs import Run
from lockstep_rules.sliding_window import Window
from lockstep_state.metric import row_metrics
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress

COUNTED = tuple(name for name, metric in row_metrics(PartitionProgress).items() if metric.since)
"""The fields of the progress row that count from 0 when a slot begins the partition."""

GATHERED_MS = 1_000
"""The longest time, in milliseconds, for which measurements are gathered. Rows are written as often."""


class AckedPosition:
    """The position that the target has acknowledged. It stays true if the slot ends now.

    `upstream`, `downstream` and `sequence` belong together.
    """

    def __init__(self, topic: str, number: int, offset_lag_max: int) -> None:
        self.written = PartitionProgress(topic=topic, partition=number)
        """The row from which the partition resumed, or which it wrote last."""
        self.progress_before: int | None = None
        """The upstream offset found when the partition was resumed only to find the end of its copy. MM2's own progress
        may be further on by now. Progress is written to MM2's topic only where it differs from this offset.
        """
        self.upstream = -1
        self.upstream_epoch = -1
        self.downstream = -1
        self.sequence = -1
        self.others: tuple[tuple[int, int], ...] = ()
        self.source_end = -1
        self._ends = ObservedEnds()
        self.stats = CopyStats()
        self.runs = OffsetRunLog(offset_lag_max)

    def load(self, row: PartitionProgress) -> None:
        """Take over the written row of the partition, also before the partition has resumed.

        So the row that the partition writes itself never says less, even if it cannot resume. On the first load, the
        end of the source's log is the one that the former slot saw. On a new source topic, that end is dropped.
        """
        if not self.is_loaded:
            self.source_end = row.source_end
            if row.lag_records and row.at_ms:
                self._ends.observe(row.source_end, row.at_ms - row.lag_ms, row.upstream)
        elif row.source_topic_id != self.written.source_topic_id:
            self.source_end, self._ends = -1, ObservedEnds()
        self.written = row
        self.upstream, self.upstream_epoch = row.upstream, row.upstream_epoch
        self.downstream, self.sequence, self.others = row.downstream, row.sequence, row.others

    @property
    def is_loaded(self) -> bool:
        """Return whether a written row is known. Before that, `row` would say that nothing was ever copied."""
        return self.written.producer_id != -1

    def resume_from(
        self, row: PartitionProgress, runs: Iterable[OffsetRuns], compared_runs: Iterable[Run] = ()
    ) -> None:
        """Continue the copy from `row`.

        Args:
            row: The progress from which the copy continues.
            runs: The rows with the partition's offset runs. They are used where this slot does not know the runs
                itself.
            compared_runs: As `LastAppend.compared_runs`, at or before the row.
        """
        self.load(row)
        self.runs = self.runs.continued(row, runs)
        for run in compared_runs:
            self.runs.add_run(*run)

    # -- what happened -------------------------------------------------------------------------------------------------

    def note_source_end(self, source_end: int, at_ms: int) -> None:
        """Note where the source's log, or its committed part, ends."""
        self.source_end = source_end
        self._ends.observe(source_end, at_ms, self.upstream)

    def note_chain_end(
        self, upstream: int, leader_epoch: int, append_sequence: AppendSequence, skipped_runs: Iterable[Run]
    ) -> None:
        """Note the upstream offset that belongs to our chain's end, once the source has been judged up to there.

        Args:
            upstream: The upstream offset up to which everything is on the target or needs no copy.
            leader_epoch: The leader epoch of the batch at that offset.
            append_sequence: The chain whose end the target's log has shown.
            skipped_runs: As `ResumeDeduplicator.take_runs`.
        """
        self.upstream, self.upstream_epoch = upstream, leader_epoch
        self._ends_as(append_sequence)
        for run in skipped_runs:
            self.runs.add_run(*run)

    def advance_to(self, upstream: int, leader_epoch: int) -> None:
        """Note that no record up to this upstream offset has to be copied any more."""
        if upstream > self.upstream:
            self.upstream, self.upstream_epoch = upstream, leader_epoch

    def count_appended(self, acks: Sequence[Ack], append_sequence: AppendSequence) -> None:
        """Note that the target has acknowledged these outgoing batches."""
        for outgoing, downstream, _, _, _ in acks:
            if outgoing.covers > self.upstream:
                self.upstream, self.upstream_epoch = outgoing.covers, outgoing.leader_epoch
            for first, begin, count in stretches_within(outgoing.offsets):
                self.runs.add_run(first, downstream + begin, count)
        if acks:
            self._ends_as(append_sequence)

    def _ends_as(self, append_sequence: AppendSequence) -> None:
        self.downstream, self.sequence, self.others = (
            append_sequence.downstream,
            append_sequence.sequence,
            append_sequence.others,
        )

    # -- what there is to tell -----------------------------------------------------------------------------------------

    @property
    def lag(self) -> int:
        """Return the number of the source's offsets that are not yet durable on the target, up to the last seen end."""
        return max(0, self.source_end - 1 - self.upstream)

    def lag_ms(self, now_ms: int) -> int:
        """Return for how long the oldest record that is not yet durable has been seen in the source's log.

        It is 0 without lag, and 0 as long as that was not observed.
        """
        since_ms = self._ends.since_ms(self.upstream) if self.lag else None
        return 0 if since_ms is None else max(0, now_ms - since_ms)

    def row(self, *, has_resumed: bool, **fields: Any) -> PartitionProgress:
        """Return the progress as it is to be written.

        Before the partition has resumed, the open run is the one of the written row.

        Args:
            has_resumed: Whether the partition has resumed in this slot.
            fields: Further fields of the row. All come in one call, because to copy a row costs as much as to encode
                it, and busy partitions write one each second.
        """
        return replace(
            self.written,
            skips=tuple(s for s in self.written.skips if s[1] > self.upstream),
            upstream=self.upstream,
            upstream_epoch=self.upstream_epoch,
            downstream=self.downstream,
            sequence=self.sequence,
            others=self.others,
            open_run=self.runs.open_run if has_resumed else self.written.open_run,
            source_end=self.source_end,
            lag_records=self.lag,
            **self.stats.row_fields(),
            **fields,
        )


class CopyStats:
    """The counts and ages of one partition since its slot began it.

    It measures the age of records when the slot fetches them, and when the target has acknowledged them. MM2 measures
    each record. Lockstep does not open a batch that passes unchanged: its header has the timestamp of its first record
    and the largest one. Its records count as spread evenly between the two, which is exact for batches of one record.
    The records of a group count as spread between the oldest and the newest one.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTED, 0)
        """The counts, by the name of the field in the progress row."""
        self._since_ms = 0
        """The time at which something was fetched first; 0: nothing was."""
        self._latency_ms = 0
        self._age = _Ages()
        self._latency = _Ages()

    def count_fetched(self, batches: Iterable[Batch], size: int, now_ms: int) -> None:
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

    def count_acknowledged(self, acks: Sequence[Ack], now_ms: int) -> None:
        """Count batches that the target has acknowledged, and measure their latency."""
        counts, spans = self.counts, []
        for outgoing, _, size, _, at_ms in acks:
            counts["records"] += outgoing.count
            counts["bytes"] += size
            oldest_ms, newest_ms = outgoing.base_timestamp, outgoing.max_timestamp
            if at_ms and oldest_ms >= 0 and newest_ms >= 0:  # its age at that time counts
                oldest_ms, newest_ms = oldest_ms + now_ms - at_ms, newest_ms + now_ms - at_ms
            spans.append((oldest_ms, newest_ms, outgoing.count))
        latency_ms = (acks[-1].at_ms or now_ms) - acks[-1].outgoing.max_timestamp
        self._latency_ms = latency_ms if latency_ms > 0 else 0
        self._latency.measure(now_ms, spans)

    def with_counts(self, row: PartitionProgress) -> PartitionProgress:
        """Return the row with the counts and measurements; the same row as long as nothing was counted."""
        return replace(row, **row_fields) if (row_fields := self.row_fields()) else row

    def row_fields(self) -> dict[str, Any]:
        """Return the fields of the progress row that have the counts and measurements; {} if nothing was counted.

        Each row that a slot writes has them from here, because its counts and `counts_since` have to belong together.
        """
        if not any(self.counts.values()):
            return {}
        return {
            **self.counts,
            "counts_since": self._since_ms,
            "latency_ms": self._latency_ms,
            "age_window": self._age.summary,
            "latency_window": self._latency.summary,
        }


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
