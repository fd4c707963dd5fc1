"""The position that the target has acknowledged for one partition, and the row written from it (no I/O, no clock)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence
from lockstep_data_plane.core.copy_stats import CopyStats
from lockstep_data_plane.core.offset_run_log import RunLog
from lockstep_data_plane.record_batch.gapped_offsets import stretches_within
from lockstep_rules.offsets.observed_ends import ObservedEnds
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress


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
        self.runs = RunLog(offset_lag_max)

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

    def resumed(
        self, row: PartitionProgress, runs: Iterable[OffsetRuns], places: Iterable[tuple[int, int, int]] = ()
    ) -> None:
        """Continue the copy from `row`.

        Args:
            row: The progress from which the copy continues.
            runs: The rows with the partition's offset runs. They are used where this slot does not know the runs
                itself.
            places: As `LastAppend.places`, at or before the row.
        """
        self.load(row)
        self.runs = self.runs.continued(row, runs)
        for place in places:
            self.runs.add_run(*place)

    # -- what happened -------------------------------------------------------------------------------------------------

    def saw_end(self, source_end: int, at_ms: int) -> None:
        """Note where the source's log, or its committed part, ends."""
        self.source_end = source_end
        self._ends.observe(source_end, at_ms, self.upstream)

    def numbered(
        self, upstream: int, leader_epoch: int, append_sequence: AppendSequence, places: Iterable[tuple[int, int, int]]
    ) -> None:
        """Note the upstream offset that belongs to our chain's end, once the source has been judged up to there.

        Args:
            upstream: The upstream offset up to which everything is on the target or needs no copy.
            leader_epoch: The leader epoch of the batch at that offset.
            append_sequence: The chain whose end the target's log has shown.
            places: As `ResumeDeduplicator.places`.
        """
        self.upstream, self.upstream_epoch = upstream, leader_epoch
        self._ends_as(append_sequence)
        for place in places:
            self.runs.add_run(*place)

    def reached(self, upstream: int, leader_epoch: int) -> None:
        """Note that no record up to this upstream offset has to be copied any more."""
        if upstream > self.upstream:
            self.upstream, self.upstream_epoch = upstream, leader_epoch

    def appended(self, acks: Sequence[Ack], append_sequence: AppendSequence) -> None:
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

    def row(self, *, has_resumed: bool) -> PartitionProgress:
        """Return the progress as it is to be written.

        Before the partition has resumed, the open run is the one of the written row.
        """
        row = replace(
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
        )
        return self.stats.in_row(row)
