"""The offset at which a copy ends that is to have what the source accepted before a time. Pure.

A record counts as accepted when it was first seen in the source's log (`first_seen.py`). Timestamps of records have no
part in it, because producers set them.
"""

from dataclasses import dataclass
from enum import Enum

from lockstep_rules.offsets.first_seen import SeenEnd
from lockstep_state.rows.state_rows import SeenEnds


class EndProblem(Enum):
    """The reasons why it is unknown at which offset the copy of a partition is to end."""

    NOT_DELAYED = "not-delayed"
    """It has no delay, so the times at which its records were seen are not kept."""
    NOT_SEEN = "not-seen"
    """It is not known when any of its records were seen."""
    NOT_CHECKED = "not-checked"
    """The source was not checked after the time."""
    TOO_OLD = "too-old"
    """The time is before the oldest check that is remembered."""
    OPEN_TRANSACTION = "open-transaction"
    """A transaction was open at each check before the time that is remembered, and could be cut in two."""
    PASSED = "passed"
    """The copy is beyond the end, or may be before it is told."""


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """The end of a partition's copy."""

    offset: int
    """The next offset that is not copied."""
    seen_ms: int
    """The Unix milliseconds of the check that saw it."""
    doubtful: int = 0
    """Offsets behind the end that the next check saw, after the time. They may have been accepted before it."""


@dataclass(frozen=True, slots=True)
class NoCopyEnd:
    """The reason why there is no end."""

    problem: EndProblem
    number: int = 0
    """The Unix milliseconds of the last check (NOT_CHECKED) or of the oldest one (TOO_OLD). How many offsets the copy
    is beyond the end (PASSED). 0 with any other."""


def find_copy_end(
    row: SeenEnds | None,
    *,
    before_ms: int,
    checked_ms: int,
    next_offset: int,
    is_moving: bool,
    needs_whole: bool,
) -> CopyEnd | NoCopyEnd:
    """Return the end of a copy with the records that were first seen before a time.

    Args:
        row: When records of the partition were seen; None: unknown.
        before_ms: The time, in Unix milliseconds.
        checked_ms: The time up to which the end of the source's log is known.
        next_offset: The offset after the last one that is copied.
        is_moving: The copy may go on up to what is released before it is told its end.
        needs_whole: No transaction may be cut in two: the flow reads committed records only.
    """
    if row is None or not row.ends:
        return NoCopyEnd(EndProblem.NOT_SEEN)
    if checked_ms < before_ms:
        return NoCopyEnd(EndProblem.NOT_CHECKED, checked_ms)
    ends = [SeenEnd(*end) for end in row.ends]
    before = [seen for seen in ends if seen.at_ms < before_ms]
    if not before:
        return NoCopyEnd(EndProblem.TOO_OLD, ends[0].at_ms)
    whole = [seen for seen in before if seen.is_whole or not needs_whole]
    if not whole:
        return NoCopyEnd(EndProblem.OPEN_TRANSACTION)
    last = whole[-1]
    reached = max(next_offset, row.released) if is_moving else next_offset
    if reached > last.end:
        return NoCopyEnd(EndProblem.PASSED, reached - last.end)
    following = next((seen.end for seen in ends if seen.at_ms >= before_ms), before[-1].end)
    return CopyEnd(last.end, last.at_ms, following - last.end)
