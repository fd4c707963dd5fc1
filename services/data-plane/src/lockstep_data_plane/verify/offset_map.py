"""The offsets of source records on the target, by the offset runs of one partition (no I/O).

Unlike `offset_runs.translate`, which serves consumer groups, this never rounds: a record is in a run or it is not.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.reasons.verification_reason import NotComparedReason


class OffsetMap:
    """The known offset runs of a partition in ascending order, and the offset up to which the source is decided."""

    def __init__(self, runs: Sequence[Run] = (), decided: int = -1, generation: int = 0) -> None:
        """Create the map.

        Args:
            runs: The offset runs in ascending order.
            decided: Everything up to this source offset is in the runs or was passed over.
            generation: The generation of the runs. It grows with each decision about what is copied next.
        """
        self.runs = tuple(run for run in runs if run.length)
        self.decided = decided
        self.generation = generation

    def find_target(self, source_offset: int) -> int | None:
        """Return the target's offset of the record, or None if it is in no run."""
        index = bisect_right(self.runs, source_offset, key=attrgetter("upstream")) - 1
        if index < 0 or source_offset >= self.runs[index].upstream_end:
            return None
        return self.runs[index].downstream + source_offset - self.runs[index].upstream

    def find_source(self, target_offset: int) -> int | None:
        """Return the source's offset of the record, or None if it is in no run."""
        index = bisect_right(self.runs, target_offset, key=attrgetter("downstream")) - 1
        if index < 0 or target_offset >= self.runs[index].downstream_end:
            return None
        return self.runs[index].upstream + target_offset - self.runs[index].downstream

    def explain_absence(self, source_offset: int) -> NotComparedReason | None:
        """Return why the copy may lack a record that is in no run, or None if nothing explains it.

        The record was passed over if the runs on both sides of it follow each other on the target. After the last
        run, it was passed over if it is decided.
        """
        index = bisect_right(self.runs, source_offset, key=attrgetter("upstream")) - 1
        if index < 0:
            return NotComparedReason.BEFORE_THE_RUNS if self.runs else None
        if source_offset < self.runs[index].upstream_end:
            return None
        if index + 1 == len(self.runs):
            return NotComparedReason.PASSED_OVER if source_offset <= self.decided else None
        thinned = self.runs[index + 1].downstream > self.runs[index].downstream_end
        return NotComparedReason.NO_RUN if thinned else NotComparedReason.PASSED_OVER

    def find_start(self, source_start: int, target_start: int) -> tuple[int, int] | None:
        """Return the first pair of offsets of one record that both logs may still have, or None if no run has one."""
        for run in self.runs:
            skipped = max(0, source_start - run.upstream, target_start - run.downstream)
            if skipped < run.length:
                return run.upstream + skipped, run.downstream + skipped
        return None

    def has_gone_back(self, upstream: int, downstream: int) -> bool:
        """Return whether a record up to the source offset has its place after the target offset.

        The copy was begun again then.
        """
        return any(
            run.downstream + min(run.upstream_end - 1, upstream) - run.upstream > downstream
            for run in self.runs
            if run.upstream <= upstream
        )
