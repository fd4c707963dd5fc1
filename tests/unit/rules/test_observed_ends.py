"""The age of a record by the log ends that were observed."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.observed_ends import MOST, RESOLUTION_MS, ObservedEnds


def seen(*ends: tuple[int, int], upstream: int = -1) -> ObservedEnds:
    observed = ObservedEnds()
    for end, at_ms in ends:
        observed.observe(end, at_ms, upstream)
    return observed


def test_a_record_is_as_old_as_the_first_end_beyond_it() -> None:
    ends = seen((10, 1_000), (10, 2_000), (20, 3_000), (30, 4_000))
    assert [ends.since_ms(upstream) for upstream in (-1, 8, 9, 18, 19, 28)] == [
        1_000,
        1_000,
        3_000,
        3_000,
        4_000,
        4_000,
    ]
    assert ends.since_ms(29) is None, "nothing beyond it was seen"


def test_ends_that_the_copy_has_reached_are_forgotten() -> None:
    ends = seen((10, 1_000), (20, 3_000))
    ends.observe(20, 5_000, 9)
    assert ends.since_ms(-1) == 3_000
    ends.observe(20, 6_000, 19)
    assert ends.since_ms(-1) is None
    ends.observe(21, 9_000, 19)
    assert ends.since_ms(19) == 9_000


def test_ends_seen_together_count_from_the_first_of_them() -> None:
    ends = seen((10, 1_000), (20, 1_000 + RESOLUTION_MS - 1), (30, 1_000 + RESOLUTION_MS))
    assert (ends.since_ms(15), ends.since_ms(25)) == (1_000, 1_000 + RESOLUTION_MS)


def test_a_clock_that_goes_back_makes_no_record_younger() -> None:
    ends = seen((10, 5_000), (20, 1_000), (30, 6_000))
    assert (ends.since_ms(5), ends.since_ms(15), ends.since_ms(25)) == (5_000, 5_000, 6_000)


def test_a_log_that_became_shorter_keeps_what_it_still_has() -> None:
    ends = seen((10, 1_000), (20, 2_000), (30, 3_000), (15, 9_000))
    assert (ends.since_ms(5), ends.since_ms(12), ends.since_ms(14)) == (1_000, 2_000, None)
    ends.observe(30, 9_500, -1)
    assert ends.since_ms(14) == 9_500


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5_000), st.integers(0, 60)), min_size=1, max_size=400))
def test_observed_ends_are_bounded_and_make_nothing_younger(steps: list[tuple[int, int, int]]) -> None:
    """Each step: records written, milliseconds passed, records copied. Compared with a list of everything."""
    ends, exact, end, now_ms, upstream = ObservedEnds(), list[tuple[int, int]](), 0, 0, -1
    for written, passed_ms, copied in steps:
        end, now_ms = end + written, now_ms + passed_ms
        upstream = min(upstream + copied, end - 1)
        ends.observe(end, now_ms, upstream)
        exact.append((end, now_ms))
        truth = next((at_ms for end, at_ms in exact if end > upstream + 1), None)
        since_ms = ends.since_ms(upstream)
        assert (since_ms is None) == (truth is None)
        if since_ms is not None and truth is not None:
            assert since_ms <= truth
            error = max(RESOLUTION_MS, 4 * (now_ms - since_ms) // MOST + RESOLUTION_MS)
            assert truth - since_ms <= max(error, max(step[1] for step in steps)), "little is given away"
    assert len(ends._ends) <= MOST
