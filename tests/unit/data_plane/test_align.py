"""The records tell where the copy stands when the source has lost some that were copied."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep_data_plane.align import Alignment, Ambiguous
from tests.unit.data_plane.batch_bytes import record, records


@given(total=st.integers(1, 30), copied=st.integers(1, 30), gone=st.sets(st.integers(0, 29)), chunk=st.integers(1, 7))
def test_it_finds_the_first_record_that_the_target_does_not_have(
    total: int, copied: int, gone: set[int], chunk: int
) -> None:
    log = records(0, total)
    copied = min(copied, total)
    alignment = Alignment(log[:copied])
    left = [r for r in log if r.offset not in gone]
    found = any(alignment.take(left[i : i + chunk]) for i in range(0, len(left), chunk))
    expected = [r.offset for r in left if r.offset >= copied]
    assert found == bool(expected)
    assert alignment.next == (expected[0] if expected else None)
    assert alignment.upstream == max((r.offset for r in left if r.offset < copied), default=-1)


@given(
    total=st.integers(1, 14),
    copied=st.integers(1, 14),
    gone=st.sets(st.integers(0, 13)),
    gone_there=st.sets(st.integers(0, 13)),
)
@example(total=3, copied=2, gone={1}, gone_there={0})
@example(total=3, copied=3, gone={2}, gone_there={0, 1})
@example(total=4, copied=2, gone=set(), gone_there={0, 1})
def test_where_the_target_has_lost_some_too_it_is_right_or_says_that_nobody_can_tell(
    total: int, copied: int, gone: set[int], gone_there: set[int]
) -> None:
    log = records(0, total)
    copied = min(copied, total)
    there = [r for r in log[:copied] if r.offset not in gone_there]
    lost_there = gone_there & set(range(copied))
    gone_before = sum(1 for r in there if r.offset < max(lost_there)) if lost_there else -1
    alignment = Alignment(there, gone_before, copied)
    left = [r for r in log if r.offset not in gone]
    expected = [r.offset for r in left if r.offset >= copied]
    try:
        found = alignment.take(left)
        if not found:
            alignment.ends()
    except Ambiguous:
        behind = max((r.offset for r in left if r in there), default=-1)
        assert max(lost_there, default=-1) > behind, "the last one that both have leaves some untold"
        return
    assert (alignment.next if found else None) == (expected[0] if expected else None)


def test_records_that_are_the_same_tell_nothing() -> None:
    with pytest.raises(Ambiguous, match="the same record twice"):
        Alignment([record(0, b"x"), record(1, b"x")])


def test_another_order_tells_nothing() -> None:
    first, second = records(0, 2)
    with pytest.raises(Ambiguous, match="at offset 7 stands elsewhere"):
        Alignment([first, second]).take([second._replace(offset=6), first._replace(offset=7)])


def test_what_differs_in_one_respect_is_another_record() -> None:
    alignment = Alignment([record(0, b"x", timestamp=1)])
    assert alignment.take([record(5, b"x", timestamp=2)])
    assert alignment.next == 5
