"""What the bench counts when applications switch sides."""

from collections import Counter

import pytest

from tools.bench.applications import Count, GroupReadings, count, lost_before
from tools.bench.switching import known_until, permitted_loss, seconds_by_group, steps_text, topics_of_groups
from tools.bench.systems import SystemEnded

WRITTEN = {"a": ["a 0", "a 2"], "b": ["b 1"]}


def group(*topics: str, read: dict[str, int]) -> GroupReadings:
    return GroupReadings(topics, Counter(read))


def test_records_that_every_group_has_read_count_for_nothing() -> None:
    groups = [group("a", "b", read={"a 0": 1, "a 2": 1, "b 1": 1}), group("b", read={"b 1": 1})]
    assert count(WRITTEN, groups) == Count(lost=0, again=0)


def test_record_that_several_groups_miss_is_lost_once() -> None:
    groups = [group("a", read={"a 0": 1}), group("a", "b", read={"a 0": 1, "b 1": 1}), group("b", read={})]
    assert count(WRITTEN, groups) == Count(lost=2, again=0)


def test_record_counts_each_time_it_is_read_again() -> None:
    groups = [group("a", read={"a 0": 3, "a 2": 1}), group("a", read={"a 0": 2, "a 2": 1})]
    assert count(WRITTEN, groups) == Count(lost=0, again=3)


def test_record_not_acknowledged_is_not_lost() -> None:
    assert count({"a": []}, [group("a", read={})]) == Count(lost=0, again=0)


def test_groups_share_the_topics_and_the_last_read_two() -> None:
    found = topics_of_groups([f"t{number}" for number in range(20)], 50, 10)
    assert len(found) == 50
    assert [len(theirs) for theirs in found.values()] == [1] * 40 + [2] * 10
    assert all(len(set(theirs)) == len(theirs) for theirs in found.values())
    read = Counter(topic for theirs in found.values() for topic in theirs)
    assert (len(read), min(read.values())) == (20, 2)


def test_seconds_are_from_the_start_of_the_command() -> None:
    found = seconds_by_group("planned", 100.0, [104.0, 102.0, 103.0, 109.0])
    assert found == {"planned_first_s": 2.0, "planned_median_s": 4.0, "planned_last_s": 9.0}


def test_permitted_loss_is_the_one_in_the_refusal() -> None:
    assert permitted_loss([]) == 0
    assert permitted_loss(["12 records ... Say --allow-data-loss 12 to lose them"]) == 12


def test_other_refusal_of_a_failover_ends_the_part() -> None:
    with pytest.raises(SystemEnded, match="A answers"):
        permitted_loss(["A answers: use lockstep switchover"])


def test_steps_begin_with_the_start_of_the_process() -> None:
    body = {
        "ended": "1970-01-01T00:00:05.000+00:00",
        "steps": [
            {"step": "check", "began": "1970-01-01T00:00:01.500+00:00", "seconds": 0.5},
            {"step": "fence", "began": "1970-01-01T00:00:02.000+00:00", "seconds": 1.25},
            {"step": "after", "began": None, "seconds": None},
        ],
    }
    assert steps_text(body, 1.0) == "start of the process 0.50, check 0.50, fence 1.25; ended after 4.00"


def test_lost_records_before_a_moment_were_acknowledged_before_it() -> None:
    written = {"a": {"a 0": 1.0, "a 2": 2.0, "a 4": 3.0}}
    groups = [group("a", read={"a 0": 1})]
    assert [lost_before(written, groups, moment) for moment in (1.5, 2.5, 3.5)] == [0, 1, 2]


def test_failover_knows_the_source_up_to_the_moment_it_names() -> None:
    text = "2 records lost. What A accepted after 2026-01-01T00:00:00.500+00:00 is counted only as far as"
    assert known_until({"steps": [{"text": "ready"}, {"text": text}]}) == 1767225600.5


def test_failover_that_names_no_moment_ends_the_part() -> None:
    with pytest.raises(SystemEnded, match="up to when"):
        known_until({"steps": [{"text": "ready"}]})
