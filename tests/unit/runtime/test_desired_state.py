"""What is wanted of each part of the work, and what commands make of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.connector_settings import StatedPhase, StatedPhases
from lockstep_runtime.state.desired_state import (
    MOST_ENDS,
    CopyEnds,
    DesiredPhase,
    DesiredStateView,
    apply_verb,
    copy_ends,
    unknown_subject,
)
from lockstep_state.commands.command_vocabulary import PAUSE, RESTART, RESUME, STOP, STOP_BEFORE, Connector, Scope
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.data_plane_rows import Assignment
from lockstep_state.rows.state_rows import DesiredState, MirroredTopic, Row

SOURCE = "connector:MirrorSourceConnector"


def now(**phases: str) -> DesiredStateView:
    """By scope, with underscores for what no Python name can hold."""
    rows = [
        DesiredState(scope=scope.replace("__", ":").replace("_", "-"), phase=word) for scope, word in phases.items()
    ]
    return DesiredStateView({row.key(): row for row in rows})


def test_without_a_row_everything_is_to_run() -> None:
    nothing = DesiredStateView({})
    assert nothing.connector(Connector.SOURCE) is DesiredPhase.RUNNING
    assert nothing.partition("orders", 3, slot=0) is DesiredPhase.RUNNING
    assert nothing.slot(1) is DesiredPhase.RUNNING


@pytest.mark.parametrize(
    "scope", ["connector__MirrorSourceConnector", "slot__2", "topic__orders", "partition__orders_3"]
)
def test_a_partition_runs_only_while_all_that_it_lies_in_does(scope: str) -> None:
    states = now(**{scope: "paused"})
    assert states.partition("orders", 3, slot=2) is DesiredPhase.PAUSED
    assert states.partition("payments", 3, slot=1) is (
        DesiredPhase.PAUSED if scope.startswith("conn") else DesiredPhase.RUNNING
    )


def test_the_most_restrained_word_counts() -> None:
    states = now(connector__MirrorSourceConnector="paused", slot__2="stopped")
    assert states.slot(2) is DesiredPhase.STOPPED
    assert states.slot(1) is DesiredPhase.PAUSED
    assert states.partition("t", 0, slot=2) is DesiredPhase.STOPPED
    assert states.connector(Connector.CHECKPOINT) is DesiredPhase.RUNNING


def test_desired_phase_of_a_later_release_runs_nothing() -> None:
    assert now(topic__orders="draining").partition("orders", 0) is DesiredPhase.PAUSED


@pytest.mark.parametrize(("verb", "phase"), [(PAUSE, "paused"), (RESUME, "running"), (STOP, "stopped")])
def test_commands_change_the_phase_and_nothing_else(verb: str, phase: str) -> None:
    row = DesiredState(scope=SOURCE, phase="paused", restart="r1")
    assert apply_verb(row, verb, "c1") == DesiredState(scope=SOURCE, phase=phase, command="c1", restart="r1")


def test_restart_keeps_the_phase_and_has_its_id() -> None:
    row = DesiredState(scope=SOURCE, phase="paused")
    restarted = apply_verb(row, RESTART, "c1")
    assert (restarted.phase, restarted.restart) == ("paused", "c1")
    before = DesiredStateView({}).restarts(Scope.parse(SOURCE))
    assert DesiredStateView({restarted.key(): restarted}).restarts(Scope.parse(SOURCE)) != before


@given(st.lists(st.tuples(st.sampled_from((PAUSE, RESUME, STOP, RESTART)), st.integers(0, 9)), max_size=6))
def test_the_last_command_carried_out_twice_changes_nothing(commands: list[tuple[str, int]]) -> None:
    row = DesiredState(scope=SOURCE)
    for verb, number in commands:
        row = apply_verb(row, verb, str(number))
        assert apply_verb(row, verb, str(number)) == row


TOPIC: Row = MirroredTopic(source_topic="orders", target_topic="A.orders", partitions=3)
ASSIGNMENTS = (
    Assignment(slot=0, generation=1, partitions=(("t", 0),)),
    Assignment(slot=1, generation=2, partitions=(("t", 1),), ending=True),  # stopped
    Assignment(slot=2, generation=3, ending=True),  # one too many
)


@pytest.mark.parametrize(
    ("verb", "scope", "rows", "reason"),
    [
        (PAUSE, "topic:orders", (TOPIC,), ""),
        (PAUSE, "partition:orders-2", (TOPIC,), ""),
        (PAUSE, "partition:orders-3", (TOPIC,), "has 3 partitions"),
        (RESTART, "topic:A.orders", (TOPIC,), "no topic 'A.orders'"),
        (RESUME, "topic:gone", (TOPIC,), ""),  # a pause must not outlive its topic
        (STOP, SOURCE, (), ""),
        *((verb, scope, ASSIGNMENTS, "") for verb in (PAUSE, STOP, RESTART) for scope in ("slot:0", "slot:1")),
        *(
            (verb, f"slot:{slot}", ASSIGNMENTS, f"the flow has no slot {slot}: there are 0, 1")
            for verb in (PAUSE, STOP, RESTART)
            for slot in (2, 9)
        ),
        (RESUME, "slot:9", ASSIGNMENTS, ""),  # a pause must not outlive its slot
        (PAUSE, "slot:0", (), "the flow has no slot 0: it has none yet"),
    ],
)
def test_command_about_an_unknown_subject_has_a_reason(
    verb: str, scope: str, rows: tuple[Row, ...], reason: str
) -> None:
    unknown = unknown_subject(verb, Scope.parse(scope), {row.key(): row for row in rows})
    assert bool(unknown) == bool(reason)
    assert reason in format_sentence(unknown)


def test_state_of_the_file_and_rows_combine_to_the_most_restrictive() -> None:
    stated = StatedPhase(phase="paused", key="mm2.properties:5: A->B.lockstep.state")
    states = StatedPhases(source=stated)
    by_file = DesiredStateView({}, states)
    assert by_file.connector(Connector.SOURCE) is DesiredPhase.PAUSED
    assert by_file.connector(Connector.CHECKPOINT) is DesiredPhase.RUNNING
    assert by_file.slot(0) is by_file.partition("orders", 0) is DesiredPhase.PAUSED
    assert by_file.stated_phase(Connector.SOURCE) == stated
    assert by_file.stated_phase(Connector.HEARTBEAT) is None
    assert by_file.describe(Connector.SOURCE) == "paused by mm2.properties:5: A->B.lockstep.state"
    assert by_file.describe(Connector.CHECKPOINT) == "running"

    for phase, word in (("running", by_file.describe(Connector.SOURCE)), ("stopped", "stopped")):
        row = DesiredState(scope=SOURCE, phase=phase)
        assert DesiredStateView({row.key(): row}, states).describe(Connector.SOURCE) == word


def test_resting_scopes_are_connectors_first_and_then_rows_by_name() -> None:
    rows = [
        DesiredState(scope="topic:orders", phase="paused"),
        DesiredState(scope="slot:2", phase="stopped"),
        DesiredState(scope="topic:mail", phase="running"),
        DesiredState(scope="connector:MirrorCheckpointConnector", phase="paused"),
    ]
    stated = StatedPhases(source=StatedPhase(phase="stopped", key="lockstep.state"))
    assert list(DesiredStateView({row.key(): row for row in rows}, stated).held_back()) == [
        (SOURCE, "stopped"),
        ("connector:MirrorCheckpointConnector", "paused"),
        ("slot:2", "stopped"),
        ("topic:orders", "paused"),
    ]


# -- ends ------------------------------------------------------------------------------------------------------------

ENDS = CopyEnds(5_000, (("orders", 0, 7), ("orders", 1, 9)))


def ending(scope: str, *ends: tuple[str, int, int]) -> DesiredState:
    return apply_verb(DesiredState(scope=scope), STOP_BEFORE, "c1", CopyEnds(5_000, ends))


@pytest.mark.parametrize("scope", [SOURCE, "topic:orders"])
def test_scope_that_ends_at_offsets_runs_until_then(scope: str) -> None:
    row = apply_verb(DesiredState(scope=scope, restart="r1"), STOP_BEFORE, "c1", ENDS)
    assert row == DesiredState(
        scope=scope, phase="stopped", command="c1", restart="r1", before_ms=5_000, ends=ENDS.ends
    )
    view = DesiredStateView({row.key(): row})
    assert view.connector(Connector.SOURCE) is DesiredPhase.RUNNING
    assert view.partition("orders", 0, slot=0) is DesiredPhase.RUNNING
    assert list(view.held_back()) == [(scope, "stopped")], "it is no flow to switch to"
    assert apply_verb(row, RESTART, "c2").ends == ENDS.ends


@pytest.mark.parametrize("verb", [PAUSE, RESUME, STOP])
def test_every_other_verb_lifts_the_ends(verb: str) -> None:
    row = apply_verb(ending(SOURCE, ("orders", 0, 7)), verb, "c2")
    assert (row.has_ends, row.before_ms, row.ends) == (False, 0, ())
    assert copy_ends([row], [("orders", 0)]) == {}


def test_partition_that_no_scope_names_ends_where_it_is() -> None:
    partitions = [("orders", 0), ("orders", 1), ("payments", 0)]
    whole = ending(SOURCE, ("orders", 0, 7))
    assert copy_ends([whole], partitions) == {("orders", 0): 7, ("orders", 1): 0, ("payments", 0): 0}
    topic = ending("topic:orders", ("orders", 0, 5), ("orders", 1, 8))
    assert copy_ends([topic], partitions) == {("orders", 0): 5, ("orders", 1): 8}
    both = copy_ends([whole, topic], partitions)
    assert both == {("orders", 0): 5, ("orders", 1): 0, ("payments", 0): 0}, "the earlier end counts"


def test_ends_go_through_a_command() -> None:
    assert CopyEnds.from_arguments(ENDS.as_arguments()) == ENDS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "before_ms is no time"),
        ({"before_ms": 0, "ends": [["t", 0, 1]]}, "before_ms is no time"),
        ({"before_ms": True, "ends": [["t", 0, 1]]}, "before_ms is no time"),
        ({"before_ms": 5}, "ends has to name"),
        ({"before_ms": 5, "ends": []}, "ends has to name"),
        ({"before_ms": 5, "ends": [["t", 0, 1]] * (MOST_ENDS + 1)}, "ends has to name"),
        ({"before_ms": 5, "ends": [["t", 0]]}, "is no end of a copy"),
        ({"before_ms": 5, "ends": [["t", 0, -1]]}, "is no end of a copy"),
        ({"before_ms": 5, "ends": [["t", True, 1]]}, "is no end of a copy"),
        ({"before_ms": 5, "ends": ["t01"]}, "is no end of a copy"),
    ],
)
def test_command_without_right_ends_is_refused(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CopyEnds.from_arguments(arguments)
