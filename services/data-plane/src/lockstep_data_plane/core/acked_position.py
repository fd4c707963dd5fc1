"""How far the copy of one partition is: what the target has acknowledged, and what is written down of it (no I/O, no
clock)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence
from lockstep_data_plane.core.copy_stats import CopyStats
from lockstep_data_plane.core.offset_run_log import RunLog
from lockstep_data_plane.record_batch.gapped_offsets import stretches_within
from lockstep_rules.offsets.observed_ends import ObservedEnds
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress


class AckedPosition:
    """What the target has acknowledged: it remains true if this slot ends now. `upstream`, `downstream` and `sequence`
    belong together."""

    def __init__(self, topic: str, number: int, offset_lag_max: int) -> None:
        self.written = PartitionProgress(topic=topic, partition=number)
        """The row this partition resumed from, or wrote last."""
        self.progress_before: int | None = None
        """The progress found when the partition was resumed only to learn where the copy ends. MM2's own progress, in
        the same place, may be further since, and is written only where this is news."""
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
        """What is written down about the partition, known before it has resumed. So what it writes itself, also when
        it cannot resume, never says less. The slot before saw an end of the source. How long what came since has been
        there is not known."""
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
        """Whether there is progress to write down; before, `row` would say that nothing was ever copied."""
        return self.written.producer_id != -1

    def resumed(
        self, row: PartitionProgress, runs: Iterable[OffsetRuns], places: Iterable[tuple[int, int, int]] = ()
    ) -> None:
        """It goes on from `row`; `runs` are the rows that tell of its offset runs, where this one does not know
        better. `places`: as `LastAppend.places`, at or before the row."""
        self.load(row)
        self.runs = self.runs.continued(row, runs)
        for place in places:
            self.runs.add_run(*place)

    # -- what happened -------------------------------------------------------------------------------------------------

    def saw_end(self, source_end: int, at_ms: int) -> None:
        """Note that the source's log, or what is committed of it, ends there."""
        self.source_end = source_end
        self._ends.observe(source_end, at_ms, self.upstream)

    def numbered(
        self, upstream: int, leader_epoch: int, append_sequence: AppendSequence, places: Iterable[tuple[int, int, int]]
    ) -> None:
        """The source has been judged up to the end of our chain: what the log said is now tied to an upstream offset.
        `places`: as `ResumeDeduplicator.places`."""
        self.upstream, self.upstream_epoch = upstream, leader_epoch
        self._ends_as(append_sequence)
        for place in places:
            self.runs.add_run(*place)

    def reached(self, upstream: int, leader_epoch: int) -> None:
        """Nothing up to there has to be copied any more."""
        if upstream > self.upstream:
            self.upstream, self.upstream_epoch = upstream, leader_epoch

    def appended(self, acks: Sequence[Ack], append_sequence: AppendSequence) -> None:
        """The target has these."""
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
        """Records of the source not yet durable downstream, as far as its end is known."""
        return max(0, self.source_end - 1 - self.upstream)

    def lag_ms(self, now_ms: int) -> int:
        """Return how long the oldest record not yet durable has been in the source's log, as far as that was seen."""
        since_ms = self._ends.since_ms(self.upstream) if self.lag else None
        return 0 if since_ms is None else max(0, now_ms - since_ms)

    def row(self, *, has_resumed: bool) -> PartitionProgress:
        """Progress as it is to be written down."""
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
