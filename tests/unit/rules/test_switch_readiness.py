"""The readiness of a flow to switch: each condition that its clients need on the target."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.switch.switch_readiness import (
    FailingPart,
    SwitchFacts,
    SwitchLimits,
    SwitchPartition,
    count_by_reason,
    find_blockers,
    is_ready,
)
from lockstep_rules.switch.switch_sentences import format_blocker
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.reasons import reported

LIMITS = SwitchLimits(max_lag_ms=10_000, syncs_groups=True)
BOTH_WAYS = replace(LIMITS, both_ways=True)
NOT_SYNCED = replace(LIMITS, syncs_groups=False)
FINE = SwitchPartition("orders", 0, "copying", 0, 0)
GROUP = GroupStatus(group="billing", phase="translated", synced=True, positions=(("A.orders", 0, 5, 5),), exact=1)
SOURCE, CHECKPOINT, HEARTBEAT = (f"connector:Mirror{name}Connector" for name in ("Source", "Checkpoint", "Heartbeat"))


def blockers(facts: SwitchFacts, limits: SwitchLimits = LIMITS) -> list[Blocker]:
    return list(find_blockers(facts, limits))


def reasons(facts: SwitchFacts, limits: SwitchLimits = LIMITS) -> list[tuple[str, str, bool]]:
    """Reason, subject, and whether it blocks."""
    return [(blocker.reason.word, blocker.subject, blocker.blocks) for blocker in find_blockers(facts, limits)]


def of_partition(
    state: str, records: int | None = 0, ms: int | None = 0, failing: Sequence[FailingPart] = ()
) -> SwitchFacts:
    return SwitchFacts(partitions=(FINE, SwitchPartition("orders", 1, state, records, ms)), failing=failing)


def of_group(row: GroupStatus, members: Mapping[str, Sequence[str]] | None = None) -> SwitchFacts:
    return SwitchFacts(partitions=(FINE,), groups=(GROUP, row), members=members or {})


NO_SYNC = (("A.orders", 0, ReasonCode.NO_OFFSET_SYNC.to_reason()),)
CONTESTED = ReasonCode.CONTESTED.to_reason(flow="C->B", offset=9)


def other_group(**fields: Any) -> GroupStatus:
    return replace(GROUP, group="mail", **fields)


@pytest.mark.parametrize(
    ("facts", "limits", "expected"),
    [
        pytest.param(
            SwitchFacts(partitions=(FINE, replace(FINE, partition=1, lag_records=7, lag_ms=10_000)), groups=(GROUP,)),
            LIMITS,
            [],
            id="everything in time",
        ),
        pytest.param(SwitchFacts(), LIMITS, [("nothing-copied", "", True)], id="no partitions"),
        pytest.param(of_group(other_group(exact=0, behind=(("A.orders", 0, 120),))), LIMITS, [], id="group behind"),
        pytest.param(SwitchFacts(partitions=(FINE,)), NOT_SYNCED, [], id="no groups, and none synced"),
        pytest.param(
            SwitchFacts(partitions=(FINE,), groups=(replace(GROUP, synced=False), other_group(synced=False))),
            NOT_SYNCED,
            [("groups-not-synced", "", True)],
            id="groups not synced block together",
        ),
        *(
            pytest.param(SwitchFacts(partitions=(FINE,), resting=((scope, "paused"),)), LIMITS, [], id=scope)
            for scope in ("topic:gone", "partition:gone-0", "partition:gone-with-dashes-0")
        ),
        pytest.param(
            SwitchFacts(partitions=(replace(FINE, topic="a-1"),), resting=(("partition:a-1-0", "paused"),)),
            LIMITS,
            [("paused", "partition:a-1-0", True)],
            id="topic with dashes",
        ),
    ],
)
def test_flow_is_ready_if_nothing_blocks(
    facts: SwitchFacts, limits: SwitchLimits, expected: list[tuple[str, str, bool]]
) -> None:
    assert reasons(facts, limits) == expected
    assert is_ready(blockers(facts, limits)) is not bool(expected)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        pytest.param(of_partition("copying", 3, 10_001), "lag", id="above the limit"),
        pytest.param(of_partition("copying", None, None), "lag-unknown", id="records unknown"),
        pytest.param(of_partition("copying", 3, None), "lag-unknown", id="time unknown"),
        pytest.param(of_partition("unknown", None, None), "lag-unknown", id="state unknown"),
        pytest.param(of_partition("halted", 3, 3), "partition-halted", id="halted"),
        pytest.param(of_partition("halted", None, None), "partition-halted", id="halted, lag unknown"),
        *(
            pytest.param(of_partition(state), "partition-not-copying", id=state)
            for state in ("not begun", "not-begun", "unassigned", "silent", "stalled", "stuck", "paused", "stopped")
        ),
        pytest.param(of_partition("a word of a later release"), "partition-not-copying", id="another word"),
    ],
)
def test_partition_that_is_not_at_its_end_blocks_for_one_reason(facts: SwitchFacts, reason: str) -> None:
    assert reasons(facts) == [(reason, "orders-1", True)]
    assert "orders-1" in format_blocker(blockers(facts)[0])


def test_lag_is_shown_with_records_and_the_limit() -> None:
    (blocker,) = blockers(of_partition("copying", 1234, 42_300))
    assert format_blocker(blocker) == "partition orders-1 is 42.3 s behind (1,234 records), 10 s are permitted"
    assert blockers(of_partition("copying", 1234, 42_300), replace(LIMITS, max_lag_ms=42_300)) == []


@pytest.mark.parametrize(
    ("scope", "wanted", "reason", "blocks"),
    [
        (SOURCE, "stopped", "stopped", True),
        (SOURCE, "paused", "paused", True),
        ("slot:3", "paused", "paused", True),
        ("topic:orders", "paused", "paused", True),
        ("partition:orders-1", "stopped", "stopped", True),
        ("topic:orders", "a word of a later release", "paused", True),
        (CHECKPOINT, "stopped", "stopped", True),
        (HEARTBEAT, "stopped", "stopped", False),
    ],
)
def test_what_an_operator_holds_back_blocks_unless_it_is_heartbeats(
    scope: str, wanted: str, reason: str, blocks: bool
) -> None:
    facts = SwitchFacts(partitions=(FINE,), resting=((scope, wanted),))
    assert reasons(facts) == [(reason, scope, blocks)]
    assert is_ready(blockers(facts)) is not blocks


@pytest.mark.parametrize("state", ["paused", "not begun", "unknown"])
@pytest.mark.parametrize("scope", [SOURCE, "slot:0", "topic:orders", "partition:orders-1"])
def test_partition_at_rest_within_a_scope_is_not_counted_again(scope: str, state: str) -> None:
    facts = replace(of_partition(state, None, None), resting=((scope, "paused"),))
    assert reasons(facts) == [("paused", scope, True)]


@pytest.mark.parametrize(
    ("state", "scope", "reason"),
    [
        ("paused", CHECKPOINT, "partition-not-copying"),
        ("paused", "partition:orders-0", "partition-not-copying"),
        ("halted", "topic:orders", "partition-halted"),
    ],
)
def test_partition_outside_the_scope_or_halted_is_named_too(state: str, scope: str, reason: str) -> None:
    facts = replace(of_partition(state), resting=((scope, "paused"),))
    assert reasons(facts) == [("paused", scope, True), (reason, "orders-1", True)]


@pytest.mark.parametrize(
    ("part", "reason", "blocks"),
    [
        (FailingPart("source", "A", reported("refused")), "source-unreachable", True),
        (FailingPart("target", "B", reported("refused")), "target-unreachable", True),
        (FailingPart("service", "checkpoint", reported("no replica of it runs")), "service-failing", True),
        (FailingPart("service", "acl-sync", reported("not permitted")), "service-failing", True),
        (FailingPart("service", "heartbeat", reported("not permitted")), "service-failing", False),
        (FailingPart("topic", "mail", reported("not permitted")), "topic-failed", True),
    ],
)
def test_part_that_fails_blocks_unless_it_is_heartbeats(part: FailingPart, reason: str, blocks: bool) -> None:
    facts = SwitchFacts(partitions=(FINE,), failing=(part,))
    assert reasons(facts) == [(reason, part.name, blocks)]
    text = format_blocker(blockers(facts)[0])
    assert part.name in text
    assert format_sentence(part.cause) in text


@pytest.mark.parametrize("side", ["source", "target"])
def test_cluster_that_is_away_is_named_once_and_not_each_partition(side: str) -> None:
    away = FailingPart("source" if side == "source" else "target", "X", reported("no answer"))
    facts = of_partition("unknown", None, None, failing=(away,))
    assert reasons(facts) == [(f"{side}-unreachable", "X", True)]
    assert reasons(SwitchFacts(failing=(away,))) == [(f"{side}-unreachable", "X", True)]
    halted = of_partition("halted", None, None, failing=(away,))
    assert [reason for reason, *_ in reasons(halted)] == [f"{side}-unreachable", "partition-halted"]


@pytest.mark.parametrize(
    ("state", "lag_ms", "reason"),
    [("copying", 99_000, "lag"), ("copying", None, "lag-unknown"), ("silent", 0, "partition-not-copying")],
)
def test_partition_of_a_failing_topic_that_is_copied_is_named(state: str, lag_ms: int | None, reason: str) -> None:
    """Only its configs fail, or another partition."""
    facts = of_partition(
        state, lag_ms, lag_ms, failing=(FailingPart("topic", "orders", reported("its configs: no rights")),)
    )
    assert [word for word, *_ in reasons(facts)] == ["topic-failed", reason]


def test_partitions_of_a_failed_topic_are_not_counted_again() -> None:
    facts = of_partition("failed", failing=(FailingPart("topic", "orders", reported("no rights")),))
    assert reasons(facts) == [("topic-failed", "orders", True)]


@pytest.mark.parametrize(
    ("row", "reason", "text"),
    [
        (
            other_group(waiting=(("A.orders", 0, "no offset sync yet"),), causes=NO_SYNC, more_waiting=2),
            "group-waiting",
            "group mail waits in 3 partitions: no offset sync yet",
        ),
        (
            other_group(phase="waiting", positions=(), cause=ReasonCode.NOTHING_COPIED.to_reason()),
            "group-waiting",
            "group mail waits: nothing is copied yet",
        ),
        (other_group(synced=False), "group-waiting", "group mail waits: its offsets are not written to the target yet"),
        (
            other_group(synced=False, held_reason="A.orders-0: a text", held_cause=CONTESTED),
            "group-contested",
            "group mail cannot move: " + format_sentence(CONTESTED),
        ),
        (other_group(phase="failing", reason="denied"), "group-failing", "group mail fails: denied"),
        (other_group(held="refused", held_reason="no READ"), "group-refused", "group mail is refused: no READ"),
        (
            other_group(ahead=(("A.orders", 0, 9, 5, "ahead-on-target"),)),
            "group-skips",
            "group mail would skip records: A.orders-0 is ahead on target, at 9 instead of 5",
        ),
        (
            other_group(ahead=(("A.orders", 0, 9, 5, "rewound-on-source"),)),
            "group-skips",
            "group mail would skip records: A.orders-0 is rewound on source, at 9 instead of 5",
        ),
        (other_group(more_ahead=60), "group-skips", "group mail would skip records in 60 partitions"),
        (other_group(held="in-use"), "group-in-use", "group mail has members on the target"),
    ],
)
def test_group_without_a_sure_place_on_the_target_blocks(row: GroupStatus, reason: str, text: str) -> None:
    assert reasons(of_group(row)) == [(reason, "mail", True)]
    assert [format_blocker(blocker) for blocker in blockers(of_group(row))] == [text]


def test_group_that_is_gone_from_the_source_does_not_block() -> None:
    gone = other_group(phase="waiting", cause=ReasonCode.GROUP_GONE.to_reason(), held="in-use", synced=False)
    assert blockers(of_group(gone, members={"mail": ["m at h"]})) == []
    (blocker,) = blockers(of_group(gone), NOT_SYNCED)
    text = "the offsets of 1 group are not written to the target: sync.group.offsets.enabled is not in effect"
    assert (blocker.reason, format_blocker(blocker)) == (SwitchReason.GROUPS_NOT_SYNCED, text)


def test_members_on_the_target_are_named_by_client_id() -> None:
    few = {"mail": ["app-1 at 10.0.0.1", "app-2 at 10.0.0.2"]}
    (blocker,) = blockers(of_group(other_group(held="in-use"), few))
    assert format_blocker(blocker) == "group mail has members on the target: app-1 at 10.0.0.1, app-2 at 10.0.0.2"
    many = {"mail": [f"app-{n}" for n in range(5)], "of another flow": ["x"]}
    (blocker,) = blockers(of_group(other_group(), many))
    assert format_blocker(blocker) == "group mail has members on the target: app-0, app-1, app-2 and 2 more"


def test_group_in_use_on_both_sides_is_a_note_where_flows_lead_both_ways() -> None:
    row = other_group(held="in-use", waiting=(("A.orders", 0, "no offset sync yet"),), causes=NO_SYNC)
    assert reasons(of_group(row)) == [("group-waiting", "mail", True), ("group-in-use", "mail", True)]
    assert reasons(of_group(row), BOTH_WAYS) == [("group-in-use", "mail", False)]
    assert is_ready(blockers(of_group(row), BOTH_WAYS))
    failing = replace(row, phase="failing", reason="denied")
    assert reasons(of_group(failing), BOTH_WAYS) == [("group-failing", "mail", True), ("group-in-use", "mail", False)]


def test_causes_come_before_effects_and_notes_last() -> None:
    facts = SwitchFacts(
        partitions=(replace(FINE, lag_records=9, lag_ms=90_000), replace(FINE, partition=1, state="halted")),
        groups=(other_group(waiting=(("A.orders", 0, "why"),), causes=NO_SYNC),),
        resting=((HEARTBEAT, "stopped"), ("topic:orders", "paused")),
        failing=(FailingPart("service", "topic-sync", reported("no replica of it runs")),),
    )
    assert reasons(facts) == [
        ("paused", "topic:orders", True),
        ("service-failing", "topic-sync", True),
        ("partition-halted", "orders-1", True),
        ("lag", "orders-0", True),
        ("group-waiting", "mail", True),
        ("stopped", HEARTBEAT, False),
    ]


def test_count_by_reason_has_every_reason_and_no_notes() -> None:
    facts = SwitchFacts(
        partitions=(replace(FINE, state="halted"), replace(FINE, partition=1, state="halted")),
        resting=((HEARTBEAT, "paused"),),
    )
    counts = count_by_reason(blockers(facts))
    assert list(counts) == list(SwitchReason)
    assert {reason.word: count for reason, count in counts.items() if count} == {"partition-halted": 2}


def test_every_reason_has_a_word_of_its_own_a_meaning_and_a_remedy() -> None:
    words = [reason.word for reason in SwitchReason]
    assert len(set(words)) == len(words) == 22
    assert all(reason.meaning and reason.remedy for reason in SwitchReason)


partitions = st.lists(
    st.builds(
        SwitchPartition,
        st.sampled_from(["orders", "mail"]),
        st.integers(0, 3),
        st.sampled_from(["copying", "halted", "paused", "unknown", "silent", "new word"]),
        st.none() | st.integers(0, 100),
        st.none() | st.integers(0, 20_000),
    ),
    max_size=6,
)
scopes = st.lists(
    st.tuples(st.sampled_from([SOURCE, "slot:1", "topic:orders", "partition:mail-2"]), st.just("paused")), max_size=2
)
parts = st.lists(
    st.builds(
        FailingPart,
        st.sampled_from(["source", "target", "service", "topic"]),
        st.sampled_from(["mail", "A"]),
        st.just(reported("")),
    ),
    max_size=2,
)


@given(partitions, scopes, parts)
def test_flow_with_a_partition_not_at_its_end_is_never_ready(
    some: list[SwitchPartition], resting: list[tuple[str, str]], failing: list[FailingPart]
) -> None:
    every_blocker = find_blockers(SwitchFacts(partitions=some, resting=resting, failing=failing), LIMITS)
    at_their_ends = all(
        partition.state == "copying"
        and partition.lag_records is not None
        and partition.lag_ms is not None
        and partition.lag_ms <= 10_000
        for partition in some
    )
    if is_ready(every_blocker):
        assert some
        assert at_their_ends
        assert not failing
    elif some and at_their_ends and not failing:
        assert resting


def test_every_reason_has_a_sentence_with_its_cause_and_no_detail() -> None:
    """A blocker of a cause that this release does not know is shown too."""
    for reason in SwitchReason:
        sentence = format_blocker(Blocker(reason, "s", cause=Reason("a-code")))
        assert sentence.endswith("a-code, a reason that this release does not know") or reason.word == "group-skips"
        assert format_blocker(Blocker(reason, "s"))


@pytest.mark.parametrize(("records", "lag_ms"), [(0, 0), (5, 1_000), (5, 9_000_000)])
def test_delayed_partition_is_not_ready_however_far_it_is(records: int, lag_ms: int) -> None:
    delayed = SwitchPartition("orders", 1, "copying", records, lag_ms, 1_800_000)
    (blocker,) = blockers(SwitchFacts(partitions=(FINE, delayed)))
    assert (blocker.reason, blocker.subject, blocker.blocks) == (SwitchReason.DELAYED, "orders-1", True)
    sentence = f"partition orders-1 is copied 1800 s late on purpose: {records} records are not on the target"
    assert format_blocker(blocker) == sentence
