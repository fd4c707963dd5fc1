"""The demo's verdict: it says what is wrong when something is."""

from tests.support.topic_comparison import Comparison
from tools.demo.verdict import (
    GroupMove,
    judge_acls,
    judge_comparison,
    judge_group,
    judge_heartbeats,
    judge_traffic,
)

EQUAL = Comparison(compared=7, missing=0, doubled=0, reordered=0, first_difference=None)


def test_an_equal_copy_of_everything_written_holds() -> None:
    assert judge_comparison("A->B", "orders", 7, EQUAL).held


def test_a_copy_that_equals_a_source_with_records_gone_does_not_hold() -> None:
    assert not judge_comparison("A->B", "orders", 8, EQUAL).held


def test_verdict_on_two_empty_topics_does_not_hold() -> None:
    nothing = Comparison(compared=0, missing=0, doubled=0, reordered=0, first_difference=None)
    assert not judge_comparison("A->B", "orders", 0, nothing).held


def test_a_difference_is_shown() -> None:
    finding = judge_comparison("A->B", "orders", 7, Comparison(7, 1, 2, 3, "partition 0, record 4: x became y"))
    assert not finding.held
    assert "1 missing, 2 doubled, 3 out of order; first difference: partition 0, record 4" in finding.measured


def test_a_group_that_reads_a_little_again_and_skips_nothing_holds() -> None:
    move = GroupMove({0: [0, 2, 4], 1: [1]}, {0: [4, 6], 1: [3, 5]})
    assert move.read_again() == {0: 1, 1: 0}
    assert [finding.held for finding in judge_group(move, 7)] == [True, True]


def test_a_skipped_record_is_named() -> None:
    skipping, _ = judge_group(GroupMove({0: [0, 1]}, {0: [3]}), 4)
    assert not skipping.held
    assert "1 of 4 skipped (first: [2])" in skipping.measured


def test_a_group_that_begins_again_reads_too_much_twice() -> None:
    numbers = list(range(101))
    _, again = judge_group(GroupMove({0: numbers}, {0: numbers}), 101)
    assert not again.held
    assert again.measured == "partition 0: 101"
    _, within = judge_group(GroupMove({0: numbers}, {0: numbers[1:]}), 101)
    assert within.held


def test_a_group_that_read_on_one_side_only_has_not_moved() -> None:
    assert not judge_group(GroupMove({0: [0, 1]}, {}), 2)[0].held
    assert not judge_group(GroupMove({}, {0: [0, 1]}), 2)[0].held


def test_acl_verdict_holds_with_read_and_without_write_on_the_copy() -> None:
    copied = [("ALLOW", "READ", "User:billing"), ("ALLOW", "DESCRIBE", "User:support")]
    assert judge_acls(copied).held
    assert not judge_acls([*copied, ("ALLOW", "WRITE", "User:shop")]).held
    assert not judge_acls(copied[:1]).held
    assert judge_acls([]).measured == "none"


def test_heartbeats_hold_when_both_flows_still_beat() -> None:
    assert judge_heartbeats({"A->B": 800, "B->A": 1_200}).held
    assert not judge_heartbeats({"A->B": 800, "B->A": 11_000}).held
    assert not judge_heartbeats({"A->B": 800, "B->A": None}).held
    assert not judge_heartbeats({"A->B": 800}).held


def test_refused_records_spoil_the_figures() -> None:
    assert judge_traffic([]).held
    assert not judge_traffic(["orders: too large"]).held
