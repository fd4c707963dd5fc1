"""The outcome of a command: in memory, and from the events after the console has ended."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lockstep_console.actions.command_outcome import (
    DONE,
    REFUSAL,
    RUNNING,
    UNANSWERED,
    UNFINISHED,
    CommandOutcome,
    OutcomeStore,
    found_outcome,
    judge,
)
from lockstep_ops.command_request import CommandReply, command_request
from lockstep_state.commands.command_vocabulary import FLOW, PAUSE
from lockstep_state.commands.decision_steps import SOURCE, UnfinishedDecision
from lockstep_state.events import Event
from tests.support.plan_facts import settings_for


def reply(**answers: str) -> CommandReply:
    """Of `pause flow`: the kind of the event that each service answers by."""
    asked = CommandReply(command_request(settings_for(), PAUSE, FLOW, by="alice", command_id="c"))
    for service, kind in answers.items():
        detail = {"reason": "why"} if kind == "CommandRefused" else {}
        asked.add_event(Event(kind=kind, service=service.replace("_", "-"), flow="A->B", answers="c", detail=detail))
    return asked


def test_outcome_is_done_when_everybody_has_answered() -> None:
    phase, sentence = judge([reply(topic_sync="Paused", checkpoint="Paused", heartbeat="Paused")])
    assert phase == DONE
    assert "topic-sync: paused" in sentence


def test_refusal_counts_before_a_missing_answer() -> None:
    phase, sentence = judge([reply(topic_sync="Paused", checkpoint="CommandRefused")])
    assert phase == REFUSAL
    assert "checkpoint: refused: why" in sentence
    phase, sentence = judge([reply(topic_sync="Paused")])
    assert phase == UNANSWERED
    assert "no answer to pause" in sentence
    assert ";" not in sentence
    assert ".." not in sentence


def outcome(name: str, phase: str = DONE, flow: str = "A->B") -> CommandOutcome:
    return CommandOutcome(id=name, flow=flow, verb="pause", subject="flow", by="alice", at_ms=1, phase=phase)


def test_outcome_as_json_has_each_answer_and_who_is_missing() -> None:
    body = outcome("c")
    body.replies.append(reply(topic_sync="Paused"))
    shown = body.as_json()
    assert [answer["service"] for answer in shown["answers"]] == ["topic-sync"]
    assert shown["missing"] == ["checkpoint", "heartbeat"]
    assert (shown["by"], shown["steps"][0]["id"]) == ("alice", "c")


def test_store_is_bounded_and_forgets_what_has_ended_first() -> None:
    store = OutcomeStore(most=3)
    store.add(outcome("runs", RUNNING))
    for number in range(5):
        store.add(outcome(f"{number}"))
    assert [kept.id for kept in store.of_flow("A->B")] == ["4", "3", "runs"]
    assert store.get("A->B", "4") is not None
    assert store.get("B->A", "4") is None, "an id counts in its flow"
    for number in range(5):
        store.add(outcome(f"r{number}", RUNNING))
    assert len(store.of_flow("A->B")) == 3


# -- from the events ---------------------------------------------------------------------------------------------------


def event(kind: str, answers: str, verb: str, service: str = "topic-sync", **detail: Any) -> Mapping[str, Any]:
    return {
        "kind": kind,
        "service": service,
        "flow": "A->B",
        "subject": str(SOURCE),
        "at_ms": 5,
        "answers": answers,
        "detail": {"verb": verb, "by": "alice", **detail},
    }


STOPPED = event("Stopped", "d.stop-running", "stop")
ALTERED = event("OffsetsAltered", "d.alter", "offsets-alter", "data-plane")
RESUMED = event("Resumed", "d.resume", "resume")


OPEN = UnfinishedDecision("d", "running", 7)


@pytest.mark.parametrize("events", [[STOPPED], [ALTERED, STOPPED], []])
def test_decision_is_unfinished_while_its_connector_is_stopped(events: Sequence[Mapping[str, Any]]) -> None:
    found = found_outcome("d", "A->B", events, OPEN)
    assert found is not None
    assert found.phase == UNFINISHED
    assert found.at_ms == (5 if events else 7)
    assert f"resume {SOURCE} now." in found.sentence
    assert ("decided anew" in found.sentence) is (ALTERED not in events)
    assert ".." not in found.sentence
    assert ";" not in found.sentence


def test_decision_is_done_once_its_connector_is_resumed() -> None:
    for unfinished in (None, UnfinishedDecision("another", "running", 9)):
        done = found_outcome("d", "A->B", [RESUMED, ALTERED, STOPPED], unfinished)
        assert done is not None
        assert (done.phase, done.by, done.verb) == (DONE, "alice", "stop")
        assert [answer["kind"] for answer in done.answers] == ["Stopped", "OffsetsAltered", "Resumed"]
        assert "source connector" not in done.sentence


def test_refused_step_is_found_as_refused() -> None:
    refused = event("CommandRefused", "d.alter", "offsets-alter", "data-plane", reason="no such offset")
    found = found_outcome("d", "A->B", [RESUMED, refused, STOPPED])
    assert found is not None
    assert found.phase == REFUSAL
    assert "no such offset" in found.sentence


@pytest.mark.parametrize("asked", ["", "x", "d.stop-running"])
def test_unknown_id_finds_nothing(asked: str) -> None:
    assert found_outcome(asked, "A->B", [STOPPED, event("Paused", "", "pause")]) is None
