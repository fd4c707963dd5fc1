"""Rows that a former state topic had: they are written again by whoever owns them, into another topic only."""

from pathlib import Path
from typing import cast

import pytest

from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.rows.state_rows import DesiredState, FlowPulse, MirroredTopic, Row
from tests.support.flow_context import leading, read_row

PULSE = FlowPulse(source="A", target="B", phase="beating")
PAUSED = DesiredState(scope="connector:MirrorHeartbeatConnector", phase="paused")


class Named:
    """In the place of the topic's log, of which only the name is asked for."""

    topic = "state"


@pytest.fixture
def ctx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlowContext:
    """Of the heartbeat service, which has read two rows of its own and one of another, and begins a new session."""
    ctx = leading(tmp_path, "heartbeat", (0, 5))

    async def write_all(rows: list[Row]) -> None:
        for row in rows:
            read_row(ctx, row)

    monkeypatch.setattr(ctx.state, "write_all", write_all)
    for row in (PULSE, PAUSED, MirroredTopic(source_topic="t", target_topic="A.t")):
        read_row(ctx, row)
    ctx.state.open(cast(ControlTopicLog, Named()), lambda *_: None)
    return ctx


async def test_rows_of_ours_are_written_again_into_another_topic(ctx: FlowContext) -> None:
    ctx.state.compare(replaced=True)
    await ctx.restore_rows()
    assert set(ctx.state.rows.values()) == {PULSE, PAUSED}


async def test_row_that_the_new_topic_has_is_not_overwritten(ctx: FlowContext) -> None:
    now = FlowPulse(source="A", target="B", phase="failing")
    read_row(ctx, now)
    ctx.state.compare(replaced=True)
    await ctx.restore_rows()
    assert ctx.state.get(FlowPulse, "A->B") == now


async def test_same_topic_or_another_cluster_gets_nothing_again(ctx: FlowContext) -> None:
    ctx.state.compare(replaced=False)
    await ctx.restore_rows()
    assert ctx.state.rows == {}
