"""Exact offset runs: their fold, and the translation by them in both directions.

A run is a stretch of records along which downstream minus upstream is constant (`architecture.md` §5, `kafka-wire.md`
§5). Within a generation (an epoch of our chain) records are only ever appended. So a run that was true stays true, and
both ends of a partition's runs rise together. From that follows a guarantee for every reader. **Any** subset of the
runs ever written translates an offset exactly or to an earlier one. It never leads beyond the records that a reader at
that offset has not read yet. Rows that come twice, late, out of order or not at all cost exactness, never records.
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
    """A run of `length` records: the one at `upstream` + i is at `downstream` + i."""

    upstream: int
    downstream: int
    length: int

    @property
    def upstream_end(self) -> int:
        """The upstream offset after the last record."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        """The downstream offset after the last record."""
        return self.downstream + self.length


class Translation(NamedTuple):
    """The downstream offset for an upstream offset."""

    downstream: DownstreamOffset
    behind: bool
    """The offset is beyond the known runs: more may have been copied since."""
    reread: int
    """At most so many of our records are between here and the exact offset, unless it is `behind`; 0: none."""


class UpstreamTranslation(NamedTuple):
    """The upstream offset for a downstream offset."""

    upstream: UpstreamOffset
    behind: bool
    """The offset is beyond the known runs, or behind markers at their end: more may have been copied since."""
    reread: int
    """The count of upstream offsets outside of the runs up to the next record within them; 0: none, or there is no such
    record. Records at these offsets were passed over, and are nowhere downstream."""


def add_pair(runs: list[Run], upstream: int, downstream: int) -> None:
    """Add the offsets of one record behind these runs. The last run becomes longer if the record follows it."""
    if runs and (runs[-1].upstream_end, runs[-1].downstream_end) == (upstream, downstream):
        runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
    else:
        runs.append(Run(upstream, downstream, 1))


def encode_runs(runs: Sequence[Run]) -> tuple[tuple[int, int, int], ...]:
    """Return the runs as in `OffsetRuns.runs`: each has its distance from the run before.

    The first run begins at the row's own offsets.
    """
    steps: list[tuple[int, int, int]] = []
    for index, run in enumerate(runs):
        before = runs[index - 1] if index else Run(run.upstream, run.downstream, 0)
        steps.append((run.upstream - before.upstream_end, run.downstream - before.downstream_end, run.length))
    return tuple(steps)


def decode_runs(row: OffsetRuns) -> Iterator[Run]:
    """Yield the runs of a row, in order."""
    upstream, downstream = row.upstream, row.downstream
    for passed_over, since, length in row.runs:
        run = Run(upstream + passed_over, downstream + since, length)
        upstream, downstream = run.upstream_end, run.downstream_end
        yield run


def merge_runs(*run_lists: Iterable[Run]) -> tuple[Run, ...]:
    """Merge runs of one generation, ascending. Those that overlap or meet along one line become one run.

    One writer may have known in parts what another knew whole, and an earlier row knew the beginning.
    """
    merged: list[Run] = []
    for run in sorted(run for runs in run_lists for run in runs):
        last = merged[-1] if merged else None
        on_its_line = last is not None and run.downstream - run.upstream == last.downstream - last.upstream
        if last is not None and on_its_line and run.upstream <= last.upstream_end:
            merged[-1] = last._replace(length=max(last.length, run.upstream_end - last.upstream))
        else:
            merged.append(run)
    return tuple(merged)


def translate(runs: Sequence[Run], upstream: UpstreamOffset, decided: int = -1) -> Translation | None:
    """Return the downstream offset of a group that reads `upstream` next; None before the first run.

    `runs` ascend (`merge_runs`). Within the last run that begins at or before the offset the result is exact. Between
    two runs it is the end of the earlier one: what is between is read again rather than left out. Beyond the last run
    it is that run's end, and behind, unless everything below the offset was `decided` (`PartitionProgress.upstream`).
    The result does not fall when `upstream` rises.
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


def translate_upstream(runs: Sequence[Run], downstream: DownstreamOffset) -> UpstreamTranslation | None:
    """Return the upstream offset of a group that reads `downstream` next; None before the first run.

    `runs` ascend (`merge_runs`). Within a run the result is exact. From the end of a run to the beginning of the next
    one it is the upstream end of the first. So a group that continues there reads what was passed over, rather than
    leaving it out. With any part of the runs, it never leads beyond a record that was not read downstream. The result
    does not fall when `downstream` rises.
    """
    index = bisect_left(runs, downstream, key=attrgetter("downstream")) - 1
    if index < 0:
        at_the_first = bool(runs) and runs[0].downstream == downstream
        return UpstreamTranslation(UpstreamOffset(runs[0].upstream), False, 0) if at_the_first else None
    run = runs[index]
    upstream = UpstreamOffset(run.upstream + min(downstream - run.downstream, run.length))
    if downstream < run.downstream_end:
        return UpstreamTranslation(upstream, False, 0)
    if index + 1 < len(runs):
        return UpstreamTranslation(upstream, False, runs[index + 1].upstream - run.upstream_end)
    return UpstreamTranslation(upstream, downstream > run.downstream_end, 0)


@dataclass(frozen=True)
class RunMap:
    """The fold of one partition's runs, for one pair of topics and one producer id. Rows of others do not count.

    The ring of chunks bounds it. Folding a row twice changes nothing. Rows of one generation may come in any order. A
    higher generation discards all runs (the writer writes those that still hold again), and a lower one does not count.
    So the result of any order is the same once every row of the highest generation is folded.
    """

    producer_id: int
    source_topic_id: str = ""
    target_topic_id: str = ""
    generation: int = -1
    chunks: Mapping[int, tuple[int, tuple[Run, ...]]] = field(default_factory=dict)
    """By number of the chunk in the ring: its edition and its runs."""
    open_run: tuple[Run, ...] = ()
    begin: tuple[Run, ...] = ()
    """A run without records: the offsets for the first record of the generation, as far as a row named them before it
    was appended. So offsets in a partition without records can be translated too."""
    decided: int = -1
    """By the newest progress row, everything up to this upstream offset is in the runs or was passed over."""
    left_out_until: int = 0
    """The upstream offset at which the copy goes on by an operator's decision. Records between the last run and it are
    left out for good. 0: no such decision, or the copy has gone on since."""

    @classmethod
    def build(cls, progress: PartitionProgress, rows: Iterable[OffsetRuns] = ()) -> "RunMap":
        """Fold the present rows of a partition, in any order."""
        run_map = cls(progress.producer_id, progress.source_topic_id, progress.target_topic_id)
        for row in rows:
            run_map = run_map.fold(row)
        return run_map.fold_progress(progress)

    def fold(self, row: OffsetRuns) -> "RunMap":
        """Return the map with one more chunk."""
        if not self._counts(row) or row.generation < self.generation:
            return self
        current = self._in_generation(row.generation)
        edition, runs = current.chunks.get(row.chunk, (-1, ()))
        if row.edition < edition:
            return current
        runs = merge_runs(decode_runs(row), runs if row.edition == edition else ())
        return replace(current, chunks={**current.chunks, row.chunk: (row.edition, runs)})

    def fold_progress(self, row: PartitionProgress) -> "RunMap":
        """Return the map with one more progress row.

        A row of other topics, or of another producer id, changes nothing: use `build` for a new map.
        """
        if not self._counts(row) or row.producer_epoch < self.generation:
            return self
        if row.skips_ahead and self.generation < row.producer_epoch:
            return self._skipping_ahead(row)
        current = self._in_generation(row.producer_epoch)
        if not row.begun:
            return current if row.phase != "copying" else current._beginning(row)
        if len(row.open_run) != 3:
            return current
        run = Run(*row.open_run)
        if (row.upstream, run) <= (current.decided, *current.open_run):
            return current  # an earlier row
        return replace(current, open_run=(run,), decided=row.upstream)

    def _beginning(self, row: PartitionProgress) -> "RunMap":
        """Return the map with a row of an epoch in which nothing was appended yet."""
        begin = Run(row.upstream + 1, row.downstream + 1, 0)
        return replace(self, begin=(min((begin, *self.begin)),), decided=max(row.upstream, self.decided))

    def _skipping_ahead(self, row: PartitionProgress) -> "RunMap":
        """Return the map with a row of an epoch that will begin further on.

        The runs of the epoch before it are still true.
        """
        ended = self._in_generation(row.producer_epoch - 1)
        return replace(ended, open_run=(Run(*row.open_run),), decided=row.upstream, left_out_until=row.upstream + 1)

    def _counts(self, row: OffsetRuns | PartitionProgress) -> bool:
        identity = (self.producer_id, self.source_topic_id, self.target_topic_id)
        return (row.producer_id, row.source_topic_id, row.target_topic_id) == identity

    def _in_generation(self, generation: int) -> "RunMap":
        if generation == self.generation:
            return self
        return RunMap(self.producer_id, self.source_topic_id, self.target_topic_id, generation)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All runs, ascending."""
        return merge_runs(self.begin, self.open_run, *(runs for _, runs in self.chunks.values()))

    @cached_property
    def records(self) -> tuple[Run, ...]:
        """The runs that have records."""
        return tuple(run for run in self.runs if run.length)

    def translate(self, upstream: UpstreamOffset) -> Translation | None:
        return translate(self.runs, upstream, self.decided)
