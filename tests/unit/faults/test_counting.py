"""Lost, doubled and out of place: what the fault suite's verdict rests on."""

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.counting import Count, count
from tests.faults.suite import Outcome, as_json, as_markdown

NUMBERS = st.lists(st.integers(0, 50), unique=True).map(sorted)


def test_equal_partitions_have_nothing_lost_doubled_or_displaced() -> None:
    counted = count({0: [1, 3], 1: [2]}, {0: [1, 3], 1: [2]})
    assert counted == Count(records=3, lost=0, doubled=0, displaced=0)
    assert counted.equal


def test_a_record_that_is_missing_is_lost_and_its_place_is_named() -> None:
    counted = count({0: [1, 3, 5]}, {0: [1, 5]})
    assert (counted.lost, counted.doubled, counted.displaced) == (1, 0, 0)
    assert counted.first == "partition 0, place 1: 5 instead of 3"


def test_a_tail_that_is_missing_is_lost() -> None:
    counted = count({0: [1, 3], 1: [2]}, {0: [1]})
    assert counted.lost == 2
    assert counted.first == "partition 0, place 1: nothing instead of 3"


def test_a_record_that_is_there_twice_is_doubled_and_displaces_nothing() -> None:
    counted = count({0: [1, 3, 5]}, {0: [1, 3, 1, 3, 5]})
    assert (counted.lost, counted.doubled, counted.displaced) == (0, 2, 0)


def test_a_record_that_the_source_never_had_is_doubled() -> None:
    assert count({0: [1]}, {0: [1, 9]}).doubled == 1


def test_a_record_in_another_partition_is_lost_and_doubled() -> None:
    counted = count({0: [1, 3], 1: [2]}, {0: [1], 1: [2, 3]})
    assert (counted.lost, counted.doubled) == (1, 1)


def test_count_of_a_record_out_of_order_is_displaced() -> None:
    counted = count({0: [1, 3, 5, 7]}, {0: [3, 1, 5, 7]})
    assert (counted.lost, counted.doubled, counted.displaced) == (0, 0, 1)
    assert not counted.equal


@given(NUMBERS, st.lists(st.integers(0, 60)))
def test_count_is_equal_only_for_equal_logs_and_its_sums_match(wanted: list[int], copied: list[int]) -> None:
    counted = count({0: wanted}, {0: copied})
    assert counted.equal == (wanted == copied)
    assert len(copied) == len(wanted) - counted.lost + counted.doubled
    assert counted.lost == sum((Counter(wanted) - Counter(copied)).values())


def outcome(lost: int = 0, failed: str = "") -> Outcome:
    counted = Count(records=1_000, lost=lost, doubled=0, displaced=0)
    return Outcome(fault="target broker restarts", times=2, count=counted, longest_s=8.25, failed=failed)


def test_the_json_names_fault_times_lost_and_doubled() -> None:
    written = json.loads(as_json([outcome(lost=3)], seed=7))
    assert written["seed"] == 7
    (fault,) = written["faults"]
    assert {key: fault[key] for key in ("fault", "times", "lost", "doubled")} == {
        "fault": "target broker restarts", "times": 2, "lost": 3, "doubled": 0,
    }  # fmt: skip


def test_outcome_without_recovery_is_not_good_and_is_in_the_table() -> None:
    assert outcome().good
    assert not outcome(lost=1).good
    assert not outcome(failed="NeverHappened: x").good
    assert "target broker restarts (did not recover)" in as_markdown([outcome(failed="NeverHappened: x")])
