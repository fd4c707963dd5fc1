"""Steps of a switch: their order, their states, their undoing by an abort, and the pause between two switches."""

import json
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_ops.switch.switch_steps import (
    ANTI_FLAPPING_MS,
    DONE,
    FAILED,
    HOOKS,
    LEFT,
    MEANINGS,
    REDIRECTED,
    RUNNING,
    UNDONE,
    WAITING,
    Step,
    StepState,
    Verb,
    began_at,
    has_begun,
    lasting_effects,
    next_step,
    planned_steps,
    step_states,
    steps_to_undo,
    too_soon,
    with_step,
)
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch, SwitchGroup, SwitchTopic, decode_row

NOW = 1_700_000_000_000
STATES = (WAITING, RUNNING, DONE, FAILED, UNDONE)

HOOK_SETS = [set(chosen) for size in range(len(HOOKS) + 1) for chosen in combinations(HOOKS, size)]
PLANS = [
    planned_steps(verb, hooks=hooks, has_opposite=has_opposite, drill=drill)
    for verb, hooks, has_opposite, drill in product(Verb, HOOK_SETS, (False, True), (False, True))
]
plans = st.sampled_from(PLANS)


def switch(*steps: tuple[Step, str] | Step, **fields: Any) -> Switch:
    """A switchover with these steps; those without a state wait."""
    pairs = [item if isinstance(item, tuple) else (item, WAITING) for item in steps]
    states = tuple((str(step), state, 0, 0, "") for step, state in pairs)
    return replace(Switch(id="1", verb="switchover", steps=states), **fields)


@st.composite
def rows(draw: st.DrawFn) -> Switch:
    """Any plan, with its steps in any state."""
    steps = [(step, draw(st.sampled_from(STATES))) for step in draw(plans)]
    was = draw(st.sampled_from(("", "running", "paused", "stopped")))
    return switch(
        *steps,
        opposite_was=was,
        opposite_paused=draw(st.sampled_from(((), ("t",)))),
        diverged=draw(st.sampled_from(("", "copy", "leave"))),
    )


# -- which steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "has_opposite", "steps"),
    [
        (Verb.SWITCHOVER, False, "check before fence ends drain groups stop redirect after"),
        (Verb.SWITCHOVER, True, "check before fence ends drain groups stop reverse redirect after"),
        (Verb.FAILOVER, False, "check before fence settle groups stop redirect after"),
        (Verb.FAILOVER, True, "check before fence settle groups stop redirect after"),
        (Verb.FAILBACK, True, "check diverged return before fence ends drain groups stop reverse redirect after"),
    ],
)
def test_planned_steps_with_every_hook_are_in_order(verb: Verb, has_opposite: bool, steps: str) -> None:
    assert planned_steps(verb, hooks=HOOKS, has_opposite=has_opposite, drill=False) == tuple(steps.split())


@pytest.mark.parametrize(
    ("verb", "steps"),
    [
        (Verb.SWITCHOVER, "check ends drain groups stop restore"),
        (Verb.FAILOVER, "check settle groups stop restore"),
        (Verb.FAILBACK, "check ends drain groups stop restore"),
    ],
)
def test_planned_steps_of_a_drill_have_no_hook(verb: Verb, steps: str) -> None:
    assert planned_steps(verb, hooks=HOOKS, has_opposite=True, drill=True) == tuple(steps.split())


def test_planned_steps_of_any_kind_keep_their_order() -> None:
    order = list(Step)
    for plan in PLANS:
        assert plan[0] is Step.CHECK
        assert [order.index(step) for step in plan] == sorted({order.index(step) for step in plan})
        assert plan.index(Step.GROUPS) < plan.index(Step.STOP)
        assert all(plan.index(Step.STOP) < plan.index(step) for step in REDIRECTED if step in plan)
        assert (Step.SETTLE in plan) != (Step.DRAIN in plan)


def test_planned_steps_with_some_hooks_have_only_those() -> None:
    for verb, hooks, has_opposite in product(Verb, HOOK_SETS, (False, True)):
        plan = planned_steps(verb, hooks=hooks, has_opposite=has_opposite, drill=False)
        assert {step for step in plan if step in HOOKS} == hooks


def test_step_meanings_of_every_step_are_known() -> None:
    assert set(MEANINGS) == set(Step)
    assert all(MEANINGS.values())


# -- how far it is ----------------------------------------------------------------------------------------------------


def test_step_states_of_a_row_are_its_steps() -> None:
    row = Switch(id="1", verb="failover", steps=(("check", DONE, 1, 2, "ready"), ("settle", WAITING, 0, 0, "")))
    assert step_states(row) == (StepState(Step.CHECK, DONE, 1, 2, "ready"), StepState(Step.SETTLE))


def test_step_states_with_a_step_unknown_here_raise() -> None:
    with pytest.raises(ValueError, match="teleport"):
        step_states(Switch(id="1", verb="switchover", steps=(("teleport", DONE, 1, 2, ""),)))


@pytest.mark.parametrize("state", [WAITING, RUNNING, FAILED, UNDONE])
def test_next_step_behind_done_ones_is_the_first_other(state: str) -> None:
    assert next_step(switch((Step.CHECK, DONE), (Step.ENDS, state), (Step.DRAIN, DONE))) is Step.ENDS


def test_next_step_of_a_row_all_done_is_none() -> None:
    assert next_step(switch((Step.CHECK, DONE), (Step.STOP, DONE))) is None
    assert next_step(switch()) is None


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        pytest.param([(RUNNING, 5)], StepState(Step.ENDS, RUNNING, 5, 0, ""), id="begins"),
        pytest.param([(RUNNING, 5), (FAILED, 9, "no")], StepState(Step.ENDS, FAILED, 5, 9, "no"), id="ends"),
        pytest.param([(DONE, 9)], StepState(Step.ENDS, DONE, 9, 9, ""), id="ends unbegun"),
        pytest.param(
            [(RUNNING, 5), (FAILED, 9, "no"), (RUNNING, 20)], StepState(Step.ENDS, RUNNING, 20, 0, ""), id="again"
        ),
    ],
)
def test_with_step_has_its_beginning_and_its_end(changes: list[Any], state: StepState) -> None:
    row = switch((Step.CHECK, DONE), Step.ENDS)
    for change in changes:
        row = with_step(row, Step.ENDS, *change)
    assert step_states(row)[1] == state


@settings(max_examples=40)
@given(rows(), st.sampled_from(Step), st.sampled_from(STATES), st.integers(1, NOW))
def test_with_step_of_any_row_changes_that_step_only(row: Switch, step: Step, state: str, at_ms: int) -> None:
    after = with_step(row, step, state, at_ms, "text")
    assert replace(after, steps=row.steps) == row
    for before, written in zip(step_states(row), step_states(after), strict=True):
        assert written.step is before.step
        assert written == before if before.step is not step else (written.state, written.text) == (state, "text")


@settings(max_examples=50)
@given(plans, st.data())
def test_with_step_after_kills_anywhere_ends_all_done(plan: tuple[Step, ...], data: st.DataObject) -> None:
    """A command that is killed before, in or after any step is gone on with from its last row."""
    row, carried_out = switch(*plan), list[Step]()
    for at_ms in range(1, 60):
        step = next_step(row)
        if step is None:
            break
        row = with_step(row, step, RUNNING, at_ms)
        if data.draw(st.booleans() if at_ms < 20 else st.just(False)):
            continue  # killed within the step
        carried_out.append(step)
        row = with_step(row, step, data.draw(st.sampled_from((DONE, FAILED) if at_ms < 20 else (DONE,))), at_ms)
    assert next_step(row) is None
    assert list(dict.fromkeys(carried_out)) == list(plan)
    assert all(state.state == DONE and state.ended_ms >= state.began_ms > 0 for state in step_states(row))


@settings(max_examples=50)
@given(rows())
def test_switch_row_of_any_kind_is_read_back_as_written(row: Switch) -> None:
    key, value = row.encode()
    assert decode_row(key, value) == row


# -- taking it back ---------------------------------------------------------------------------------------------------


def test_has_begun_of_waiting_steps_is_false() -> None:
    row = switch((Step.CHECK, DONE), Step.STOP, (Step.REVERSE, FAILED))
    assert not has_begun(row, Step.STOP, Step.AFTER)
    assert has_begun(row, Step.STOP, Step.REVERSE)
    assert not has_begun(row)


@pytest.mark.parametrize(
    ("steps", "was", "undone"),
    [
        ([Step.CHECK, Step.STOP], "", []),
        ([(Step.DRAIN, DONE), (Step.GROUPS, FAILED), Step.STOP], "stopped", []),
        ([(Step.STOP, RUNNING), Step.REVERSE], "stopped", [Step.STOP]),
        ([(Step.STOP, FAILED), Step.REVERSE], "stopped", [Step.STOP]),
        ([(Step.STOP, DONE), (Step.REVERSE, RUNNING)], "stopped", [Step.REVERSE, Step.STOP]),
        ([(Step.STOP, DONE), (Step.REVERSE, DONE)], "paused", [Step.REVERSE, Step.STOP]),
        ([(Step.STOP, DONE), (Step.REVERSE, DONE)], "running", [Step.STOP]),
        ([(Step.SETTLE, FAILED), Step.GROUPS, Step.STOP], "", [Step.SETTLE]),
        ([(Step.SETTLE, DONE), (Step.GROUPS, DONE), (Step.STOP, RUNNING)], "", [Step.STOP]),
        ([(Step.STOP, DONE), (Step.RESTORE, FAILED)], "", [Step.STOP]),
    ],
)
def test_steps_to_undo_are_those_begun_last_first(steps: list[Any], was: str, undone: list[Step]) -> None:
    assert list(steps_to_undo(switch(*steps, opposite_was=was))) == undone


@pytest.mark.parametrize(
    ("state", "fields", "undone"),
    [
        (RUNNING, {"opposite_was": "stopped"}, True),
        (FAILED, {"opposite_was": "running", "topics": ("t",), "opposite_paused": ("t",)}, True),
        (DONE, {"opposite_was": "stopped"}, False),
        (RUNNING, {"opposite_was": "stopped", "diverged": "leave"}, False),
        (RUNNING, {"opposite_was": "running"}, False),
    ],
)
def test_copy_of_diverged_records_that_did_not_end_is_undone(state: str, fields: dict[str, Any], undone: bool) -> None:
    row = switch((Step.DIVERGED, state), **{"diverged": "copy", **fields})
    assert steps_to_undo(row) == ((Step.DIVERGED,) if undone else ())


@settings(max_examples=50)
@given(rows())
def test_steps_to_undo_of_any_row_have_begun(row: Switch) -> None:
    undone = steps_to_undo(row)
    order = [state.step for state in step_states(row)]
    assert [order.index(step) for step in undone] == sorted((order.index(step) for step in undone), reverse=True)
    assert all(has_begun(row, step) for step in undone)
    rested = row.opposite_was != "running" or bool(row.opposite_paused)
    assert (Step.REVERSE in undone) == (has_begun(row, Step.REVERSE) and rested)
    stopped = has_begun(row, Step.STOP, Step.SETTLE)
    assert sum(step in (Step.STOP, Step.SETTLE) for step in undone) == stopped


@settings(max_examples=50)
@given(rows())
def test_steps_to_undo_after_a_killed_abort_are_the_same(row: Switch) -> None:
    todo = steps_to_undo(row)
    if todo:
        assert steps_to_undo(with_step(row, todo[0], UNDONE, NOW)) == todo


@pytest.mark.parametrize(
    ("steps", "diverged", "count"),
    [
        ([(Step.CHECK, DONE), Step.RETURN, Step.GROUPS], "leave", 0),
        ([(Step.DIVERGED, DONE)], "copy", 1),
        ([(Step.DIVERGED, DONE)], "leave", 1),
        ([(Step.DIVERGED, FAILED), (Step.RETURN, RUNNING)], "leave", 2),
        ([(Step.DIVERGED, DONE), (Step.RETURN, DONE), (Step.GROUPS, RUNNING)], "leave", 3),
        ([(Step.GROUPS, DONE)], "", 1),
        ([(Step.STOP, UNDONE), (Step.REVERSE, LEFT)], "", 1),
        ([(Step.STOP, UNDONE), (Step.REVERSE, FAILED)], "", 0),
    ],
)
def test_lasting_effects_of_begun_steps_are_sentences(steps: list[Any], diverged: str, count: int) -> None:
    assert len(list(lasting_effects(switch(*steps, diverged=diverged)))) == count


# -- one after the other ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ago_ms", [0, 1, ANTI_FLAPPING_MS - 1])
def test_too_soon_within_ten_minutes_names_the_time(ago_ms: int) -> None:
    reason = too_soon([switch(phase="done", ended_ms=NOW - ago_ms)], NOW)
    assert reason == RefusalCode.SWITCH_TOO_SOON.to_reason(ago_s=ago_ms // 1000)


@pytest.mark.parametrize(
    "fields",
    [
        {"ended_ms": NOW - ANTI_FLAPPING_MS},
        {"ended_ms": NOW, "phase": "aborted"},
        {"ended_ms": NOW, "phase": "running"},
        {"ended_ms": NOW, "drill": True},
        {"ended_ms": 0},
    ],
)
def test_too_soon_without_a_recent_switch_is_nothing(fields: dict[str, Any]) -> None:
    assert too_soon([switch(**{"phase": "done", **fields})], NOW) == NO_REASON
    assert too_soon([], NOW) == NO_REASON


def test_too_soon_of_two_flows_counts_the_last() -> None:
    old = switch(phase="done", ended_ms=NOW - 2 * ANTI_FLAPPING_MS)
    new = switch(phase="done", ended_ms=NOW - 3_000, verb="failback")
    assert too_soon([old, new], NOW) == too_soon([new, old], NOW)
    assert "a switch ended 3 s ago" in format_sentence(too_soon([new, old], NOW))


def test_too_soon_of_an_end_in_the_future_is_now() -> None:
    assert "ended 0 s ago" in format_sentence(too_soon([switch(phase="done", ended_ms=NOW + 60_000)], NOW))


# -- rows -------------------------------------------------------------------------------------------------------------


def test_switch_rows_of_one_flow_have_one_key() -> None:
    assert Switch(id="1", verb="switchover").key() == Switch(id="2", verb="failback").key() == "switch/current"


@pytest.mark.parametrize(
    "row",
    [
        SwitchTopic(topic="t", target_topic="A.t", switch="1", ends=(5, 0), copied=(4, -1), target_ends=(7, -1)),
        SwitchTopic(topic="t", target_topic="t", switch="1"),
        SwitchGroup(group="g", switch="1", state="behind", read_again=3, positions=(("A.t", 0, 5, 7),)),
        SwitchGroup(group="g/1 ä", switch="1", state="exact"),
    ],
)
def test_switch_row_of_a_subject_is_read_back_as_written(row: SwitchTopic | SwitchGroup) -> None:
    key, value = row.encode()
    assert decode_row(key, value) == row
    assert json.loads(value or b"{}")


def test_switch_that_began_with_its_command_has_all_time_in_a_step() -> None:
    row = began_at(replace(switch((Step.CHECK, DONE), Step.STOP), began_ms=5_000), 2_000)
    assert row.began_ms == step_states(row)[0].began_ms == 2_000
    assert step_states(row)[1:] == step_states(switch((Step.CHECK, DONE), Step.STOP))[1:]
