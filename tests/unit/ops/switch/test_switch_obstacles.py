"""A group that is not at its place: either a step of the switch can bring it there, or the check refuses."""

from typing import Any

import pytest

from lockstep_ops.switch.group_positions import GroupAtSource, GroupPatience, GroupVerdict, Prospect, judge_groups
from lockstep_ops.switch.switch_check import blocking, with_obstacles
from lockstep_ops.switch.switch_options import Allowance
from lockstep_ops.switch.switch_steps import Verb
from lockstep_rules.switch.switch_readiness import SwitchFacts, SwitchLimits, SwitchPartition, find_blockers
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode as Code
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.takeover_rows import rows_of, topic

TOPIC = topic()
FINE = SwitchPartition("t", 0, "copying", 0, 0)
READ = GroupAtSource({("t", 0): 10})

SETTLES = {
    *(Code.NOTHING_COPIED, Code.TARGET_RECREATED, Code.SOURCE_RECREATED, Code.NO_OFFSET_SYNC),
    *(Code.SOURCE_END_UNKNOWN, Code.TARGET_END_UNKNOWN, Code.TOPIC_WAS_ABSENT),
    *(Code.TARGET_GROUP_FIRST_READ, Code.TARGET_GROUP_ACTIVE, Code.TARGET_GROUP_WAS_ACTIVE, Code.TARGET_GROUP_MOVED),
}
SETTLES_BY_SOURCE = {Code.WAITING_NOT_LISTED, Code.GROUP_NOT_PLACED}
"""Every other code blocks, also one that is added later."""
CONTESTS = {Code.CONTESTED, Code.CONTEST_UNKNOWN}


def group(**fields: Any) -> GroupStatus:
    usual = {"group": "g", "phase": "translated", "synced": True, "positions": (("A.t", 0, 10, 12),), "exact": 1}
    return GroupStatus(**{**usual, **fields})


def waiting(reason: Reason) -> GroupStatus:
    text = format_sentence(reason)
    return group(waiting=(("A.t", 0, text),), causes=(("A.t", 0, reason),), reason=text, cause=reason)


def held(reason: Reason) -> GroupStatus:
    return group(synced=False, held_cause=reason, held_reason=format_sentence(reason))


def refused(row: GroupStatus, verb: Verb = Verb.SWITCHOVER, *allows: Allowance, rewind: bool = False) -> list[str]:
    """Return the reasons for which the check refuses."""
    blockers = find_blockers(
        SwitchFacts(partitions=(FINE,), groups=(row,)), SwitchLimits(max_lag_ms=1000, syncs_groups=True)
    )
    about = with_obstacles(blockers, rows_of(TOPIC, row), (), reads_source=verb is not Verb.FAILOVER)
    return [blocker.reason.word for blocker in blocking(about, verb, allows=allows, rewind_groups=rewind)]


def judged(row: GroupStatus, source: GroupAtSource | None = READ) -> GroupVerdict:
    (verdict,) = judge_groups([row], {} if source is None else {"g": source}, {}, [TOPIC], {("t", 0): 10})
    return verdict


@pytest.mark.parametrize("row_of", [waiting, held])
@pytest.mark.parametrize("code", sorted(set(Code) - {Code.GROUP_GONE}))
def test_group_with_each_cause_settles_in_a_step_or_blocks_the_check(code: Code, row_of: Any) -> None:
    row = row_of(Reason(code.value))
    word = "group-contested" if code in CONTESTS else "group-stuck"
    assert refused(row) == ([] if code in SETTLES | SETTLES_BY_SOURCE else [word])
    assert refused(row, Verb.FAILOVER) == ([] if code in SETTLES else [word])
    assert refused(row, Verb.SWITCHOVER, Allowance.NOT_READY) == refused(row), "it leaves no group behind"
    assert refused(row, Verb.SWITCHOVER, Allowance.LEFT_GROUPS) == []
    for verb, source in ((Verb.SWITCHOVER, READ), (Verb.FAILOVER, None)):
        verdict = judged(row, source)
        assert not verdict.can_move
        assert (verdict.prospect is Prospect.NOTHING) == bool(refused(row, verb))


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (waiting(Reason("a-code-of-a-newer-release")), "group-stuck"),
        (group(waiting=(("A.t", 0, "a text of an earlier release"),)), "group-stuck"),
        (group(synced=False, held_reason="a text of an earlier release"), "group-stuck"),
        (group(phase="a phase of a newer release"), "group-stuck"),
        (group(phase="failing", cause=Code.REPORTED.to_reason(text="x")), "group-failing"),
        (group(held="refused", held_cause=Code.REPORTED.to_reason(text="x")), "group-refused"),
        (group(ahead=(("A.t", 0, 20, 12, "ahead-on-target"),)), "group-skips"),
        (group(ahead=(("A.t", 0, 20, 12, "rewound-on-source"),)), "group-skips"),
        (group(more_ahead=2), "group-skips"),
    ],
)
def test_group_that_no_step_moves_is_left_only_if_allowed(row: GroupStatus, word: str) -> None:
    for verb in (Verb.SWITCHOVER, Verb.FAILOVER):
        assert refused(row, verb) == refused(row, verb, Allowance.NOT_READY) == [word]
        assert refused(row, verb, Allowance.LEFT_GROUPS) == []
        assert judged(row).prospect is Prospect.NOTHING


def test_rewound_group_passes_with_the_option_and_one_ahead_does_not() -> None:
    rewound, ahead = ("A.t", 0, 20, 12, "rewound-on-source"), ("A.t", 1, 20, 12, "ahead-on-target")
    assert refused(group(ahead=(rewound,)), rewind=True) == []
    assert refused(group(ahead=(ahead, rewound)), rewind=True) == ["group-skips"]
    assert refused(group(more_ahead=1), rewind=True) == ["group-skips"]


def test_obstacle_in_a_topic_that_the_flow_does_not_copy_does_not_block() -> None:
    """Such as the group's offset in the copy of the opposite flow."""
    reason = Code.OPPOSITE_COPIED_NOTHING.to_reason()
    row = group(waiting=(("orders", 0, "x"),), causes=(("orders", 0, reason),))
    assert refused(row) == []
    assert judged(row).state == "exact"


def test_patience_ends_first_for_what_nothing_moves() -> None:
    stuck = GroupVerdict("stuck", "contested")
    moving = GroupVerdict("moving", "moving", prospect=Prospect.SERVICES)
    reading = GroupVerdict("reading", "reading", prospect=Prospect.CONSUMERS)
    unmoved, patience = [reading, moving, stuck], GroupPatience()
    assert patience.overdue(unmoved, 100.0) == []
    assert patience.overdue(unmoved, 103.0) == [stuck]
    assert patience.overdue(unmoved, 120.0) == [moving, stuck]
    assert patience.overdue(unmoved, 9_999.0) == [moving, stuck]


def test_patience_begins_anew_when_a_group_could_move_meanwhile() -> None:
    stuck, patience = GroupVerdict("g", "waiting"), GroupPatience()
    assert patience.overdue([stuck], 0.0) == patience.overdue([], 2.0) == patience.overdue([stuck], 4.0) == []
    assert patience.overdue([stuck], 7.0) == [stuck]


def test_group_that_skips_waits_for_consumers_that_read_on() -> None:
    """After a failover the target's group may be ahead of consumers that read some records again."""
    row = group(ahead=(("A.t", 0, 20, 12, "ahead-on-target"),))
    reading = judged(row, GroupAtSource({("t", 0): 3}, ("app",)))
    assert (reading.state, reading.prospect) == ("skips", Prospect.CONSUMERS)
    assert not judged(row).is_stuck
