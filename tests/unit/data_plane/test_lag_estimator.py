"""The lag of a partition: what its slot said and what the driver saw, and nothing where neither is known to hold."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.lag_estimator import CHECK_VALID_S, FRESH_S, Lag, LagEstimator
from lockstep_rules.offsets.lag import LogRange
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress

T = 1_700_000_000_000
TP = ("t", 0)
TOPIC = MirroredTopic(source_topic="t", target_topic="A.t", source_topic_id="s", target_topic_id="t", partitions=1)
UP_TO_DATE = PartitionProgress(
    topic="t", partition=0, upstream=9, downstream=9, source_end=10, source_topic_id="s", target_topic_id="t", at_ms=T
)


@pytest.fixture
def estimator() -> LagEstimator:
    return LagEstimator()


def lag(estimator: LagEstimator, row: PartitionProgress | None, now: float) -> Lag | None:
    return estimator.lag(TP, row, TOPIC, now=now, wall_ms=T + round(now * 1000))


def observe_row(
    estimator: LagEstimator, row: PartitionProgress | None, end: int | None, now: float, target_end: int = 10
) -> None:
    estimator.observe({TP: ObservedPartition(row, None if end is None else LogRange(0, end), target_end)}, now)


def test_lag_without_end_offsets_is_that_of_the_slot_while_fresh(estimator: LagEstimator) -> None:
    assert lag(estimator, UP_TO_DATE, 0) is None
    estimator.on_row(UP_TO_DATE, 0)
    assert lag(estimator, UP_TO_DATE, FRESH_S) == Lag(0, 0)
    assert lag(estimator, replace(UP_TO_DATE, source_end=13, lag_records=3, lag_ms=1500), FRESH_S) == Lag(3, 11.5)
    assert lag(estimator, UP_TO_DATE, FRESH_S + 1) is None


def test_lag_of_a_slot_that_died_up_to_date_counts_from_the_first_growth(estimator: LagEstimator) -> None:
    for now, end in ((100, 10), (110, 12), (120, 100)):
        observe_row(estimator, UP_TO_DATE, end, now)
    assert lag(estimator, UP_TO_DATE, 120) == Lag(90, 10)
    assert lag(estimator, UP_TO_DATE, 200) == Lag(90, 90)


def test_lag_of_a_copy_that_moves_is_that_of_the_oldest_missing_record(estimator: LagEstimator) -> None:
    for now, end in ((100, 20), (110, 30), (120, 40)):
        observe_row(estimator, UP_TO_DATE, end, now)
    later = replace(UP_TO_DATE, upstream=24, downstream=24, source_end=25)
    observe_row(estimator, later, 50, 130, target_end=25)
    assert lag(estimator, later, 135) == Lag(25, 25), "offset 25 was seen first at 110"
    observe_row(estimator, later, 50, 140, target_end=25)
    assert lag(estimator, replace(later, upstream=44, downstream=44), 140) == Lag(5, 10)


def test_lag_of_a_topic_created_anew_counts_from_its_own_first_record(estimator: LagEstimator) -> None:
    observe_row(estimator, UP_TO_DATE, 20, 100)
    anew = replace(TOPIC, source_topic_id="s2")
    estimator.observe({TP: ObservedPartition(UP_TO_DATE, LogRange(0, 5), 10, TOPIC)}, 105)
    estimator.observe({TP: ObservedPartition(UP_TO_DATE, LogRange(0, 5), 10, anew)}, 110)
    assert estimator.lag(TP, UP_TO_DATE, anew, now=115, wall_ms=T + 115_000) == Lag(5, 5)


def test_lag_reported_by_the_slot_is_not_reduced(estimator: LagEstimator) -> None:
    row = replace(UP_TO_DATE, source_end=60, lag_records=50, lag_ms=2_000)
    observe_row(estimator, row, 20, 100)
    assert lag(estimator, row, 110) == Lag(50, 112)
    observe_row(estimator, row, 200, 120)
    assert lag(estimator, row, 130) == Lag(190, 132)


def test_lag_ends_when_the_copy_reaches_the_end_and_then_starts_anew(estimator: LagEstimator) -> None:
    observe_row(estimator, UP_TO_DATE, 20, 100)
    later = replace(UP_TO_DATE, upstream=19, downstream=19, source_end=20)
    assert lag(estimator, later, 180) == Lag(0, 0)
    observe_row(estimator, later, 20, 210, target_end=20)
    assert lag(estimator, later, 280) == Lag(0, 0)
    observe_row(estimator, later, 21, 310, target_end=20)
    assert lag(estimator, later, 320) == Lag(1, 10)


def test_lag_is_unknown_without_an_answer_or_with_an_old_one(estimator: LagEstimator) -> None:
    observe_row(estimator, UP_TO_DATE, 20, 100)
    observe_row(estimator, UP_TO_DATE, None, 110)
    assert lag(estimator, UP_TO_DATE, 120) is None
    observe_row(estimator, UP_TO_DATE, 20, 130)
    assert lag(estimator, UP_TO_DATE, 140) == Lag(10, 40), "it was behind all the time"
    assert lag(estimator, UP_TO_DATE, 131 + CHECK_VALID_S) is None
    observe_row(estimator, UP_TO_DATE, 20, 300)
    estimator.forget_check()
    assert lag(estimator, UP_TO_DATE, 301) is None


def test_lag_with_an_unreachable_source_is_not_renewed_by_an_equal_row(estimator: LagEstimator) -> None:
    estimator.on_row(UP_TO_DATE, 0)
    observe_row(estimator, UP_TO_DATE, 10, 5)
    estimator.forget_check()
    again = replace(UP_TO_DATE, at_ms=T + 9_000, latency_ms=7)
    estimator.on_row(again, 9)
    assert lag(estimator, again, FRESH_S) == Lag(0, 0)
    assert lag(estimator, again, FRESH_S + 1) is None
    estimator.on_row(more := replace(again, source_end=12, lag_records=2), 12)
    assert lag(estimator, more, 12 + FRESH_S) is not None, "its slot sees the source"
    assert lag(estimator, more, 13 + FRESH_S) is None


def test_lag_keeps_the_last_end_offset_while_the_next_is_requested(estimator: LagEstimator) -> None:
    observe_row(estimator, UP_TO_DATE, 10, 100)
    estimator.begin_check(110)
    assert lag(estimator, UP_TO_DATE, 110 + FRESH_S) == Lag(0, 0)
    assert lag(estimator, UP_TO_DATE, 111 + FRESH_S) is None, "the source may have got more, and nobody can tell"
    assert lag(estimator, None, 111 + FRESH_S) is None
    later = replace(UP_TO_DATE, upstream=19, downstream=19, source_end=25, lag_records=5)
    estimator.on_row(later, 122)
    assert lag(estimator, later, 123) == Lag(5, 123.0), "its slot goes on"
    observe_row(estimator, later, 30, 124, target_end=20)
    assert lag(estimator, later, 125) == Lag(10, 125.0)
    estimator.begin_check(134)
    estimator.forget_check()
    observe_row(estimator, later, 31, 144, target_end=20)
    assert lag(estimator, later, 144 + CHECK_VALID_S) is not None, "nothing is asked any more"


def test_lag_of_a_partition_not_begun_is_all_records_of_the_source(estimator: LagEstimator) -> None:
    assert lag(estimator, None, 0) is None
    observe_row(estimator, None, 200_000, 10)
    assert lag(estimator, None, 15) == Lag(200_000, 5)
    observe_row(estimator, None, 0, 20)
    assert lag(estimator, None, 25) == Lag(0, 0)


def test_lag_ignores_a_row_of_another_topic_id(estimator: LagEstimator) -> None:
    row = replace(UP_TO_DATE, source_topic_id="before", lag_records=5)
    estimator.on_row(row, 0)
    assert lag(estimator, row, 1) is None
    observe_row(estimator, row, 4, 2)
    assert lag(estimator, row, 3) is not None
    assert lag(estimator, row, 3).records == 4  # type: ignore[union-attr]  # the line above


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12))
def test_lag_is_the_source_end_minus_the_copy_after_every_read(steps: list[tuple[int, int]]) -> None:
    """Slots and looks in any order, with ends and places that only grow."""
    estimator, row, end = LagEstimator(), UP_TO_DATE, 10
    for now, (copied, written) in enumerate(steps):
        end += written
        upstream = min(row.upstream + copied, end - 1)
        reported_end = end if written % 2 else max(row.source_end, upstream + 1)
        row = replace(
            row,
            upstream=upstream,
            downstream=upstream,
            source_end=reported_end,
            lag_records=reported_end - 1 - upstream,
        )
        observe_row(estimator, row, end, 5.0 * now, target_end=upstream + 1)
        measured = lag(estimator, row, 5.0 * now + 4)
        assert measured is not None
        assert measured.records == end - 1 - row.upstream
        assert (measured.seconds > 0) == (measured.records > 0)
