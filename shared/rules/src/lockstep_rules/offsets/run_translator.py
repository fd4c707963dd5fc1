"""The exact position of a group on the target, by the data plane's own runs (decision 0021,
`docs/reference/offset-runs.md`).

The rows of a flow's state topic go in; what they say together of one partition is put together when it is asked for.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

from lockstep_rules.offsets.offset_runs import Run, RunMap, translate_back
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress, Row

_Partition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """Where a position of the source stands downstream, and how well that is known.

    Exact: `at` is known and `behind` is 0. Behind: `at` is known, and who goes on there reads at most `behind` records
    again. Unknown: `at` is None, and `reason` says what it waits for.
    """

    at: DownstreamOffset | None
    behind: int = 0
    reason: Reason = NO_REASON
    by_runs: bool = True
    """The data plane's runs say so, no offset sync."""
    exact_at: DownstreamOffset | None = None
    """The exact place, where the last checkpoint is beyond it."""

    @property
    def exact(self) -> bool:
        return self.at is not None and not self.behind


@dataclass(frozen=True, slots=True)
class NoRun:
    """The runs say nothing of the position, and offset syncs may: nothing beyond `most`, where that is known."""

    most: DownstreamOffset | None = None


@dataclass(frozen=True, slots=True)
class UpstreamPosition:
    """The upstream position for a position downstream, by the runs of the flow that wrote there."""

    upstream: UpstreamOffset
    """Every record that the flow copied to the position or beyond, or is still to copy, is at or behind it."""
    follows: bool
    """The position is behind a record that the flow is known to have copied; else before the first such record."""
    known_until: int
    """Every record that the flow copied before the position is before this offset downstream, as far as runs show."""
    since: int = 0
    """If the position follows no record: what was copied before it was, upstream, before this offset."""
    left_out_until: int = 0
    """The position is behind the last record that the flow copied. From it up to this upstream offset an operator has
    left out for good what was not copied (`RunMap.left_out_until`); 0: there is no such decision."""


class RunTranslator:
    """The fold of topic, progress and run rows. A row that comes again, or late, changes nothing for the worse: see
    `offset_runs`. `begin` before anything is asked, and again whenever the state topic was replayed.
    """

    def __init__(self) -> None:
        self.load(())

    def load(self, rows: Iterable[Row]) -> None:
        """Forget everything and take in these: what the state topic holds now."""
        self._topics: dict[str, MirroredTopic] = {}
        self._progress: dict[_Partition, PartitionProgress] = {}
        self._chunks: dict[_Partition, dict[int, OffsetRuns]] = {}
        self._maps: dict[_Partition, RunMap] = {}
        self._changes: Counter[str] = Counter()
        for row in rows:
            self.apply(row)

    def apply(self, row: Row) -> None:
        """One more row, in log order; kinds that are of no concern are passed over."""
        match row:
            case MirroredTopic():
                self._topics[row.source_topic] = row
                self._changes[row.source_topic] += 1
            case PartitionProgress():
                where = (row.topic, row.partition)
                before, known = self._progress.get(where), self._maps.get(where)
                if before is not None and row.is_outdated_by(before):
                    return
                if known is not None and before is not None and row.continues(before):
                    self._maps[where] = known.fold_progress(row)
                else:
                    self._maps.pop(where, None)
                self._progress[where] = row
                self._changes[row.topic] += 1
            case OffsetRuns():
                where = (row.topic, row.partition)
                self._chunks.setdefault(where, {})[row.chunk] = row
                self._maps.pop(where, None)
                self._changes[row.topic] += 1

    def changes(self, topics: Iterable[str]) -> int:
        """Another number than before, if anything was said of one of these topics meanwhile."""
        return sum(self._changes[topic] for topic in set(topics))

    def translate(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset | NoRun:
        """The target position of a group that reads `upstream` of a source partition next.

        Never beyond the records that it still has to see, and not falling when `upstream` rises, as long as the rows
        stand still.
        """
        where = (topic, partition)
        progress = self._progress.get(where)
        if progress is None:
            return NoRun()
        if stale := self._stale_reason(progress):
            return TranslatedOffset(None, reason=stale)
        known = self._map(where, progress)
        found = known.translate(upstream)
        if found is None and known.runs and known.runs[0].downstream == 0:
            return TranslatedOffset(DownstreamOffset(0))  # nothing was copied before the first run
        if found is None and known.runs:
            return NoRun(DownstreamOffset(known.runs[0].downstream))
        if found is None:
            return TranslatedOffset(None, reason=ReasonCode.NOTHING_COPIED.to_reason(text=progress.reason))
        if found.behind:
            known_end = max(known.runs[-1].upstream_end, known.decided + 1)
            return TranslatedOffset(found.downstream, behind=upstream - known_end)
        return TranslatedOffset(found.downstream, behind=found.reread)

    def reaches(self, topic: str, partition: int, upstream: int) -> bool:
        """Return whether the log of the source is known to reach the offset: it was copied so far, or fetched."""
        progress = self._progress.get((topic, partition))
        if progress is None or self._stale_reason(progress):
            return False
        return upstream <= max(progress.upstream + 1, progress.source_end)

    def find_late_begin(self, topic: str, partition: int) -> UpstreamOffset | None:
        """Return the first upstream offset that runs say something of, where the copy has records before it. None: they
        say something of all that was copied, or nothing at all. For an offset before it `translate` knows no run."""
        runs = self._find_runs(topic, partition)
        return UpstreamOffset(runs[0].upstream) if runs and runs[0].downstream > 0 else None

    def copied_to(self, topic: str, partition: int, upstream: int) -> int:
        """The end of the stretch of copied records that contains the upstream offset; the offset itself, if no known
        stretch contains it."""
        runs = self._find_runs(topic, partition)
        index = bisect_right(runs, upstream, key=attrgetter("upstream")) - 1
        return max(upstream, runs[index].upstream_end) if index >= 0 else upstream

    def copied_between(self, topic: str, partition: int, first: int, end: int) -> int:
        """How many of the upstream offsets from `first` up to `end` are known to be copied."""
        runs = self._find_runs(topic, partition)
        lying = runs[max(0, bisect_right(runs, first, key=attrgetter("upstream")) - 1) :]
        lying = lying[: bisect_left(lying, end, key=attrgetter("upstream"))]
        return sum(max(0, min(end, run.upstream_end) - max(first, run.upstream)) for run in lying)

    def appended_until(self, topic: str, partition: int, downstream: int, end: int) -> int:
        """Where the records end that the flow is known to have appended without a gap from `downstream` on. At most
        `end`; `downstream` itself if it appended no record there."""
        runs = self._find_runs(topic, partition)
        for run in runs[max(0, bisect_right(runs, downstream, key=attrgetter("downstream")) - 1) :]:
            if run.downstream > downstream or downstream >= end:
                break
            downstream = max(downstream, min(end, run.downstream_end))
        return downstream

    def copy_name(self, topic: str) -> str | None:
        """What the copy of a source topic is called that the flow keeps, or kept; None: it never copied it."""
        row = self._topics.get(topic)
        return None if row is None else row.target_topic

    def translate_back(self, topic: str, partition: int, downstream: int) -> UpstreamPosition | Reason:
        """Return the upstream position of a group that reads `downstream` of the copy of `topic` next. A reason: it is
        unknown.

        Every record that the flow copied to `downstream` or beyond, or that it is still to copy, is at or behind the
        place. It does not fall when `downstream` rises, as long as the rows do not change.
        """
        where = (topic, partition)
        progress = self._progress.get(where)
        if progress is None:
            return ReasonCode.OPPOSITE_NOT_BEGUN.to_reason()
        if stale := self._stale_reason(progress, back=True):
            return stale
        known = self._map(where, progress)
        if not known.runs:
            return ReasonCode.OPPOSITE_COPIED_NOTHING.to_reason(text=progress.reason)
        return _back(known, downstream)

    def _find_runs(self, topic: str, partition: int) -> Sequence[Run]:
        progress = self._progress.get((topic, partition))
        if progress is None or self._stale_reason(progress):
            return ()
        return self._map((topic, partition), progress).runs

    def _stale_reason(self, progress: PartitionProgress, *, back: bool = False) -> Reason:
        """Return why the progress is not about the present topics, no reason when it is.

        Then offset syncs are not used either: they have no topic ids, and the old ones lead too far. `back`: the reader
        is the flow in the opposite direction, so that the source of these rows is its target.
        """
        topic = self._topics.get(progress.topic)
        if topic is None:
            return ReasonCode.TOPIC_UNKNOWN.to_reason()
        from_new = progress.source_topic_id != topic.source_topic_id
        to_new = progress.target_topic_id != topic.target_topic_id
        if back and from_new:
            return ReasonCode.OPPOSITE_TARGET_RECREATED.to_reason()
        if back and to_new:
            return ReasonCode.OPPOSITE_SOURCE_RECREATED.to_reason()
        if to_new and not topic.target_topic_id:
            return ReasonCode.TARGET_NOT_FOUND.to_reason()
        if to_new:  # first: an earlier checkpoint is a place in a log that is gone
            return ReasonCode.TARGET_RECREATED.to_reason()
        return ReasonCode.SOURCE_RECREATED.to_reason() if from_new else NO_REASON

    def _map(self, where: _Partition, progress: PartitionProgress) -> RunMap:
        known = self._maps.get(where)
        if known is None:
            known = self._maps[where] = RunMap.build(progress, self._chunks.get(where, {}).values())
        return known


def _back(runs: RunMap, downstream: int) -> UpstreamPosition | Reason:
    records = runs.records
    index = bisect_left(records, downstream, key=attrgetter("downstream")) - 1
    found = translate_back(records, DownstreamOffset(downstream)) if index >= 0 else None
    if found is not None:
        known_until, is_last = records[index].downstream_end, index + 1 == len(records)
        left_out_until = runs.left_out_until if is_last and downstream > known_until else 0
        return UpstreamPosition(found.upstream, follows=True, known_until=known_until, left_out_until=left_out_until)
    first = records[0] if records else None
    if first is not None and first.downstream == downstream:
        return UpstreamPosition(
            UpstreamOffset(first.upstream), follows=False, known_until=downstream, since=first.upstream
        )
    begin = runs.begin[0] if runs.begin else None
    if begin is not None and begin.downstream <= downstream:
        upstream = UpstreamOffset(begin.upstream if first is not None else runs.decided + 1)
        return UpstreamPosition(upstream, follows=False, known_until=begin.downstream, since=begin.upstream)
    return ReasonCode.OPPOSITE_UNKNOWN.to_reason()
