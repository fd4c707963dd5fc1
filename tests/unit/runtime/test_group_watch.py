"""A replica to which its group gives no share of the work."""

import asyncio
from pathlib import Path

import pytest

from lockstep_runtime.flow.context import Clock, FlowContext
from lockstep_runtime.membership import group_watch
from lockstep_runtime.membership.group_watch import NOTHING_HELD_AFTER, GroupLost, GroupWatch
from lockstep_state.names import COMMANDS_PARTITIONS
from tests.support.flow_context import flow_context


async def watch_for(ctx: FlowContext, seconds: int, members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch as a member that holds nothing and is heard. Raises what the watch raises."""
    now = 1_000.0
    ctx.clock = Clock(monotonic=lambda: now)
    ctx.heartbeat_at = now

    async def count(_: str) -> int:
        return members

    def tick(_: float) -> float:
        nonlocal now
        if now - 1_000 >= seconds:
            raise asyncio.CancelledError
        now += 1
        ctx.heartbeat_at = now
        return 0.0

    monkeypatch.setattr(ctx.target, "count_members", count)
    monkeypatch.setattr(group_watch, "to_next_tick", tick)
    with pytest.raises(asyncio.CancelledError):
        await GroupWatch(ctx).run(lambda: "")


async def test_member_rejoins_if_a_group_with_room_gives_it_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GroupLost, match="joining as a new member"):
        await watch_for(
            flow_context(tmp_path, "topic-sync"), int(NOTHING_HELD_AFTER) + 5, COMMANDS_PARTITIONS, monkeypatch
        )


async def test_member_of_a_full_group_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = flow_context(tmp_path, "topic-sync")
    await watch_for(ctx, 10 * int(NOTHING_HELD_AFTER), COMMANDS_PARTITIONS + 1, monkeypatch)
