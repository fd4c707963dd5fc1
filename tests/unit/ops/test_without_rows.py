"""Flows without a state topic: they have never run, only if nothing else may be the cause."""

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_ops.status import without_rows
from lockstep_ops.status.report import Trouble
from lockstep_ops.status.without_rows import WithoutRows, look_without_rows
from tests.support.plan_facts import settings_for

AWAY = ClusterUnreachable("B", "b:9092", "timed out")


async def said_without_rows(
    monkeypatch: pytest.MonkeyPatch, refusal: str | ClusterUnreachable, *unread: Trouble
) -> WithoutRows:
    async def read(settings: FlowSettings, silent_s: float) -> tuple[list[object], list[Trouble]]:
        return [], list(unread)

    async def ask(settings: FlowSettings) -> str:
        if isinstance(refusal, str):
            return refusal
        raise refusal

    monkeypatch.setattr(without_rows, "read_reports", read)
    monkeypatch.setattr(without_rows, "_why_not_created", ask)
    return await look_without_rows(settings_for(), 1.0)


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
