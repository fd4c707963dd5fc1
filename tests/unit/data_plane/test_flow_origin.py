"""Slots that go on without a driver are recognized by their settings, whatever mode the target's trial chose."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_trial import AppendMode
from lockstep_data_plane.driver.flow_origin import FlowOrigin
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.rows.state_rows import Origin
from tests.support.flow_context import flow_settings


def origin_in(appends: str, settings: FlowSettings) -> tuple[FlowOrigin, Any]:
    ctx: Any = SimpleNamespace(settings=settings)
    origin = FlowOrigin(cast(FlowContext, ctx))
    origin._origin = Origin(
        producer_id=1, source="A", target="B", origin_cluster_id="a", target_cluster_id="b", appends=appends
    )
    return origin, ctx


@pytest.mark.parametrize("appends", ["", AppendMode.SEQUENCES.value])
def test_settings_of_the_usual_mode_are_those_of_the_file(tmp_path: Path, appends: str) -> None:
    settings = flow_settings(tmp_path)
    assert origin_in(appends, settings)[0].settings is settings


@pytest.mark.parametrize("appends", [AppendMode.TRANSACTIONS.value, AppendMode.READ_BACK.value])
def test_settings_of_another_mode_are_one_object(tmp_path: Path, appends: str) -> None:
    settings = flow_settings(tmp_path)
    origin, ctx = origin_in(appends, settings)
    chosen = origin.settings
    assert chosen.data_plane != settings.data_plane
    assert origin.settings is chosen
    ctx.settings = flow_settings(tmp_path)
    assert origin.settings is not chosen, "credentials were read again"
