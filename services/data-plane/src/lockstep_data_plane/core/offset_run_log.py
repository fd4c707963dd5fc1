"""The exact offset runs of one partition, as the slot keeps them: open, extend, end, thin, chunk.

No I/O, no clock; see `architecture.md` §5. A run opens at a record that does not simply follow the last one in both
logs. It grows with every record that does. The open run is part of the partition's progress row, so it needs no row of
its own while it grows. When the next run opens, the former one has ended and goes to a chunk. Chunks are rows of the
state topic, in a ring.

**Bounded.** There are at most `RING` chunks of `CHUNK` runs. When all are full, the older half is thinned to at most
`KEPT` runs. A run is left out where the hole that it leaves is small. Positions in a hole translate to where it begins,
never beyond. Let L be the distance of a position from the end of the copy, in downstream offsets:

- the newest `EXACT` ended runs are never thinned: no record is read again
- before them at most max(offset.lag.max, L / `COARSEST`) offsets are read again, and usually far fewer. Thinning makes
  only holes of up to offset.lag.max where that is enough, then of up to L / 1024, L / 512 ... until it is enough
- the oldest run stays, so a position that could be translated once always can be

Holes of up to L / 8 are always enough, for any logs. Of two runs that follow each other, the second cannot be left out
only where the hole would be larger than L / 8. So at every second run L shrinks to 8/9. From 2^63 to 8 that takes 354
such steps, and at most 8 runs are nearer: about 720 runs, fewer than `KEPT`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lockstep_rules.offsets.offset_runs import Run, decode_runs, encode_runs, merge_runs
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress

CHUNK = 256
"""The most runs in a chunk: a row of 2 to 4 KiB, rewritten at most once a second while runs end."""

RING = 16

EXACT = CHUNK * RING // 2

KEPT = CHUNK * RING // 4
"""The most runs that thinning leaves of the older half. Then at least four chunks are free, and at most four are
rewritten.
"""

FINEST, COARSEST = 1024, 8


def thin_runs(runs: Sequence[Run], following: Run, end: int, lag_max: int) -> list[Run]:
    """Return at most `KEPT` of the runs: the oldest one, and those without which a hole would be too large.

    The limits of holes are those of the module's docstring.

    Args:
        runs: The runs to thin, in ascending order.
        following: The run behind them.
        end: The downstream offset behind the last copied record.
        lag_max: `offset.lag.max`.
    """
    kept = _without(runs, following, end, lag_max, 0)
    fraction = FINEST
    while len(kept) > KEPT and fraction >= COARSEST:
        kept = _without(runs, following, end, lag_max, fraction)
        fraction //= 2
    return kept


def _without(runs: Sequence[Run], following: Run, end: int, lag_max: int, fraction: int) -> list[Run]:
    """Return the runs, less those whose hole is at most `lag_max` offsets, or 1/`fraction` of the distance to `end`."""
    kept = [runs[0]]
    for index in range(1, len(runs)):
        next_run = runs[index + 1] if index + 1 < len(runs) else following
        hole = next_run.downstream - kept[-1].downstream_end
        if hole > lag_max and (not fraction or hole * fraction > end - next_run.downstream):
            kept.append(runs[index])
    return kept


@dataclass(slots=True)
class _Chunk:
    number: int
    edition: int
    runs: list[Run] = field(default_factory=list)


class OffsetRunLog:
    """The offset runs of one partition in one epoch of its chain."""

    def __init__(self, lag_max: int) -> None:
        """Begin without any run; `continued` makes it the log of a chain.

        `lag_max` is `offset.lag.max`.
        """
        self._lag_max = lag_max
        self._progress = PartitionProgress(topic="", partition=-1)
        self._chunks: list[_Chunk] = []
        """The chunks, oldest first. Ended runs are added to the last one."""
        self._editions: dict[int, int] = {}
        self._written: dict[int, tuple[int, int]] = {}
        """The edition and the number of runs of each place, as last written. Within an edition the number says which
        runs they are.
        """
        self._open: Run | None = None
        """The open run as it began. By now it reaches to `_upstream_end`."""
        self._upstream_end = 0
        self._downstream_end = 0

    # -- a chain begins or goes on -------------------------------------------------------------------------------------

    def continued(self, progress: PartitionProgress, rows: Iterable[OffsetRuns] = ()) -> "OffsetRunLog":
        """Return the log for the chain of `progress`: this one as long as the chain is the same.

        Otherwise it is a new log that begins with the content of `rows`, the last row of each key, for that chain. In a
        new epoch without appends, rows below its beginning in both logs still hold and are due to be written again. If
        records were appended before any row was written, nothing of earlier epochs counts.
        """
        same_logs = _logs(progress) == _logs(self._progress)
        if same_logs and progress.producer_epoch == self._progress.producer_epoch:
            return self
        present = [row for row in rows if _logs(row) == _logs(progress)]
        log = OffsetRunLog(self._lag_max)
        log._progress = progress
        log._editions = {row.chunk: row.edition for row in present}
        open_run = [Run(*progress.open_run)] if len(progress.open_run) == 3 else []
        present_rows = [row for row in present if row.generation == progress.producer_epoch]
        if present_rows or progress.begun:
            log._adopt(present_rows)
            for run in open_run if progress.begun else ():
                log.add_run(*run)
            return log
        earlier: list[Iterable[Run]] = [open_run]
        if same_logs:
            log._editions = dict(self._editions)
            open_now = self._open_run
            earlier += [*(chunk.runs for chunk in self._chunks), [open_now] if open_now else []]
        else:
            newest = max((row.generation for row in present if row.generation < progress.producer_epoch), default=-1)
            earlier += [decode_runs(row) for row in present if row.generation == newest]
        begins = progress.upstream + 1, progress.downstream + 1
        log._group([cut for run in merge_runs(*earlier) if (cut := _below(run, *begins)).length > 0])
        return log

    def _adopt(self, rows: Sequence[OffsetRuns]) -> None:
        """Continue with the chunks as they were written.

        If two overlap, all runs are grouped into new chunks. That happens if a place was thinned and not used again
        yet, or if two slots wrote at one time.
        """
        chunks = [_Chunk(row.chunk, row.edition, list(decode_runs(row))) for row in rows if row.runs]
        chunks.sort(key=lambda chunk: chunk.runs[0])
        in_order = all(a.runs[-1].upstream_end <= b.runs[0].upstream for a, b in pairwise(chunks))
        if not in_order or any(len(chunk.runs) > CHUNK for chunk in chunks):
            self._group(merge_runs(*(chunk.runs for chunk in chunks)))
            return
        self._chunks = chunks
        self._written = {chunk.number: (chunk.edition, len(chunk.runs)) for chunk in chunks}
        if chunks:
            self._ends_after(chunks[-1].runs[-1])

    def _group(self, runs: Sequence[Run]) -> None:
        if not runs:
            return
        self._ends_after(runs[-1])
        if len(runs) > CHUNK * RING:
            older = len(runs) - EXACT
            runs = [*thin_runs(runs[:older], runs[older], self._downstream_end, self._lag_max), *runs[older:]]
        self._chunks = self._into_chunks(runs, range(RING))

    def _into_chunks(self, runs: Sequence[Run], numbers: Sequence[int]) -> list[_Chunk]:
        return [self._chunk(numbers[i // CHUNK], runs[i : i + CHUNK]) for i in range(0, len(runs), CHUNK)]

    def _chunk(self, number: int, runs: Iterable[Run]) -> _Chunk:
        edition = self._editions[number] = self._editions.get(number, -1) + 1
        return _Chunk(number, edition, list(runs))

    # -- records -------------------------------------------------------------------------------------------------------

    def add_run(self, upstream: int, downstream: int, count: int) -> None:
        """Add `count` durable records: the one at `upstream` + i is at `downstream` + i.

        Stretches come in order. Nothing is added for records that are known already, or that come before the known end
        on the target. To leave out records is safe.
        """
        if (overlap := self._upstream_end - upstream) > 0:
            upstream, downstream, count = upstream + overlap, downstream + overlap, count - overlap
        if count <= 0 or downstream < self._downstream_end:
            return
        if self._open is None or upstream != self._upstream_end or downstream != self._downstream_end:
            ended, self._open = self._open_run, Run(upstream, downstream, count)
            if ended is not None:
                self._end(ended)
        self._upstream_end, self._downstream_end = upstream + count, downstream + count

    @property
    def _open_run(self) -> Run | None:
        """Return the open run with its present length."""
        begun = self._open
        return None if begun is None else Run(begun.upstream, begun.downstream, self._upstream_end - begun.upstream)

    def _end(self, run: Run) -> None:
        if not self._chunks or len(self._chunks[-1].runs) >= CHUNK:
            if len(self._chunks) == RING:
                self._thin()
            used = {chunk.number for chunk in self._chunks}
            self._chunks.append(self._chunk(next(number for number in range(RING) if number not in used), [run]))
        else:
            self._chunks[-1].runs.append(run)

    def _thin(self) -> None:
        older, self._chunks = self._chunks[: RING // 2], self._chunks[RING // 2 :]
        runs = [run for chunk in older for run in chunk.runs]
        kept = thin_runs(runs, self._chunks[0].runs[0], self._downstream_end, self._lag_max)
        # In the order of the places: a rewritten chunk never takes the place of runs that a later row has yet to name.
        self._chunks = self._into_chunks(kept, [chunk.number for chunk in older]) + self._chunks

    def _ends_after(self, run: Run) -> None:
        self._upstream_end, self._downstream_end = run.upstream_end, run.downstream_end

    # -- what is written -----------------------------------------------------------------------------------------------

    @property
    def open_run(self) -> tuple[int, ...]:
        """Return the open run as `PartitionProgress.open_run` has it."""
        return tuple(self._open_run or ())

    def due(self) -> list[OffsetRuns]:
        """Return the chunks that changed since they were last written, oldest first.

        So what thinning left of some runs comes before the rows that take their places.
        """
        p = self._progress
        return [
            OffsetRuns(
                topic=p.topic,
                partition=p.partition,
                chunk=chunk.number,
                edition=chunk.edition,
                generation=p.producer_epoch,
                producer_id=p.producer_id,
                source_topic_id=p.source_topic_id,
                target_topic_id=p.target_topic_id,
                upstream=chunk.runs[0].upstream,
                downstream=chunk.runs[0].downstream,
                runs=encode_runs(chunk.runs),
            )
            for chunk in self._chunks
            if self._written.get(chunk.number) != (chunk.edition, len(chunk.runs))
        ]

    def mark_written(self, rows: Iterable[OffsetRuns]) -> None:
        """Note that the state topic has acknowledged these rows."""
        for row in rows:
            self._written[row.chunk] = (row.edition, len(row.runs))


def _logs(row: PartitionProgress | OffsetRuns) -> tuple[int, str, str]:
    """Return what identifies the pair of logs and the chain: the producer id and both topic ids."""
    return row.producer_id, row.source_topic_id, row.target_topic_id


def _below(run: Run, upstream: int, downstream: int) -> Run:
    """Return the part of a run that is below both offsets."""
    return run._replace(length=min(run.length, upstream - run.upstream, downstream - run.downstream))
