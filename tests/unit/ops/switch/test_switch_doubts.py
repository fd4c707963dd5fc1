"""Rows that do not know, list in part, or know of another topic: a switch does not call them fine."""

from dataclasses import replace

import pytest

from lockstep_ops.switch.group_positions import GroupAtSource, judge_groups
from lockstep_ops.switch.switch_check import about_topics
from lockstep_ops.switch.switch_positions import diverged_records, known_loss, not_copied, switched_topics, topic_rows
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, PartitionProgress
from tests.support.takeover_rows import progress, rows_of, topic

T = topic(partitions=2)
GROUP = GroupStatus(group="g", phase="translated", synced=True, positions=(("A.t", 0, 10, 12),))
ENDS = {("t", 0): 10, ("t", 1): 5}


def states(row: GroupStatus, source: GroupAtSource | None = None, *members: str) -> list[tuple[str, bool]]:
    at_source = {} if source is None else {"g": source}
    verdicts = judge_groups([row], at_source, {"g": members} if members else {}, [T], ENDS)
    return [(item.state, item.can_move) for item in verdicts]


@pytest.mark.parametrize(
    ("row", "mirrored"),
    [
        pytest.param(progress(0, source_end=10), T, id="never begun"),
        pytest.param(
            progress(upstream=999, source_end=10, source_topic_id="old"),
            topic(partitions=1, source_topic_id="new"),
            id="log created anew",
        ),
    ],
)
def test_known_loss_of_what_was_not_copied_is_not_nothing(row: PartitionProgress, mirrored: MirroredTopic) -> None:
    assert known_loss(rows_of(row), [mirrored])


def test_not_copied_of_a_log_created_anew_is_all_of_it() -> None:
    rows = rows_of(topic(source_topic_id="new"), progress(upstream=999, source_topic_id="old"))
    assert not_copied({("t", 0): 10}, {("t", 0): 0}, rows) == {("t", 0): 10}


def test_diverged_records_of_a_partition_never_begun_are_all() -> None:
    assert diverged_records({("t", 0): 50}, rows_of(topic()), {}) == {("t", 0): 50}


def test_switched_topics_have_those_that_fail() -> None:
    assert switched_topics(rows_of(topic(phase="failed", cause=ReasonCode.UNKNOWN.to_reason(text="no right"))), (), ())


def test_topic_rows_without_an_end_call_it_unknown() -> None:
    (row,) = topic_rows([topic(partitions=1)], "1", {}, rows_of(progress(0, 9)), {})
    assert row.ends == (-1,)


@pytest.mark.parametrize(
    ("row", "source", "members", "state"),
    [
        pytest.param(GROUP, GroupAtSource(ENDS), (), "waiting", id="an offset and no place"),
        pytest.param(GROUP, GroupAtSource({("t", 0): 10}, ("app",)), (), "reading", id="unread and uncommitted logs"),
        pytest.param(
            replace(GROUP, ahead=tuple(("A.u", n, 9, 1, "ahead-on-target") for n in range(50)), more_ahead=1),
            *(None, (), "skips"),
            id="more ahead than listed",
        ),
        pytest.param(
            replace(GROUP, ahead=(("A.t", 0, 99, 12, "ahead-on-target"),)), None, ("app",), "skips", id="works ahead"
        ),
    ],
)
def test_group_in_doubt_cannot_move(
    row: GroupStatus, source: GroupAtSource | None, members: tuple[str, ...], state: str
) -> None:
    assert states(row, source, *members) == [(state, False)]


def test_group_with_more_waiting_and_no_position_waits() -> None:
    waiting = tuple(("A.u", number, "why") for number in range(50))
    row = replace(GROUP, phase="waiting", positions=(), waiting=waiting, more_waiting=1)
    assert states(row) == [("waiting", False)]
    blocker = Blocker(SwitchReason.GROUP_WAITING, "g")
    assert about_topics([blocker], rows_of(T, row), ["t"]) == (blocker,)


def test_group_with_more_behind_counts_them_too() -> None:
    behind = tuple(("A.u", number, 100) for number in range(50))
    (verdict,) = judge_groups([replace(GROUP, behind=behind, more_behind=3, read_ms=1)], {}, {}, [T], ENDS)
    assert (verdict.state, verdict.read_again) == ("behind", 300)
