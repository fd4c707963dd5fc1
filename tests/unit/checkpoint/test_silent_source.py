"""Failover while the source does not answer."""

import asyncio
from pathlib import Path

from lockstep_checkpoint.app import CheckpointFlow
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_state.names import COMMANDS_PARTITIONS
from tests.support.flow_context import leading
from tests.unit.checkpoint.test_group_report import opened


class SilentCluster(Admin):
    """Accepts questions and never answers."""

    def __init__(self) -> None:
        super().__init__("A", {"bootstrap.servers": "127.0.0.1:1"})
        self.asked = asyncio.Event()

    async def list_groups(self) -> dict[str, str]:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_checkpoints_of_known_positions_wait_for_no_round(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "checkpoint", *((share, 1) for share in range(COMMANDS_PARTITIONS)), divided=True)
    opened(ctx)
    ctx.source = silent = SilentCluster()
    flow = CheckpointFlow(ctx)
    flow._checkpoints._is_loaded.set()
    emission = asyncio.ensure_future(flow._emit({0}))
    await silent.asked.wait()
    await asyncio.wait_for(flow._emit_committed(lambda _: True), 5.0)
    assert not emission.done()
    await cancelled([emission])


async def test_questions_to_a_silent_source_hold_up_none_to_the_target(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "checkpoint", (0, 1), divided=True)
    CheckpointFlow(ctx)
    while not ctx.source._groups.locked():
        await ctx.source._groups.acquire()
    assert not ctx.target._groups.locked()
