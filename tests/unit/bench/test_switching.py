"""What the bench counts when applications switch sides."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.application import Application
from tests.support.systems import SystemEnded
from tools.bench.switching import known_until, permitted_loss, seconds_by_group, steps_text, topics_of_groups


def application(written: Sequence[str], **groups: tuple[str, Sequence[str]]) -> Application:
    """Return one that has written these values. Each group has its topics, joined by blanks, and what it has read."""
    made = Application("", [], partitions=1, groups={name: topics.split() for name, (topics, _) in groups.items()})
    made.written = {value: float(number) for number, value in enumerate(written)}
    for group in made.groups:
        group.read.update(groups[group.name][1])
    return made


ALL = ["a 0", "b 1", "a 2"]


def test_records_that_every_group_has_read_are_not_lost() -> None:
    app = application(ALL, both=("a b", ALL), one=("b", ["b 1"]))
    assert (app.unread, app.read_again) == (set(), 0)


def test_record_that_several_groups_miss_is_lost_once() -> None:
    assert application(ALL, one=("a", ["a 0"]), both=("a b", ["a 0", "b 1"]), other=("b", [])).unread == {"a 2", "b 1"}


def test_record_counts_each_time_it_is_read_again() -> None:
    assert application(ALL, one=("a", ["a 0", "a 2", "a 0", "a 0"]), other=("a", ["a 0", "a 0", "a 2"])).read_again == 3


def test_record_not_acknowledged_is_not_lost() -> None:
    assert application([], one=("a", [])).unread == set()


def test_group_subscribes_to_its_topics_and_their_copies() -> None:
    (group,) = application([], one=("t1", [])).groups
    assert group.subscribed(["t1", "t11", "a.t1", "a.t11"]) == ["t1", "a.t1"]


def test_groups_share_the_topics_and_the_last_read_two() -> None:
    groups = topics_of_groups([f"t{number}" for number in range(20)], 50, 10)
    assert len(groups) == 50
    assert [len(topics) for topics in groups.values()] == [1] * 40 + [2] * 10
    assert all(len(set(topics)) == len(topics) for topics in groups.values())
    read = Counter(topic for topics in groups.values() for topic in topics)
    assert (len(read), min(read.values())) == (20, 2)


def test_seconds_are_from_the_start_of_the_command() -> None:
    seconds = seconds_by_group("planned", 100.0, [104.0, 102.0, 103.0, 109.0])
    assert seconds == {"planned_first_s": 2.0, "planned_median_s": 4.0, "planned_last_s": 9.0}


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


def test_failover_knows_the_source_up_to_the_moment_it_names() -> None:
    text = "2 records lost. What A accepted after 2026-01-01T00:00:00.500+00:00 is counted only as far as"
    assert known_until({"steps": [{"text": "ready"}, {"text": text}]}) == 1767225600.5


def test_failover_that_names_no_moment_ends_the_part() -> None:
    with pytest.raises(SystemEnded, match="up to when"):
        known_until({"steps": [{"text": "ready"}]})
