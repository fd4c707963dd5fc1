"""The lag of a partition is the newer of what its slot said and what the driver saw of the source."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.sighted import UNHEARD_S, Lag, Sighted
from lockstep_protocol.state import PartitionProgress

T = 1_700_000_000_000
TP = ("t", 0)
UP_TO_DATE = PartitionProgress(topic="t", partition=0, upstream=9, source_end=10, at_ms=T)


def lag(sighted: Sighted, row: PartitionProgress, now: float, *, stands: bool = False) -> Lag:
    return sighted.lag(row, stands=stands, now=now, wall_ms=T + round(now * 1000))


def test_without_a_look_it_is_what_the_slot_said_and_it_grows_on() -> None:
    sighted = Sighted()
    assert lag(sighted, UP_TO_DATE, 500) == Lag(0, 0)
    assert lag(sighted, replace(UP_TO_DATE, lag_records=3, lag_ms=1500), 10) == Lag(3, 11.5)


def test_of_a_slot_that_died_up_to_date_it_counts_from_the_look_that_first_saw_more() -> None:
    sighted = Sighted()
    for now, end in ((100, 10), (110, 12), (120, 100)):
        sighted.look([UP_TO_DATE], {TP: end}, now)
    assert lag(sighted, UP_TO_DATE, 120) == Lag(90, 10)
    assert lag(sighted, UP_TO_DATE, 200) == Lag(90, 90)


def test_a_look_between_two_words_of_a_slot_that_works_shows_nothing() -> None:
    sighted = Sighted()
    sighted.look([UP_TO_DATE], {TP: 5_000}, 100)
    assert lag(sighted, UP_TO_DATE, 100 + UNHEARD_S - 0.1) == Lag(0, 0)
    assert lag(sighted, replace(UP_TO_DATE, upstream=4_000), 100 + 2 * UNHEARD_S) == Lag(0, 0)
    assert lag(sighted, UP_TO_DATE, 100 + UNHEARD_S).records == 4_990


def test_one_that_is_known_to_stand_is_behind_at_once_and_no_longer_than_it_was_seen_to_be() -> None:
    sighted = Sighted()
    sighted.look([UP_TO_DATE], {TP: 100}, 3_600)  # it was paused an hour ago, up to date
    assert lag(sighted, UP_TO_DATE, 3_601, stands=True) == Lag(90, 1)


def test_what_the_slot_said_is_not_taken_back() -> None:
    sighted = Sighted()
    row = replace(UP_TO_DATE, lag_records=50, lag_ms=2_000)
    sighted.look([row], {TP: 20}, 100)
    assert lag(sighted, row, 110) == Lag(50, 112)
    sighted.look([row], {TP: 200}, 120)
    assert lag(sighted, row, 130) == Lag(190, 132)


def test_it_is_over_once_the_copy_has_moved_up_to_the_end_and_begins_anew_behind_it() -> None:
    sighted = Sighted()
    sighted.look([UP_TO_DATE], {TP: 20}, 100)
    later = replace(UP_TO_DATE, upstream=19)
    assert lag(sighted, later, 200) == Lag(0, 0)
    sighted.look([later], {TP: 20}, 210)
    assert lag(sighted, later, 300) == Lag(0, 0)
    sighted.look([later], {TP: 21}, 310)
    assert lag(sighted, later, 320) == Lag(1, 10)


def test_no_answer_for_a_partition_changes_nothing_and_one_that_is_gone_is_forgotten() -> None:
    sighted = Sighted()
    sighted.look([UP_TO_DATE], {TP: 20}, 100)
    sighted.look([UP_TO_DATE], {}, 110)
    assert lag(sighted, UP_TO_DATE, 120) == Lag(10, 20)
    sighted.look([], {}, 130)
    assert lag(sighted, UP_TO_DATE, 140, stands=True) == Lag(0, 0)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12), st.booleans())
def test_it_is_never_more_than_the_source_has_beyond_the_copy(steps: list[tuple[int, int]], stands: bool) -> None:
    """Slots and looks in any order, with ends and places that only grow."""
    sighted, row, end = Sighted(), UP_TO_DATE, 10
    for now, (copied, written) in enumerate(steps):
        end += written
        upstream = min(row.upstream + copied, end - 1)
        row = replace(row, upstream=upstream, lag_records=end - 1 - upstream if written % 2 else 0)
        sighted.look([row], {TP: end}, 5.0 * now)
        found = lag(sighted, row, 5.0 * now + 4, stands=stands)
        assert found.records == end - 1 - row.upstream
        assert (found.seconds > 0) == (found.records > 0)
