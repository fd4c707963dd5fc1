"""Counts go on over restarts of what is counted, and nothing is counted twice."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.driver.monotonic_counter import MonotonicCounter


def test_a_new_beginning_counts_from_zero_even_where_it_is_larger() -> None:
    count = MonotonicCounter()
    for beginning, value in ((1, 100), (1, 120), (2, 500), (2, 530)):
        count.update(beginning, value)
    assert count.total == 120 + 530


def test_monotonic_counter_ignores_counts_known_before() -> None:
    count = MonotonicCounter()
    count.start_from(1, 100)
    assert count.update(1, 100) == 0
    assert count.update(1, 130) == 30
    assert count.total == 30


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50)), max_size=30))
def test_rows_twice_late_or_in_between_change_nothing(seen: list[tuple[int, int]]) -> None:
    count = MonotonicCounter()
    before = 0
    for beginning, value in [*seen, *seen, *reversed(seen)]:
        before, grown = count.total, count.update(beginning, value)
        assert count.total == before + grown >= before
    assert count.total == sum(
        max((value for start, value in seen if start == beginning), default=0) for beginning in (1, 2, 3)
    )


def test_only_the_newest_beginnings_are_remembered() -> None:
    count = MonotonicCounter()
    for beginning in range(10_000):
        count.update(beginning, 1)
    assert count.total == 10_000
    assert len(count._values) < 10
