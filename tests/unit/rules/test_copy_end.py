"""The offset at which a copy ends that is to have what was seen before a time."""

import pytest

from lockstep_rules.offsets.copy_end import CopyEnd, EndProblem, NoCopyEnd, find_copy_end
from lockstep_state.rows.state_rows import SeenEnds

ROW = SeenEnds(
    topic="t",
    partition=0,
    released=10,
    ends=((10, 1_000, True), (20, 2_000, True), (30, 3_000, False), (40, 4_000, True)),
)


def end(
    before_ms: int,
    *,
    row: SeenEnds | None = ROW,
    checked_ms: int = 9_000,
    next_offset: int = 10,
    moving: bool = True,
    whole: bool = False,
) -> CopyEnd | NoCopyEnd:
    return find_copy_end(
        row,
        before_ms=before_ms,
        checked_ms=checked_ms,
        next_offset=next_offset,
        is_moving=moving,
        needs_whole=whole,
    )


@pytest.mark.parametrize(
    ("before_ms", "found"),
    [
        (1_001, CopyEnd(10, 1_000, 10)),
        (2_000, CopyEnd(10, 1_000, 10)),
        (2_001, CopyEnd(20, 2_000, 10)),
        (4_001, CopyEnd(40, 4_000, 0)),
        (9_000, CopyEnd(40, 4_000, 0)),
    ],
)
def test_copy_ends_at_the_last_end_that_was_seen_before_the_time(before_ms: int, found: CopyEnd) -> None:
    assert end(before_ms) == found


def test_transaction_is_not_cut_in_two() -> None:
    assert end(3_500) == CopyEnd(30, 3_000, 10)
    assert end(3_500, whole=True) == CopyEnd(20, 2_000, 20), "the records up to 40 may have been accepted before"
    open_always = SeenEnds(topic="t", partition=0, ends=((10, 1_000, False), (20, 2_000, False)))
    assert end(2_500, row=open_always, whole=True) == NoCopyEnd(EndProblem.OPEN_TRANSACTION)


def test_what_is_not_known_is_no_end() -> None:
    assert end(2_500, row=None) == NoCopyEnd(EndProblem.NOT_SEEN)
    assert end(2_500, row=SeenEnds(topic="t", partition=0)) == NoCopyEnd(EndProblem.NOT_SEEN)
    assert end(2_500, checked_ms=2_499) == NoCopyEnd(EndProblem.NOT_CHECKED, 2_499)
    assert isinstance(end(2_500, checked_ms=2_500), CopyEnd)
    assert end(1_000) == NoCopyEnd(EndProblem.TOO_OLD, 1_000)


def test_copy_that_is_beyond_the_end_has_none() -> None:
    assert end(1_500, next_offset=10) == CopyEnd(10, 1_000, 10)
    assert end(1_500, next_offset=13) == NoCopyEnd(EndProblem.PASSED, 3)
    released = SeenEnds(topic="t", partition=0, released=20, ends=ROW.ends)
    assert end(1_500, row=released) == NoCopyEnd(EndProblem.PASSED, 10), "it may be copied before the slot knows"
    assert end(1_500, row=released, moving=False) == CopyEnd(10, 1_000, 10)
