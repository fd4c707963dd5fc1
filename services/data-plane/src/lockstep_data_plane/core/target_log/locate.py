"""The decision where a partition goes on, from its row, both logs and its fence (no I/O, no clock).

See `kafka-wire.md` §2, lines 2 to 9. `resume/evidence.py` asks the clusters, and nothing else decides where a copy goes
on.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_log.content_match import MatchedPosition
from lockstep_data_plane.core.target_log.fencing import Fencing
from lockstep_data_plane.core.target_log.log_read_back import ComparedCopy
from lockstep_data_plane.core.target_log.target_tail import LastAppend, LogContradiction, TargetTail
from lockstep_data_plane.core.target_log.transformed_match import TransformedMatch
from lockstep_data_plane.record_batch.layout import add_sequence
from lockstep_rules.offsets.gap_policy import GapCase, GapFound, decide_gap
from lockstep_state.rows.state_rows import PartitionProgress


class Position(NamedTuple):
    """The position from which a partition goes on.

    `row` is the row behind which the source is judged again, and `end` the present end of our chain.
    """

    row: PartitionProgress
    end: LastAppend


class LogEnds(NamedTuple):
    """The beginning and the end of the source's log now.

    `agreed` is the offset up to which it still is the log that was copied.
    """

    start: int
    end: int
    agreed: int


class NeedsMore(NamedTuple):
    """The target holds more of ours than the row says, up to this end, so more evidence is needed.

    The source's log has to be asked. If it was asked, the records of both logs have to be compared.
    """

    end: LastAppend


def locate(
    row: PartitionProgress,
    source: LogEnds | None,
    target: TargetTail,
    fence: Fencing,
    policy: Callable[[GapCase], str],
    *,
    counts: bool = True,
    match: MatchedPosition | ComparedCopy | TransformedMatch | str | None = None,
) -> Position | GapFound | NeedsMore:
    """Return where the copy that `row` describes goes on, or why it cannot simply go on, with the policy's decision.

    Args:
        row: The written progress of the copy.
        source: The ends of the source's log. None: it was not asked, for a partition that is not copied; then only the
            target's log counts.
        target: The target's log behind the row.
        fence: The fence under which the row's records were appended.
        policy: The policy's word for each case.
        counts: The number of records beyond the row identifies them, as far as the source has them all.
        match: The position where the records of both logs place the copy, or why it is unknown; None: they were not
            compared. A copy without producer ids is always compared.

    Raises:
        NotReplicated: The leader has appended more than its replicas have.

    | the evidence | the answer |
    |---|---|
    | the target's log contradicts the row, or is another one | a gap: in doubt, or on the target, or re-created |
    | the source's log parts from the one that was copied | a gap: SOURCE_TRUNCATED |
    | records of ours beyond the row, and the source has all | the row, and the chain's end: they are counted past |
    | records of ours beyond the row, and the source lost some | by the records; RECORDS_GONE if it lost all; in doubt |
    | transformed records of ours beyond the row | the last of them, if each is what the source gives; in doubt |
    | records of ours beyond the row, and others in their place | a gap: SOURCE_TRUNCATED |
    | the next record is gone from the source | a gap: RECORDS_GONE |
    | none of these | the row |
    """
    located: Position | GapFound | NeedsMore
    try:
        end = fence.last_append(row, target)
    except LogContradiction as exc:
        located = _gap(row, source, exc.case, str(exc), epoch=exc.epoch)
    else:
        beyond = appended_since(row, end.sequence, end.others)
        if source is None:
            return NeedsMore(end) if beyond else Position(row, end)
        if not beyond and target.shared:  # offsets that hold nothing of ours need not be read again
            row = replace(row, downstream=max(row.downstream, end.read_to))
            end = replace(end, downstream=row.downstream)
        located = _on_both(row, source, end, beyond, match, counts=counts)
    if not isinstance(located, GapFound):
        return located
    if located.on_target:
        located = replace(located, acked_downstream=row.downstream, target_end=target.log_end)
    return replace(located, decision=decide_gap(located, policy(located.case)))


def _on_both(
    row: PartitionProgress,
    source: LogEnds,
    end: LastAppend,
    beyond: int,
    match: MatchedPosition | ComparedCopy | TransformedMatch | str | None,
    *,
    counts: bool,
) -> Position | GapFound | NeedsMore:
    """Return where the copy goes on by the source's log, if our chain on the target ends at `end`."""
    next_upstream = row.upstream + 1
    if source.agreed < next_upstream:
        text = (
            f"the source's log is the one that was copied up to offset {source.agreed} only, not up to {row.upstream}"
        )
        return _gap(row, source, GapCase.SOURCE_TRUNCATED, f"{text}: it was truncated")
    if isinstance(match, ComparedCopy):
        return _compared(row, source, end, match)
    if beyond and (source.start > next_upstream or not counts):
        if match is None:
            return NeedsMore(end)
        if isinstance(match, str):
            text = f"the target holds {beyond} records beyond the last progress written; {match}"
            return _gap(row, source, GapCase.DOUBT, text)
        if isinstance(match, TransformedMatch):
            row = replace(row, upstream=match.next - 1, upstream_epoch=-1, downstream=end.downstream)
            row = replace(row, sequence=end.sequence, others=end.others)
            return _removed_gap(row, source, match.next) or Position(row, replace(end, compared_runs=match.runs))
        # Each of the records appended has an upstream offset of its own, and what comes next is behind all of them.
        if (source.end if match.at_end else match.next) < next_upstream + beyond:
            copied_end = next_upstream + beyond
            text = f"the target holds {beyond} records beyond the last progress written, up to offset"
            text = f"{text} {copied_end - 1} at least, and the source's log is another one from {match.next} on"
            gap = _gap(row, source._replace(agreed=match.next), GapCase.SOURCE_TRUNCATED, f"{text}: it was truncated")
            return replace(gap, next_upstream=copied_end)
        if match.upstream >= 0 or source.start <= next_upstream + beyond:
            row = replace(row, downstream=end.downstream, sequence=end.sequence, others=end.others)
            return Position(replace(row, upstream=match.next - 1, upstream_epoch=-1), end)
        next_upstream += beyond  # the source lost all of these records: the next one is at least so far behind the row
    return _removed_gap(row, source, next_upstream) or Position(row, end)


def _compared(row: PartitionProgress, source: LogEnds, end: LastAppend, match: ComparedCopy) -> Position | GapFound:
    """Return where the copy goes on if all records behind the row were compared one by one."""
    appended = appended_since(row, end.sequence, end.others) - match.doubled
    sequence = add_sequence(row.sequence, appended) if appended else row.sequence
    end = replace(end, sequence=sequence, compared_runs=match.runs)
    located_row = replace(row, downstream=end.downstream, sequence=end.sequence, doubled=row.doubled + match.doubled)
    if match.next > row.upstream + 1:
        located_row = replace(located_row, upstream=match.next - 1, upstream_epoch=-1)
    return _removed_gap(row, source, match.needed_from) or Position(located_row, end)


def _removed_gap(row: PartitionProgress, source: LogEnds, next_upstream: int) -> GapFound | None:
    """Return the gap if the source's log begins behind the next record to copy."""
    if source.start <= next_upstream:
        return None
    removed = f"offsets {next_upstream} to {source.start - 1} were removed before they were copied"
    text = f"the source's log begins at {source.start}, {removed}"
    return replace(_gap(row, source, GapCase.RECORDS_GONE, text), next_upstream=next_upstream)


def _gap(row: PartitionProgress, source: LogEnds | None, case: GapCase, text: str, epoch: int = -1) -> GapFound:
    start, end, agreed = (-1, -1, -1) if source is None else source
    next_upstream = row.upstream + 1
    return GapFound(case=case, text=text, next_upstream=next_upstream, start=start, end=end, agreed=agreed, epoch=epoch)
