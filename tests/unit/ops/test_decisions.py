"""What waits for a decision, and the sentence of the overview."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lockstep_ops.decisions import UNDER_WAY_MS, count_decisions, decisions
from lockstep_ops.findings.catalogue import find
from lockstep_ops.status.overview_sentence import overview_sentence
from lockstep_ops.status.report import (
    GroupLine,
    PartitionLine,
    Report,
    ServiceLine,
    SlotLine,
    TopicLine,
    Trouble,
)
from lockstep_runtime.state.desired_state import apply_verb
from lockstep_state.commands.command_vocabulary import STOP
from lockstep_state.commands.decision_steps import SOURCE
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import DesiredState, PartitionProgress, Restarts, Row
from tests.support.console_scene import halted_row
from tests.support.takeover_rows import rows_of

NOW = 10_000_000
SPENT = ReasonCode.RESTARTS_SPENT.to_reason(count=5, text="the JVM ended")


def partition(number: int = 0, *, state: str = "copying", cause: Reason = NO_REASON) -> PartitionLine:
    return PartitionLine(
        "orders", number, "halted" if cause else "copying", "running", 0, 0, 99, 100, 0, NOW, cause=cause, state=state
    )


def group(name: str, exact: int = 1, behind: int = 0, waiting: int = 0, held: str = "") -> GroupLine:
    return GroupLine(name, "synced", exact, behind, 0, waiting, True, held=held)


def report(**fields: object) -> Report:
    service = ServiceLine("data-plane", "MirrorSourceConnector", "running", 1, ())
    values: dict[str, object] = {
        "flow": "A->B",
        "at_ms": NOW,
        "services": (service,),
        "topics": (TopicLine("orders", "A.orders", "mirrored", "running", 1, 1, 0, 0, 0),),
        "partitions": (partition(),),
        "slots": (),
        "groups": (group("g"),),
        "acls": None,
        "heartbeat": "beating",
        "held_back": (),
        "troubles": (),
    }
    return Report(**{**values, **fields})  # type: ignore[arg-type]  # the fields of the tests below are right


def test_flow_that_is_fine_waits_for_no_decision() -> None:
    assert decisions(report(), {}) == ()


def test_halted_partition_has_its_case_its_range_and_what_each_choice_loses() -> None:
    row = halted_row("orders", 0)
    told = report(partitions=(partition(state="halted", cause=row.cause),))
    (decision,) = decisions(told, rows_of(row))
    assert (decision.kind, decision.subject, decision.case) == (
        "halted-partition",
        "partition:orders-0",
        "records-gone",
    )
    assert decision.since_ms == row.at_ms
    assert find(decision.code), "lockstep explain and the console say what it means"
    assert find(decision.case), "and what its case means"
    assert decision.range == {"copied_to": 99, "wanted": 100, "source_start": 150, "source_end": 200}
    verbs = [choice.verb for choice in decision.choices]
    assert verbs == ["skip", "restart-from", "restart"]
    assert "100 to 149" in decision.choices[0].words.loses
    body = decision.as_json()
    assert body["choices"][0].keys() >= {"verb", "label", "does", "loses", "subject", "arguments", "confirm"}


def test_decisions_about_many_partitions_are_made_for_the_first_ones_and_counted() -> None:
    halts = [halted_row("orders", number) for number in range(4)]
    lines = tuple(replace(partition(state="halted", cause=row.cause), partition=row.partition) for row in halts)
    slot = SlotLine(3, "started", "running", 1, 0, 0, SPENT)
    told = report(partitions=lines, slots=(slot,))
    shown = decisions(told, rows_of(*halts), 2)
    assert [decision.subject for decision in shown] == ["slot:3", "partition:orders-0", "partition:orders-1"]
    assert count_decisions(told, rows_of(*halts)) == len(decisions(told, rows_of(*halts))) == 5


@pytest.mark.parametrize("rows", [{}, rows_of(PartitionProgress(topic="orders", partition=1))])
def test_partition_that_only_rests_waits_for_no_decision(rows: Mapping[str, Row]) -> None:
    assert decisions(report(partitions=(partition(state="paused"),)), rows) == ()


def test_part_that_failed_too_often_waits_for_a_restart() -> None:
    service = ServiceLine("checkpoint", "MirrorCheckpointConnector", "running", 1, (), SPENT)
    slot = SlotLine(3, "started", "running", 1, 0, 0, SPENT)
    told = report(services=(service,), slots=(slot,))
    restarts = Restarts(owner="checkpoint/2", subject="service", count=5, phase="failed", at_ms=77)
    first, second = decisions(told, rows_of(restarts))
    assert (first.kind, first.subject, first.since_ms) == (
        "failed-service",
        "connector:MirrorCheckpointConnector",
        77,
    )
    assert (second.kind, second.subject, second.since_ms) == ("failed-slot", "slot:3", 0)
    assert [choice.verb for choice in (*first.choices, *second.choices)] == ["restart", "restart"]


def stopped_row(identity: str, since_ms: int) -> Row:
    row = apply_verb(DesiredState(scope=str(SOURCE), at_ms=since_ms), STOP, identity)
    return replace(row, at_ms=since_ms)


def test_decision_that_was_not_finished_comes_first_and_is_finished_by_a_resume() -> None:
    halt = halted_row("orders", 0)
    told = report(partitions=(partition(state="halted", cause=halt.cause),))
    stopped = stopped_row("d.stop-running", NOW - UNDER_WAY_MS)
    unfinished, halted = decisions(told, rows_of(stopped, halt))
    assert (unfinished.kind, unfinished.subject, unfinished.since_ms) == (
        "unfinished-decision",
        str(SOURCE),
        NOW - UNDER_WAY_MS,
    )
    assert [choice.verb for choice in unfinished.choices] == ["resume"]
    assert "nothing of A->B is copied" in unfinished.sentence
    assert halted.kind == "halted-partition"
    (paused,) = decisions(report(), rows_of(stopped_row("d.stop-paused", 5)))
    assert [choice.verb for choice in paused.choices] == ["pause"]


@pytest.mark.parametrize(
    "row", [stopped_row("d.stop-running", NOW - UNDER_WAY_MS + 1), stopped_row("an operator's", 5)]
)
def test_decision_under_way_and_a_stop_of_an_operator_wait_for_nobody(row: Row) -> None:
    assert decisions(report(), rows_of(row)) == ()


def test_service_without_a_replica_is_a_trouble_and_no_decision() -> None:
    service = ServiceLine("checkpoint", "X", "running", 0, (), ReasonCode.NO_REPLICA.to_reason())
    assert decisions(report(services=(service,)), {}) == ()


def test_sentence_of_a_flow_that_is_fine() -> None:
    told = overview_sentence(report(), NOW - 12 * 60_000, NOW)
    assert told == "A->B: fine, 1 topic, nothing behind, 1 group ready, verified up to 12 min ago, ready to switch"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"troubles": (Trouble("topic x", "failed"),)}, "1 trouble"),
        ({"partitions": (partition(state="halted"),)}, "1 halted"),
        ({"partitions": (PartitionLine("o", 0, "copying", "running", None, None, 9, 10, 0, 1, state="copying"),)},
         "of 1 partition it is unknown how far behind"),
        ({"groups": (group("a"), group("b", 0, 2))}, ", 2 groups ready, "),
        ({"groups": (group("a"), group("b", waiting=2))}, ", 1 group ready, 1 waiting, "),
        ({"groups": (group("b", waiting=2), group("c", waiting=1))}, ", 2 groups waiting, "),
        ({"groups": (group("a"), group("c", held="in-use"))}, ": 1 group in use on target, 1 topic, "),
        ({"switch_blockers": (Blocker.with_details(SwitchReason.NOTHING_COPIED, "", {"never_run": 1}),)},
         "not ready to switch: "),
    ],
)  # fmt: skip
def test_sentence_names_what_is_not_as_it_should_be(fields: dict[str, object], words: str) -> None:
    told = report(**fields)
    sentence = overview_sentence(told, None, NOW)
    assert words in sentence
    assert "never verified" in sentence
    assert ("fine" in sentence) is told.fine


def test_sentence_counts_no_group_twice_and_none_as_nothing() -> None:
    for held in ((), (group("c", held="in-use"),)):
        sentence = overview_sentence(report(groups=held), None, NOW)
        assert " 0 " not in sentence
        assert sentence.count("group") == len(held)
        assert sentence.endswith("ready to switch")
