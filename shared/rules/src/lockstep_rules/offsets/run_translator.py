"""The exact translation of offsets by the data plane's runs (decision 0021, `docs/reference/offset-runs.md`).

The rows of a flow's state topic go in. The runs of a partition are merged when they are needed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

from lockstep_rules.offsets.offset_runs import Run, RunMap, translate_upstream
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress, Row

_Partition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """The downstream offset for an offset of the source, and how well it is known.

    Exact: `offset` is known and `behind` is 0. Behind: `offset` is known, and a consumer that continues there reads at
    most `behind` records again. Unknown: `offset` is None, and `reason` says what it waits for.
    """

    offset: DownstreamOffset | None
    behind: int = 0
    reason: Reason = NO_REASON
    by_runs: bool = True
    """The data plane's runs gave it, not an offset sync."""
    exact_offset: DownstreamOffset | None = None
    """The exact offset, if the last checkpoint is beyond it."""

    @property
    def exact(self) -> bool:
        return self.offset is not None and not self.behind


@dataclass(frozen=True, slots=True)
class NoRun:
    """The answer that no run covers an offset. Offset syncs may, up to `most` if that is known."""

    most: DownstreamOffset | None = None


@dataclass(frozen=True, slots=True)
class UpstreamPosition:
    """The upstream offset for a downstream offset, by the runs of the flow that wrote the log."""

    upstream: UpstreamOffset
    """Every record that the flow copied to the downstream offset or beyond, or is still to copy, is at or behind it."""
    follows: bool
    """The downstream offset is behind a record that the flow is known to have copied; else before the first such
    record."""
    known_until: int
    """An upstream offset after every record that was copied before the downstream offset, as far as runs show."""
    since: int = 0
    """The upstream offset before which such records are, if no copied record precedes the downstream offset."""
    left_out_until: int = 0
    """The downstream offset is behind the last record that the flow copied. An operator has left out for good what was
    not copied up to this upstream offset (`RunMap.left_out_until`); 0: there is no such decision."""


class RunTranslator:
    """The fold of topic, progress and run rows. A row that comes twice or late does no harm (`offset_runs`).

    Call `load` whenever the state topic was replayed.
    """

    def __init__(self) -> None:
        self.load(())

    def load(self, rows: Iterable[Row]) -> None:
        """Replace everything by these rows, the present ones of the state topic."""
        self._topics: dict[str, MirroredTopic] = {}
        self._progress: dict[_Partition, PartitionProgress] = {}
        self._chunks: dict[_Partition, dict[int, OffsetRuns]] = {}
        self._maps: dict[_Partition, RunMap] = {}
        self._changes: Counter[str] = Counter()
        for row in rows:
            self.apply(row)

    def apply(self, row: Row) -> None:
        """Fold one more row, in log order. Rows of other kinds are ignored."""
        match row:
            case MirroredTopic():
                self._topics[row.source_topic] = row
                self._changes[row.source_topic] += 1
            case PartitionProgress():
                tp = (row.topic, row.partition)
                before, run_map = self._progress.get(tp), self._maps.get(tp)
                if before is not None and row.is_outdated_by(before):
                    return
                if run_map is not None and before is not None and row.continues(before):
                    self._maps[tp] = run_map.fold_progress(row)
                else:
                    self._maps.pop(tp, None)
                self._progress[tp] = row
                self._changes[row.topic] += 1
            case OffsetRuns():
                tp = (row.topic, row.partition)
                self._chunks.setdefault(tp, {})[row.chunk] = row
                self._maps.pop(tp, None)
                self._changes[row.topic] += 1

    def changes(self, topics: Iterable[str]) -> int:
        """Return a number that rises whenever a row about one of these topics is folded."""
        return sum(self._changes[topic] for topic in set(topics))

    def translate(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset | NoRun:
        """Return the target offset of a group that reads `upstream` of a source partition next.

        It is never beyond the records that the group has not read. It does not fall when `upstream` rises, as long as
        the rows do not change.
        """
        tp = (topic, partition)
        progress = self._progress.get(tp)
        if progress is None:
            return NoRun()
        if stale := self._stale_reason(progress):
            return TranslatedOffset(None, reason=stale)
        run_map = self._run_map(tp, progress)
        translation = run_map.translate(upstream)
        if translation is None and run_map.runs and run_map.runs[0].downstream == 0:
            return TranslatedOffset(DownstreamOffset(0))  # nothing was copied before the first run
        if translation is None and run_map.runs:
            return NoRun(DownstreamOffset(run_map.runs[0].downstream))
        if translation is None:
            return TranslatedOffset(None, reason=ReasonCode.NOTHING_COPIED.to_reason(text=progress.reason))
        if translation.behind:
            run_end = max(run_map.runs[-1].upstream_end, run_map.decided + 1)
            return TranslatedOffset(translation.downstream, behind=upstream - run_end)
        return TranslatedOffset(translation.downstream, behind=translation.reread)

    def reaches(self, topic: str, partition: int, upstream: int) -> bool:
        """Return whether the source's log is known to reach the offset: it was copied so far, or fetched."""
        progress = self._progress.get((topic, partition))
        if progress is None or self._stale_reason(progress):
            return False
        return upstream <= max(progress.upstream + 1, progress.source_end)

    def find_late_begin(self, topic: str, partition: int) -> UpstreamOffset | None:
        """Return the first upstream offset that runs cover, if the copy has records before it; else None.

        For an offset before it `translate` returns NoRun.
        """
        runs = self._find_runs(topic, partition)
        return UpstreamOffset(runs[0].upstream) if runs and runs[0].downstream > 0 else None

    def find_run_end(self, topic: str, partition: int, upstream: int) -> int:
        """Return the end of the run that contains the upstream offset; the offset itself if no known run does."""
        runs = self._find_runs(topic, partition)
        index = bisect_right(runs, upstream, key=attrgetter("upstream")) - 1
        return max(upstream, runs[index].upstream_end) if index >= 0 else upstream

    def count_copied(self, topic: str, partition: int, first: int, end: int) -> int:
        """Return how many of the upstream offsets from `first` up to `end` are known to be copied."""
        runs = self._find_runs(topic, partition)
        overlapping = runs[max(0, bisect_right(runs, first, key=attrgetter("upstream")) - 1) :]
        overlapping = overlapping[: bisect_left(overlapping, end, key=attrgetter("upstream"))]
        return sum(max(0, min(end, run.upstream_end) - max(first, run.upstream)) for run in overlapping)

    def appended_until(self, topic: str, partition: int, downstream: int, end: int) -> int:
        """Return the end of the records that the flow is known to have appended without a gap from `downstream` on.

        It is at most `end`, and `downstream` itself if the flow appended no record there.
        """
        runs = self._find_runs(topic, partition)
        for run in runs[max(0, bisect_right(runs, downstream, key=attrgetter("downstream")) - 1) :]:
            if run.downstream > downstream or downstream >= end:
                break
            downstream = max(downstream, min(end, run.downstream_end))
        return downstream

    def copy_name(self, topic: str) -> str | None:
        """Return the target's name of a source topic that the flow copies or copied; None: it never did."""
        row = self._topics.get(topic)
        return None if row is None else row.target_topic

    def translate_upstream(self, topic: str, partition: int, downstream: int) -> UpstreamPosition | Reason:
        """Return the upstream offset of a group that reads `downstream` of the copy of `topic` next, or a reason.

        Every record that the flow copied to `downstream` or beyond, or that it is still to copy, is at or behind the
        offset. It does not fall when `downstream` rises, as long as the rows do not change.
        """
        tp = (topic, partition)
        progress = self._progress.get(tp)
        if progress is None:
            return ReasonCode.OPPOSITE_NOT_BEGUN.to_reason()
        if stale := self._stale_reason(progress, reverse=True):
            return stale
        run_map = self._run_map(tp, progress)
        if not run_map.runs:
            return ReasonCode.OPPOSITE_COPIED_NOTHING.to_reason(text=progress.reason)
        return _translate_upstream(run_map, downstream)

    def _find_runs(self, topic: str, partition: int) -> Sequence[Run]:
        progress = self._progress.get((topic, partition))
        if progress is None or self._stale_reason(progress):
            return ()
        return self._run_map((topic, partition), progress).runs

    def _stale_reason(self, progress: PartitionProgress, *, reverse: bool = False) -> Reason:
        """Return why the progress is not about the present topics; NO_REASON if it is.

        Then offset syncs are not used either: they have no topic ids, and the old ones lead too far. With `reverse` the
        rows are those of the reverse flow, whose source is our target.
        """
        topic = self._topics.get(progress.topic)
        if topic is None:
            return ReasonCode.TOPIC_UNKNOWN.to_reason()
        from_new = progress.source_topic_id != topic.source_topic_id
        to_new = progress.target_topic_id != topic.target_topic_id
        if reverse and from_new:
            return ReasonCode.OPPOSITE_TARGET_RECREATED.to_reason()
        if reverse and to_new:
            return ReasonCode.OPPOSITE_SOURCE_RECREATED.to_reason()
        if to_new and not topic.target_topic_id:
            return ReasonCode.TARGET_NOT_FOUND.to_reason()
        if to_new:  # first: an earlier checkpoint is a place in a log that is gone
            return ReasonCode.TARGET_RECREATED.to_reason()
        return ReasonCode.SOURCE_RECREATED.to_reason() if from_new else NO_REASON

    def _run_map(self, tp: _Partition, progress: PartitionProgress) -> RunMap:
        run_map = self._maps.get(tp)
        if run_map is None:
            run_map = self._maps[tp] = RunMap.build(progress, self._chunks.get(tp, {}).values())
        return run_map


def _translate_upstream(runs: RunMap, downstream: int) -> UpstreamPosition | Reason:
    records = runs.records
    index = bisect_left(records, downstream, key=attrgetter("downstream")) - 1
    translation = translate_upstream(records, DownstreamOffset(downstream)) if index >= 0 else None
    if translation is not None:
        known_until, is_last = records[index].downstream_end, index + 1 == len(records)
        left_out_until = runs.left_out_until if is_last and downstream > known_until else 0
        return UpstreamPosition(
            translation.upstream, follows=True, known_until=known_until, left_out_until=left_out_until
        )
    first_run = records[0] if records else None
    if first_run is not None and first_run.downstream == downstream:
        return UpstreamPosition(
            UpstreamOffset(first_run.upstream), follows=False, known_until=downstream, since=first_run.upstream
        )
    begin = runs.begin[0] if runs.begin else None
    if begin is not None and begin.downstream <= downstream:
        upstream = UpstreamOffset(begin.upstream if first_run is not None else runs.decided + 1)
        return UpstreamPosition(upstream, follows=False, known_until=begin.downstream, since=begin.upstream)
    return ReasonCode.OPPOSITE_UNKNOWN.to_reason()
