"""The decision for which the source connector is stopped, by the row of its desired state."""

import pytest

from lockstep_runtime.state.desired_state import apply_verb
from lockstep_state.commands.command_vocabulary import PAUSE, RESTART, RESUME, STOP
from lockstep_state.commands.decision_steps import (
    SOURCE,
    SOURCE_KEY,
    TAKEN_UP,
    UnfinishedDecision,
    find_unfinished,
    step_id,
    stop_step,
)
from lockstep_state.rows.state_rows import DesiredState


def after(*commands: tuple[str, str]) -> UnfinishedDecision | None:
    """Return the unfinished decision after commands, each with its verb and its id."""
    row = DesiredState(scope=str(SOURCE), at_ms=9)
    for verb, identity in commands:
        row = apply_verb(row, verb, identity)
    return find_unfinished({SOURCE_KEY: row})


@pytest.mark.parametrize(("before", "verb_back"), [("running", RESUME), ("paused", PAUSE)])
def test_decision_is_found_by_the_row_that_it_has_stopped(before: str, verb_back: str) -> None:
    stop = (STOP, step_id("d", stop_step(before)))
    found = after(stop)
    assert found is not None
    assert found == UnfinishedDecision("d", before, 9)
    assert found.verb_back == verb_back
    assert after(stop, (RESTART, "r")) == found, "a restart starts nothing that is stopped"
    assert after(stop, (verb_back, step_id("d", TAKEN_UP))) is None
    assert after(stop, (STOP, "an operator's")) is None, "an operator wants it to stay stopped"
    assert after(stop, (STOP, step_id("e", stop_step(before)))) == UnfinishedDecision("e", before, 9)


@pytest.mark.parametrize("identity", ["", "d", "d.stop-stopped", "d.stop-", "d.resume", "d.running"])
def test_other_stops_are_no_decisions(identity: str) -> None:
    assert after((STOP, identity)) is None
    assert find_unfinished({}) is None
