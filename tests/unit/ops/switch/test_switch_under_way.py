"""The switch that `--continue`, `--abort` and `--status` mean: never an earlier one."""

from dataclasses import replace

import pytest

from lockstep_ops.switch.switch_options import Allowance, SwitchOptions, allows
from lockstep_ops.switch.switch_steps import Verb
from lockstep_ops.switch.switch_under_way import (
    SwitchRefused,
    has_ended,
    switch_to_abort,
    switch_to_continue,
    switch_to_show,
)
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Switch

FLOW = Flow("A", "B")
SWITCHOVER = SwitchOptions(verb=Verb.SWITCHOVER)
RUNNING = Switch(id="x", verb="switchover", began_ms=1_000)
DONE = replace(RUNNING, phase="done", ended_ms=2_000)
EARLIER = replace(DONE, id="w", verb="failover")


def named(switch: str, verb: Verb = Verb.SWITCHOVER) -> SwitchOptions:
    return SwitchOptions(verb=verb, id=switch)


@pytest.mark.parametrize("options", [SWITCHOVER, named("x")])
def test_continued_row_is_that_of_the_verb_and_id(options: SwitchOptions) -> None:
    assert switch_to_continue(RUNNING, FLOW, options).id == "x"
    assert switch_to_abort(RUNNING, FLOW, options).id == "x"


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        (None, SWITCHOVER, "nothing to continue: no switch has begun"),
        (DONE, SWITCHOVER, "nothing to continue: the last switch is the switchover x, done since 1970-01-01T00:00:02"),
        (EARLIER, SWITCHOVER, "no switchover to continue: the last switch is the failover w, done since"),
        (EARLIER, named("x"), "nothing to continue: x has not begun. The last switch is the failover w, done since"),
        (replace(DONE, id="w"), named("x"), "x has not begun"),
        (replace(RUNNING, id="y"), named("x"), "x has not begun. The last switch is the switchover y, under way"),
        (replace(RUNNING, verb="failover"), SWITCHOVER, "Say lockstep failover --continue"),
        (replace(RUNNING, phase="aborting"), SWITCHOVER, "is being taken back"),
        (replace(DONE, phase="aborted"), SWITCHOVER, "aborted since"),
    ],
)
def test_continued_refuses_every_other_switch(row: Switch | None, options: SwitchOptions, words: str) -> None:
    with pytest.raises(SwitchRefused, match=words):
        switch_to_continue(row, FLOW, options)


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        (None, SWITCHOVER, "nothing to abort"),
        (EARLIER, named("x"), "x has not begun"),
        (replace(RUNNING, verb="failover"), SWITCHOVER, "Say lockstep failover --abort"),
        (DONE, SWITCHOVER, "lockstep failback moves the applications again"),
        (replace(DONE, verb="failback"), named("x", Verb.FAILBACK), "lockstep switchover moves the applications again"),
    ],
)
def test_aborted_refuses_every_other_switch(row: Switch | None, options: SwitchOptions, words: str) -> None:
    with pytest.raises(SwitchRefused, match=words):
        switch_to_abort(row, FLOW, options)


def test_options_beside_continue_and_abort_are_added_to_those_of_the_begin() -> None:
    begun = replace(RUNNING, allowed=(str(Allowance.SOON),))
    options = replace(SWITCHOVER, allows=frozenset({Allowance.SOURCE_GONE}))
    for row in (switch_to_continue(begun, FLOW, options), switch_to_abort(begun, FLOW, options)):
        assert [allowance for allowance in Allowance if allows(row, allowance)] == [
            Allowance.SOON,
            Allowance.SOURCE_GONE,
        ]


def test_switch_has_ended_only_if_its_own_id_is_done() -> None:
    assert has_ended(DONE, named("x"))
    assert not has_ended(DONE, SWITCHOVER), "which one is meant is not known"
    assert not has_ended(EARLIER, named("x"))
    assert not has_ended(EARLIER, named("w")), "it is of another verb"
    assert not has_ended(RUNNING, named("x"))
    assert not has_ended(None, named("x"))


def test_status_of_another_id_is_refused() -> None:
    assert switch_to_show(EARLIER, FLOW, SWITCHOVER) is EARLIER
    assert switch_to_show(DONE, FLOW, named("x")) is DONE
    with pytest.raises(SwitchRefused, match="the last switch is not x: the last switch is the failover w"):
        switch_to_show(EARLIER, FLOW, named("x"))
