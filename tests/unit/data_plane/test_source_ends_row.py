"""The row that says where the source's logs end, and how often they are looked at."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.source_ends_watch import (
    FREQUENT_CHECK_INTERVAL_S,
    MOST_ENDS,
    TICK_S,
    check_interval_s,
    delayed_check_interval_s,
    source_ends_row,
    with_unanswered,
)
from lockstep_rules.offsets.lag import LogRange
from lockstep_state.rows.state_rows import PartitionProgress, SourceEnds

TP = ("t", 0)


def seen(row: PartitionProgress | None, end: int | None) -> ObservedPartition:
    return ObservedPartition(row, None if end is None else LogRange(0, end))


def test_source_ends_row_names_what_the_progress_does_not() -> None:
    observed = {
        TP: seen(PartitionProgress(topic="t", partition=0, upstream=9, source_end=12), 20),
        ("t", 1): seen(PartitionProgress(topic="t", partition=1, upstream=9, source_end=-1), 11),
        ("t", 2): seen(PartitionProgress(topic="t", partition=2, upstream=9, source_end=30), 30),
        ("u", 0): seen(None, 0),
        ("v", 0): seen(None, 3),
        ("w", 0): seen(None, None),
    }
    since = {TP: 4, ("t", 1): 2, ("v", 0): 3}
    row = source_ends_row(observed, 5, since.__getitem__)
    assert row == SourceEnds(asked_ms=5, ends=(("t", 0, 20), ("v", 0, 3), ("t", 1, 11)), since_ms=(4, 3, 2))
    assert row.by_partition() == {TP: (20, 4), ("v", 0): (3, 3), ("t", 1): (11, 2)}
    assert replace(row, since_ms=()).by_partition()[TP] == (20, None), "of a release that does not say it"


def test_source_ends_row_of_too_many_counts_those_left_out() -> None:
    observed = {("t", number): seen(None, number + 1) for number in range(MOST_ENDS + 3)}
    row = source_ends_row(observed, 5, lambda _: 1_800_000_000_000)
    assert (len(row.ends), row.more) == (MOST_ENDS, 3)
    assert row.ends[0] == ("t", MOST_ENDS + 2, MOST_ENDS + 3)
    _, value = row.encode()
    assert len(value) < 900_000


@pytest.mark.parametrize("partitions", [0, 1, 50, 9_999, 10_000])
def test_look_at_up_to_10000_logs_comes_within_ten_seconds(partitions: int) -> None:
    assert check_interval_s(partitions) + TICK_S < 10.0
    assert check_interval_s(3 * 10_000) == 3 * check_interval_s(partitions)
    assert check_interval_s(partitions, 3.0) == check_interval_s(partitions) - 3.0
    assert check_interval_s(partitions, 60.0) == FREQUENT_CHECK_INTERVAL_S


@pytest.mark.parametrize(
    ("delay_s", "interval_s"), [(None, float("inf")), (1, FREQUENT_CHECK_INTERVAL_S), (320, 5.0), (86_400, 1_350.0)]
)
def test_short_delay_needs_frequent_checks(delay_s: int | None, interval_s: float) -> None:
    assert delayed_check_interval_s(None if delay_s is None else timedelta(seconds=delay_s)) == interval_s


def test_source_ends_row_with_too_many_without_an_answer_is_sure_of_none() -> None:
    silent = {("t", number): 5 for number in range(MOST_ENDS + 1)}
    row = with_unanswered(SourceEnds(asked_ms=9), silent)
    assert (len(row.unanswered), row.more) == (MOST_ENDS, 1)
    assert row.known_ms([("u", 0)]) == {("u", 0): 0}
