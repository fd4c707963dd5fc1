"""A switch that ended, or that sent clients elsewhere, cannot be taken back: the reason has a code."""

import pytest

from lockstep_ops.switch.switch_steps import (
    DONE,
    FAILED,
    REDIRECTED,
    RUNNING,
    UNDONE,
    WAITING,
    Step,
    Verb,
    find_abort_refusal,
)
from lockstep_state.names import Flow
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch

FLOW = Flow("A", "B")


def switch(*steps: tuple[Step, str], verb: Verb = Verb.SWITCHOVER, phase: str = "running") -> Switch:
    states = tuple((str(step), state, 0, 0, "") for step, state in steps)
    return Switch(id="1", verb=str(verb), phase=phase, steps=states)


@pytest.mark.parametrize(
    ("verb", "phase", "code", "then"),
    [
        (Verb.FAILOVER, "done", RefusalCode.SWITCH_IS_DONE, "failback"),
        (Verb.FAILBACK, "done", RefusalCode.SWITCH_IS_DONE, "switchover"),
        (Verb.FAILOVER, "aborted", RefusalCode.SWITCH_IS_ABORTED, None),
    ],
)
def test_abort_of_an_ended_switch_is_refused(verb: Verb, phase: str, code: RefusalCode, then: str | None) -> None:
    refusal = find_abort_refusal(switch((Step.CHECK, DONE), verb=verb, phase=phase), FLOW)
    assert (refusal.code, refusal.detail("flow"), refusal.detail("then")) == (code, "A->B", then)


@pytest.mark.parametrize("step", REDIRECTED)
@pytest.mark.parametrize("state", [RUNNING, FAILED, DONE, UNDONE])
def test_abort_is_refused_once_clients_were_sent(step: Step, state: str) -> None:
    refusal = find_abort_refusal(switch((Step.STOP, DONE), (step, state)), FLOW)
    assert refusal.code == RefusalCode.CLIENTS_REDIRECTED


def test_abort_while_the_redirect_waits_is_accepted() -> None:
    row = switch((Step.STOP, DONE), (Step.REVERSE, FAILED), (Step.REDIRECT, WAITING), (Step.AFTER, WAITING))
    assert not find_abort_refusal(row, FLOW)
