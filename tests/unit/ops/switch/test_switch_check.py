"""Reasons for which a switch does not begin."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_ops.switch.refusals import format_refusal
from lockstep_ops.switch.switch_check import (
    ASKED_AGAIN,
    GROUP_REASONS,
    LEFT_GROUP_REASONS,
    LEFT_TO_STEPS,
    NEVER_FORCED,
    SOURCE_REASONS,
    TOPIC_REASONS,
    about_topics,
    blocking,
    failover_refusals,
    may_end_soon,
    unknown_topics,
    way_back_blockers,
)
from lockstep_ops.switch.switch_clusters import SourceState
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_positions import PartitionLoss
from lockstep_ops.switch.switch_steps import Verb
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.takeover_rows import rows_of, topic

GONE = ClusterUnreachable("A", "a:9092", "refused")

EVERY = tuple(Blocker(reason, "s") for reason in SwitchReason)
ROWS = rows_of(topic(), topic(source_topic="u", target_topic="A.u"))
LOSSES = [PartitionLoss(("t", 0), 5, 1), PartitionLoss(("t", 1), 2, 1)]


def blocker(reason: SwitchReason, subject: str = "") -> Blocker:
    return Blocker(reason, subject)


def left(verb: Verb, *allows: Allowance) -> set[SwitchReason]:
    return {blocker.reason for blocker in blocking(EVERY, verb, allows=allows, rewind_groups=False)}


def refusals(losses: list[PartitionLoss], allowed: int, **fields: Any) -> list[str]:
    default_fields = {"source": "A", "source_answers": False, "allows": ()}
    return [format_sentence(reason) for reason in failover_refusals(losses, allowed, **{**default_fields, **fields})]


# -- before it begins -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILBACK])
def test_blocking_without_force_is_all_but_what_steps_do(verb: Verb) -> None:
    assert left(verb) == set(SwitchReason) - LEFT_TO_STEPS - ASKED_AGAIN


def test_group_named_as_a_service_blocks_a_failover() -> None:
    service = blocker(SwitchReason.SERVICE_FAILING, "heartbeat")
    group = blocker(SwitchReason.GROUP_SKIPS, "heartbeat")
    assert blocking((service, group), Verb.FAILOVER, allows=(), rewind_groups=False) == (group,)


def test_blocking_of_a_failover_leaves_out_the_source() -> None:
    assert left(Verb.FAILOVER) == set(SwitchReason) - LEFT_TO_STEPS - SOURCE_REASONS
    assert SwitchReason.GROUPS_STALE in left(Verb.FAILOVER), "nobody can read them anew"


@pytest.mark.parametrize("verb", list(Verb))
def test_blocking_with_rewound_groups_lets_them_skip(verb: Verb) -> None:
    (skips,) = (blocker for blocker in EVERY if blocker.reason is SwitchReason.GROUP_SKIPS)
    rewound, ahead = (replace(skips, cause=code.to_reason()) for code in (ReasonCode.REWOUND, ReasonCode.AHEAD))
    assert blocking([rewound, ahead, skips], verb, allows=(), rewind_groups=True) == (ahead, skips)


def test_blocking_with_consent_keeps_what_makes_it_impossible() -> None:
    needs_both = {SwitchReason.TARGET_UNREACHABLE, SwitchReason.NOTHING_COPIED, SwitchReason.SOURCE_UNREACHABLE}
    allowances = (Allowance.NOT_READY, Allowance.LEFT_GROUPS)
    assert left(Verb.SWITCHOVER, *allowances) == left(Verb.FAILBACK, *allowances) == needs_both
    assert left(Verb.FAILOVER, *allowances, Allowance.STALE_GROUPS) == NEVER_FORCED


def test_groups_read_too_long_ago_have_an_option_of_their_own() -> None:
    stale = {SwitchReason.GROUPS_STALE}
    assert left(Verb.FAILOVER, Allowance.NOT_READY) == NEVER_FORCED | LEFT_GROUP_REASONS | stale
    assert left(Verb.FAILOVER) - left(Verb.FAILOVER, Allowance.STALE_GROUPS) == stale
    assert format_refusal(blocker(SwitchReason.GROUPS_STALE)).endswith(
        " (groups-stale). Say --allow-stale-groups to go on all the same"
    )
    assert format_refusal(blocker(SwitchReason.LAG_UNKNOWN, "t-1")) == (
        "how far partition t-1 is behind is not known (lag-unknown)"
    )


@pytest.mark.parametrize("force", [False, True])
def test_blocking_never_has_notes(force: bool) -> None:
    notes = [Blocker(reason, "s", blocks=False) for reason in SwitchReason]
    allows = tuple(Allowance) if force else ()
    assert blocking(notes, Verb.SWITCHOVER, allows=allows, rewind_groups=False) == ()
    assert way_back_blockers(notes, allows=allows) == ()


def test_blocking_keeps_the_order_of_blockers() -> None:
    two = [blocker(SwitchReason.LAG, "t-1"), blocker(SwitchReason.STOPPED, "connector:x")]
    assert blocking(two, Verb.SWITCHOVER, allows=(), rewind_groups=False) == tuple(two)


def test_way_back_blockers_let_a_stopped_flow_begin() -> None:
    kept = {blocker.reason for blocker in way_back_blockers(EVERY, allows=())}
    assert not kept & {SwitchReason.STOPPED, SwitchReason.PAUSED, SwitchReason.LAG, SwitchReason.LAG_UNKNOWN}
    assert kept >= {SwitchReason.TARGET_UNREACHABLE, SwitchReason.SOURCE_UNREACHABLE, SwitchReason.SERVICE_FAILING}
    assert kept >= {SwitchReason.PARTITION_HALTED, SwitchReason.GROUPS_NOT_SYNCED}


def test_way_back_blockers_have_a_contested_group_unless_it_is_left() -> None:
    kept = set(way_back_blockers(EVERY, allows=[Allowance.LEFT_GROUPS]))
    assert {blocker.reason for blocker in set(way_back_blockers(EVERY, allows=())) - kept} == {
        SwitchReason.GROUP_CONTESTED
    }


def test_way_back_blockers_with_force_are_clusters_and_services() -> None:
    kept = {blocker.reason for blocker in way_back_blockers(EVERY, allows=tuple(Allowance))}
    assert kept == {SwitchReason.TARGET_UNREACHABLE, SwitchReason.SOURCE_UNREACHABLE, SwitchReason.SERVICE_FAILING}


@pytest.mark.parametrize(
    ("codes", "passes"),
    [
        ([], False),
        (["no-replica"], True),
        (["no-replica", "replicas-unknown"], True),
        (["no-replica", "restarts-spent"], False),
        (["no-replica", ""], False),
        (["a-code-of-a-newer-release"], False),
        (["groups-not-read"], False),
    ],
)
def test_services_without_a_replica_may_pass_others_do_not(codes: list[str], passes: bool) -> None:
    blockers = [Blocker(SwitchReason.SERVICE_FAILING, "s", cause=Reason(code)) for code in codes]
    assert may_end_soon(blockers) is passes
    assert not may_end_soon([*blockers, Blocker(SwitchReason.LAG, "t-1", cause=Reason("no-replica"))])


def test_blocker_passes_by_the_code_of_its_cause_alone() -> None:
    said = ReasonCode.REPORTED.to_reason(text="no replica of it runs")
    assert not may_end_soon([Blocker(SwitchReason.SERVICE_FAILING, "checkpoint", cause=said)])
    assert may_end_soon([Blocker(SwitchReason.GROUPS_UNKNOWN, cause=Reason("groups-not-read"))])


def test_reasons_of_topics_and_of_groups_differ() -> None:
    assert not TOPIC_REASONS & GROUP_REASONS
    assert LEFT_TO_STEPS <= GROUP_REASONS
    assert not NEVER_FORCED & (TOPIC_REASONS | GROUP_REASONS)


# -- about which topics -----------------------------------------------------------------------------------------------


def test_about_topics_without_topics_is_everything() -> None:
    assert about_topics(EVERY, ROWS, ()) == EVERY


@pytest.mark.parametrize("reason", [reason for reason in SwitchReason if reason in TOPIC_REASONS])
@pytest.mark.parametrize(
    ("subject", "kept"),
    [
        ("t", True),
        ("t-12", True),
        ("topic:t", True),
        ("partition:t-0", True),
        ("u", False),
        ("u-0", False),
        ("topic:u", False),
        ("partition:u-3", False),
        ("t-x-0", False),
        ("connector:MirrorSourceConnector", True),
        ("slot:3", True),
    ],
)
def test_about_topics_keeps_a_blocker_of_theirs(reason: SwitchReason, subject: str, kept: bool) -> None:
    reported = blocker(reason, subject)
    assert about_topics([reported], ROWS, ["t"]) == ((reported,) if kept else ())


@pytest.mark.parametrize("reason", [reason for reason in SwitchReason if reason in GROUP_REASONS])
def test_about_topics_keeps_groups_that_read_them(reason: SwitchReason) -> None:
    rows = rows_of(
        *ROWS.values(),
        GroupStatus(group="reads", phase="translated", positions=(("A.u", 0, 1, 1), ("A.t", 0, 1, 1))),
        GroupStatus(group="waits", phase="waiting", waiting=(("A.t", 0, "why"),)),
        GroupStatus(group="other", phase="translated", positions=(("A.u", 0, 1, 1),)),
    )
    blockers = [blocker(reason, name) for name in ("reads", "waits", "other", "unknown")]
    assert [kept.subject for kept in about_topics(blockers, rows, ["t"])] == ["reads", "waits", "unknown"]


def test_about_topics_keeps_what_is_about_no_topic() -> None:
    blockers = [blocker(reason, "x") for reason in SwitchReason if reason not in TOPIC_REASONS | GROUP_REASONS]
    assert about_topics(blockers, ROWS, ["t"]) == tuple(blockers)


@pytest.mark.parametrize(
    ("topics", "unknown"),
    [((), []), (("t", "u"), []), (("x",), ["x"]), (("t", "x", "y"), ["x", "y"]), (("A.t",), ["A.t"])],
)
def test_unknown_topics_of_a_flow_are_named(topics: tuple[str, ...], unknown: list[str]) -> None:
    assert unknown_topics(ROWS, topics) == unknown


@pytest.mark.parametrize("phase", ["failed", "deleted", "excluded", "left-out"])
def test_unknown_topics_have_those_not_mirrored(phase: str) -> None:
    assert unknown_topics(rows_of(topic(phase=phase)), ["t"]) == ["t"]


# -- giving up the source ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "allowed", "fields", "count"),
    [
        ([], -1, {}, 0),
        ([], 0, {}, 0),
        *((LOSSES, allowed, {}, 1) for allowed in (-1, 0, 6)),
        *((LOSSES, allowed, {}, 0) for allowed in (7, 8)),
        ([], -1, {"source_answers": True, "allows": [Allowance.NOT_READY]}, 0),
        (LOSSES, -1, {"source_answers": True}, 2),
        (LOSSES, -1, {"source_answers": True, "allows": Allowance}, 1),
    ],
)
def test_failover_with_loss_is_refused_unless_allowed(
    losses: list[PartitionLoss], allowed: int, fields: dict[str, Any], count: int
) -> None:
    assert len(refusals(losses, allowed, **fields)) == count


def test_failover_that_loses_names_the_option() -> None:
    (said,) = refusals(LOSSES, -1)
    assert said == (
        "7 records were known on A and are not copied: t-0 (5), t-1 (2). None may be lost without --allow-data-loss. "
        "Say --allow-data-loss 7 to lose them"
    )
    assert "6 may be lost. Say --allow-data-loss 7 " in refusals(LOSSES, 6)[0]


def test_failover_that_loses_an_unknown_number_names_partitions() -> None:
    (said,) = refusals([PartitionLoss(("t", number), -1, 0) for number in range(5)], -1)
    assert said.startswith("how many records of t-0, t-1, t-2 and 2 more are lost is not known")
    assert Allowance.UNKNOWN_LOSS.option in said


def test_failover_from_a_source_that_answers_is_refused() -> None:
    (said,) = refusals([], -1, source_answers=True)
    assert said.startswith("A answers: use lockstep switchover")


def test_switch_options_by_default_allow_and_lose_nothing() -> None:
    options = SwitchOptions(verb=Verb.FAILOVER)
    assert (options.allowed_loss, options.allows) == (-1, frozenset())
    assert (options.rewind_groups, options.drill) == (False, False)
    assert (options.topics, options.cutoff_ms, options.diverged) == ((), 0, "")


def test_source_state_names_the_partitions_without_an_answer() -> None:
    assert SourceState().answers
    assert not SourceState(GONE).answers
    state = SourceState(asked=6, silent=(("t", 1), ("u", 0)))
    assert not state.answers
    assert state.note("A").startswith("A does not answer about 2 of 6 partitions (t-1, u-0), so a switchover is not")
    assert SourceState(GONE).note("A") == SourceState(asked=6).note("A") == ""
