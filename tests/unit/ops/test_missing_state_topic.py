"""Flows without a state topic: they have never run, only if nothing else may be the cause."""

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_ops.status import missing_state_topic
from lockstep_ops.status.missing_state_topic import MissingStateTopic, explain_missing_state_topic
from lockstep_ops.status.report import Trouble
from tests.support.plan_facts import settings_for

AWAY = ClusterUnreachable("B", "b:9092", "timed out")


async def said_without_rows(
    monkeypatch: pytest.MonkeyPatch, refusal: str | ClusterUnreachable, *unread: Trouble
) -> MissingStateTopic:
    async def read(settings: FlowSettings, silent_s: float) -> tuple[list[object], list[Trouble]]:
        return [], list(unread)

    async def ask(settings: FlowSettings) -> str:
        if isinstance(refusal, str):
            return refusal
        raise refusal

    monkeypatch.setattr(missing_state_topic, "read_reports", read)
    monkeypatch.setattr(missing_state_topic, "_why_not_created", ask)
    return await explain_missing_state_topic(settings_for(), 1.0)


async def test_target_that_stops_answering_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    error = await said_without_rows(monkeypatch, AWAY)
    assert not error.never_run
    assert str(error) == f"whether the flow has ever run is not known: {AWAY}"


async def test_flow_without_a_cause_has_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    error = await said_without_rows(monkeypatch, "")
    assert error.never_run
    assert str(error) == "the flow has never run"


async def test_causes_stand_with_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    error = await said_without_rows(monkeypatch, AWAY, Trouble("reports", "not known"))
    assert (error.causes, error.never_run) == (("reports: not known",), False)
    assert str(error) == f"reports: not known; whether the flow has ever run is not known: {AWAY}"
    refused = await said_without_rows(monkeypatch, "it cannot be created")
    assert (refused.never_run, refused.unknown) == (False, "")
