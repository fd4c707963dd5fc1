"""Exact offset runs: their fold, and where an upstream offset stands downstream by them, or the other way round
(`architecture.md` §5, `kafka-wire.md` §5).

A run is a stretch of records along which downstream minus upstream is constant. Within a generation (an epoch of our
append sequence) records are only ever appended. So a run that was true stays true, and both ends of a partition's runs
rise together. From that follows a guarantee for every reader. **Any** subset of the runs ever written translates a
position exactly or to an earlier place. It never leads beyond the records that a reader at that position still has to
see. Rows that come twice, late, out of order or not at all cost exactness, never records.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress


class Run(NamedTuple):
    """`length` records: the one at `upstream` + i is at `downstream` + i."""

    upstream: int
    downstream: int
    length: int

    @property
    def upstream_end(self) -> int:
        """The upstream offset after the last one."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        """The downstream offset after the last one."""
        return self.downstream + self.length


class Translation(NamedTuple):
    """Where a position stands downstream."""

    downstream: DownstreamOffset
    behind: bool
    """The position is beyond what the runs tell of: there may be more for it by now."""
    reread: int
    """At most so many records of ours lie between here and the exact place, unless it is behind; 0: none."""


class BackTranslation(NamedTuple):
    """The upstream position for a position downstream."""

    upstream: UpstreamOffset
    behind: bool
    """The position is beyond what the runs tell of (or behind markers at their end): there may be more for it."""
    reread: int
    """So many upstream offsets outside of the runs are between here and the next record within them; 0: none, or there
    is no such record. Where they hold records, those were passed over and are nowhere downstream."""


def encode_runs(runs: Sequence[Run]) -> tuple[tuple[int, int, int], ...]:
    """As `OffsetRuns.runs` has them: the first begins at the row's own offsets, each has its distance from the one
    before."""
    steps: list[tuple[int, int, int]] = []
    for index, run in enumerate(runs):
        before = runs[index - 1] if index else Run(run.upstream, run.downstream, 0)
        steps.append((run.upstream - before.upstream_end, run.downstream - before.downstream_end, run.length))
    return tuple(steps)


def decode_runs(row: OffsetRuns) -> Iterator[Run]:
    """The runs of a row, in order."""
    upstream, downstream = row.upstream, row.downstream
    for passed_over, since, length in row.runs:
        run = Run(upstream + passed_over, downstream + since, length)
        upstream, downstream = run.upstream_end, run.downstream_end
        yield run


def union(*several: Iterable[Run]) -> tuple[Run, ...]:
    """Runs of one generation together, ascending. Those that overlap or meet along one line are one run. One writer may
    have known in parts what another knew whole, and an earlier row knew the beginning."""
    together: list[Run] = []
    for run in sorted(run for runs in several for run in runs):
        last = together[-1] if together else None
        on_its_line = last is not None and run.downstream - run.upstream == last.downstream - last.upstream
        if last is not None and on_its_line and run.upstream <= last.upstream_end:
            together[-1] = last._replace(length=max(last.length, run.upstream_end - last.upstream))
        else:
            together.append(run)
    return tuple(together)


def translate(runs: Sequence[Run], upstream: UpstreamOffset, decided: int = -1) -> Translation | None:
    """Where a group that reads `upstream` next stands downstream; None before the first run.

    `runs` ascend (`union`). Within the last run that begins at or before the position it is exact. Between two runs it
    is the end of the earlier one: what is between is read again rather than left out. Beyond the last run it is that
    run's end, and behind, unless everything below the position was `decided` (`PartitionProgress.upstream`). Does not
    fall when `upstream` rises.
    """
    index = bisect_right(runs, upstream, key=attrgetter("upstream")) - 1
    if index < 0:
        return None
    run = runs[index]
    downstream = DownstreamOffset(run.downstream + min(upstream - run.upstream, run.length))
    if upstream <= run.upstream_end:
        return Translation(downstream, False, 0)
    if index + 1 < len(runs):
        return Translation(downstream, False, runs[index + 1].downstream - run.downstream_end)
    return Translation(downstream, upstream > decided + 1, 0)


def translate_back(runs: Sequence[Run], downstream: DownstreamOffset) -> BackTranslation | None:
    """The next upstream position of a group that reads `downstream` next; None before the first run.

    `runs` ascend (`union`). Within a run it is exact. From the end of a run to the beginning of the next one it is the
    upstream end of the first. A group that continues there reads what was passed over, rather than leaving it out. With
    any part of the runs, it never leads beyond a record that was not read downstream. Does not fall when `downstream`
    rises.
    """
    index = bisect_left(runs, downstream, key=attrgetter("downstream")) - 1
    if index < 0:
        at_the_first = bool(runs) and runs[0].downstream == downstream
        return BackTranslation(UpstreamOffset(runs[0].upstream), False, 0) if at_the_first else None
    run = runs[index]
    upstream = UpstreamOffset(run.upstream + min(downstream - run.downstream, run.length))
    if downstream < run.downstream_end:
        return BackTranslation(upstream, False, 0)
    if index + 1 < len(runs):
        return BackTranslation(upstream, False, runs[index + 1].upstream - run.upstream_end)
    return BackTranslation(upstream, downstream > run.downstream_end, 0)


@dataclass(frozen=True)
class RunMap:
    """The fold of one partition's runs, for one pair of topics and one producer id: rows of others do not count.

    Bounded by the ring of chunks. Folding a row twice changes nothing. Rows of one generation may come in any order. A
    higher generation makes all that was known unknown (the writer writes again what still holds), a lower one does not
    count. So the result of any order is the same once every row of the highest generation is there.
    """

    producer_id: int
    source_topic_id: str = ""
    target_topic_id: str = ""
    generation: int = -1
    chunks: Mapping[int, tuple[int, tuple[Run, ...]]] = field(default_factory=dict)
    """By place in the ring: its edition and its runs."""
    open_run: tuple[Run, ...] = ()
    begin: tuple[Run, ...] = ()
    """A run of no record: where the first record of the generation goes, as long as somebody said so before it was
    appended. So positions in a partition without records have a place too."""
    decided: int = -1
    """Everything up to this upstream offset is in the runs or was passed over, says the newest progress row."""
    left_out_until: int = 0
    """An operator has decided that the copy goes on at this upstream offset: records between the last run and it are
    left out for good. 0: no such decision, or the copy has gone on since."""

    @classmethod
    def build(cls, progress: PartitionProgress, rows: Iterable[OffsetRuns] = ()) -> "RunMap":
        """What the present rows of a partition say together, in any order."""
        known = cls(progress.producer_id, progress.source_topic_id, progress.target_topic_id)
        for row in rows:
            known = known.fold(row)
        return known.fold_progress(progress)

    def fold(self, row: OffsetRuns) -> "RunMap":
        """After one more chunk."""
        if not self._counts(row) or row.generation < self.generation:
            return self
        known = self._in_generation(row.generation)
        edition, runs = known.chunks.get(row.chunk, (-1, ()))
        if row.edition < edition:
            return known
        runs = union(decode_runs(row), runs if row.edition == edition else ())
        return replace(known, chunks={**known.chunks, row.chunk: (row.edition, runs)})

    def fold_progress(self, row: PartitionProgress) -> "RunMap":
        """After one more progress row. Of a row of other topics, or of another producer id, nothing counts: begin a new
        map with `build`."""
        if not self._counts(row) or row.producer_epoch < self.generation:
            return self
        if row.leaves_out and self.generation < row.producer_epoch:
            return self._leaving_out(row)
        known = self._in_generation(row.producer_epoch)
        if not row.begun:
            return known if row.phase != "copying" else known._beginning(row)
        if len(row.open_run) != 3:
            return known
        run = Run(*row.open_run)
        if (row.upstream, run) <= (known.decided, *known.open_run):
            return known  # an earlier row
        return replace(known, open_run=(run,), decided=row.upstream)

    def _beginning(self, row: PartitionProgress) -> "RunMap":
        """After a row of an epoch in which nothing was appended yet."""
        begin = Run(row.upstream + 1, row.downstream + 1, 0)
        return replace(self, begin=(min((begin, *self.begin)),), decided=max(row.upstream, self.decided))

    def _leaving_out(self, row: PartitionProgress) -> "RunMap":
        """Take a row of an epoch that will begin further on. The runs of the epoch before it are still true."""
        former = self._in_generation(row.producer_epoch - 1)
        return replace(former, open_run=(Run(*row.open_run),), decided=row.upstream, left_out_until=row.upstream + 1)

    def _counts(self, row: OffsetRuns | PartitionProgress) -> bool:
        ours = (self.producer_id, self.source_topic_id, self.target_topic_id)
        return (row.producer_id, row.source_topic_id, row.target_topic_id) == ours

    def _in_generation(self, generation: int) -> "RunMap":
        if generation == self.generation:
            return self
        return RunMap(self.producer_id, self.source_topic_id, self.target_topic_id, generation)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All of them, ascending."""
        return union(self.begin, self.open_run, *(runs for _, runs in self.chunks.values()))

    @cached_property
    def records(self) -> tuple[Run, ...]:
        """Those of `runs` that have records."""
        return tuple(run for run in self.runs if run.length)

    def translate(self, upstream: UpstreamOffset) -> Translation | None:
        """Where a group that reads `upstream` next stands downstream; None when the runs do not reach back so far."""
        return translate(self.runs, upstream, self.decided)
