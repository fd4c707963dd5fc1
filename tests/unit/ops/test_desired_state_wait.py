"""`--wait`: which parts of a flow are not yet as a command says."""

from dataclasses import replace

import pytest

from lockstep_ops.status.desired_state_wait import DesiredStateWait
from lockstep_state.commands.command_vocabulary import PAUSE, RESTART, RESUME, STOP, Scope
from lockstep_state.rows.state_rows import Row, SlotStatus, Wanted
from tests.support.reports import at_work, progress, topic


def outstanding(verb: str, scope: str, *rows: Row, runs: dict[int, str] | None = None) -> list[str]:
    wait = DesiredStateWait(verb, Scope.parse(scope), runs_before=runs or {})
    wait.update({row.key(): row for row in (topic("t", 2), topic("u"), *rows)})
    return list(wait.outstanding)


COPYING = (progress("t", 0, slot=0), progress("t", 1, slot=1), progress("u", 0, slot=0))


@pytest.mark.parametrize(
    ("scope", "parts"),
    [
        ("flow", ["t-0", "t-1", "u-0"]),
        ("connector:MirrorSourceConnector", ["t-0", "t-1", "u-0"]),
        ("connector:MirrorHeartbeatConnector", []),
        ("topic:t", ["t-0", "t-1"]),
        ("partition:t-1", ["t-1"]),
        ("slot:0", ["t-0", "u-0"]),
    ],
)
def test_pause_and_stop_wait_for_what_copies_within_their_scope(scope: str, parts: list[str]) -> None:
    assert outstanding(PAUSE, scope, *COPYING) == parts
    assert outstanding(STOP, scope, *COPYING) == parts


@pytest.mark.parametrize("phase", ["paused", "stopped", "halted"])
def test_partition_that_does_not_copy_is_paused(phase: str) -> None:
    assert not outstanding(PAUSE, "topic:u", progress("u", 0, phase=phase))


def test_partition_of_a_deleted_topic_is_not_waited_for() -> None:
    assert not outstanding(PAUSE, "flow", topic("t", phase="deleted"), COPYING[0])


def test_resume_waits_for_what_is_to_run() -> None:
    rows = (progress("t", 0, phase="paused"), progress("t", 1, phase="stopped"), progress("u", 0, phase="halted"))
    assert outstanding(RESUME, "flow", *rows) == ["t-0", "t-1"]
    assert outstanding(RESUME, "flow", *rows, Wanted(scope="topic:t", phase="paused")) == []


def test_restart_waits_for_another_run_of_each_slot() -> None:
    assignment, status = at_work(("t", 0))
    assert isinstance(status, SlotStatus)
    before, after = replace(status, run="i-1-1"), replace(status, run="i-1-2")
    runs = {0: "i-1-1"}
    assert outstanding(RESTART, "flow", assignment, before, runs=runs) == ["slot 0"]
    assert outstanding(RESTART, "slot:0", assignment, before, runs=runs) == ["slot 0"]
    assert outstanding(RESTART, "slot:1", assignment, before, runs=runs) == []
    assert outstanding(RESTART, "flow", assignment, after, runs=runs) == []
    assert outstanding(RESTART, "flow", assignment, before, Wanted(scope="slot:0", phase="paused"), runs=runs) == []


def test_most_parts_that_were_outstanding_are_the_whole_of_the_progress() -> None:
    wait = DesiredStateWait(PAUSE, Scope.parse("topic:t"))
    for phases in (("copying", "copying"), ("copying", "paused")):
        rows = (topic("t", 2), *(progress("t", number, phase=phase) for number, phase in enumerate(phases)))
        wait.update({row.key(): row for row in rows})
    assert (wait.outstanding, wait.total) == (("t-0",), 2)
