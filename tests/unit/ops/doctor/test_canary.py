"""The canary of `lockstep doctor` for a topic that is copied late on purpose."""

from typing import Any

import pytest

from lockstep_ops.doctor import flow_examination
from lockstep_ops.doctor.checks.check import Result
from tests.support.plan_facts import settings_for


@pytest.mark.parametrize(("within", "skipped"), [(10.0, True), (1_800.0, True), (1_801.0, False)])
async def test_canary_is_not_awaited_for_longer_than_asked(
    monkeypatch: pytest.MonkeyPatch, within: float, skipped: bool
) -> None:
    async def arrives(*_: Any) -> str:
        return "arrived"

    monkeypatch.setattr(flow_examination, "send_canary", arrives)
    settings = settings_for("lockstep.delay = 30m")
    finding = await flow_examination._canary(settings, "orders", within)
    assert finding.result is (Result.SKIPPED if skipped else Result.OK)
    if skipped:
        assert "orders is copied 30 min late on purpose" in finding.detail
