"""What the loop of a slot does if leaders and connections go away while a partition resumes, or leaves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_kafka.wire.connection import Connection
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS = 6, 19


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    async with SlotLoopScene(tmp_path, monkeypatch) as scene:
        yield scene


async def reconnecting(scene: SlotLoopScene, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], asyncio.Event]:
    """A record comes after the broker has closed the idle connection, which opens again once the event is set. The list
    has each connection that waits for that."""
    opened, may_open, waiting = scene.target.connection, asyncio.Event(), list[str]()

    async def connection(broker: int, purpose: str) -> Connection:
        if purpose.startswith("produce"):
            waiting.append(purpose)
            await may_open.wait()
        return await opened(broker, purpose)

    monkeypatch.setattr(scene.target, "connection", connection)
    scene.target.cut()
    scene.append(1)
    await eventually(lambda: len(waiting) == 1, what="the idle connection is opened again")
    return waiting, may_open


async def test_slot_fetches_after_its_source_lost_the_leader_meanwhile(
    scene: SlotLoopScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another partition's metadata request finds no leader while this one waits for its connection to the target."""
    opened = scene.target.connection

    async def connection(broker: int, purpose: str) -> Connection:
        if purpose.startswith("produce"):
            scene.source._leaders.clear()
            monkeypatch.setattr(scene.target, "connection", opened)
        return await opened(broker, purpose)

    monkeypatch.setattr(scene.target, "connection", connection)
    await scene.begin()
    scene.append(0)
    await scene.has_copied(1)


async def test_slot_appends_on_a_connection_that_reopened_during_a_resume(
    scene: SlotLoopScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    waiting, may_open = await reconnecting(scene, monkeypatch)
    scene.source.fetch_codes.append(NOT_LEADER_OR_FOLLOWER)
    await eventually(lambda: len(waiting) == 2, what="the partition resumes")
    assert partition.phase is Phase.RESUMING
    may_open.set()
    await scene.has_copied(2)


async def test_sender_forgets_a_partition_that_left_while_it_reconnected(
    scene: SlotLoopScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    _, may_open = await reconnecting(scene, monkeypatch)
    scene.loop.leave(("t", 0), goes_on=True)
    assert scene.task is not None
    await asyncio.wait_for(scene.task, 20)
    sender = scene.loop._sender
    may_open.set()
    await eventually(lambda: not sender._reopening, what="the connection is open")
    assert (sender._attached, sender._indexes, sender._targets) == ({}, {}, {})


async def test_failure_of_a_partition_that_left_is_forgotten(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.target.append_codes.extend([NOT_ENOUGH_REPLICAS] * 100)
    scene.append(1)
    troubles = scene.loop._reporter._troubles
    await eventually(lambda: partition.name in troubles.now, what="its appends fail")
    scene.loop.leave(("t", 0), goes_on=True)
    assert scene.task is not None
    await asyncio.wait_for(scene.task, 20)
    scene.loop.remove(("t", 0))
    assert troubles.now == {}
