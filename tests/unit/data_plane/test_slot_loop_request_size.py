"""A target that closes the connection on large requests gets smaller ones, and each record once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from tests.support.batch_bytes import record
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

EVENT_HUBS = 1_046_528


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    async with SlotLoopScene(tmp_path, monkeypatch) as scene:
        scene.topic = replace(scene.topic, target_configs=(("max.message.bytes", "8000000"),))
        scene.target.largest_request = EVENT_HUBS
        yield scene


def append_large(scene: SlotLoopScene, count: int, size: int) -> list[bytes]:
    """One batch of so many records of this size."""
    values = [b"%d" % n + b"v" * size for n in range(count)]
    scene.log.append_records([record(0, value) for value in values])
    return values


async def test_slot_splits_batches_for_a_target_that_closes_on_large_requests(scene: SlotLoopScene) -> None:
    await scene.begin()
    values = append_large(scene, 12, 200_000) + append_large(scene, 12, 200_000)
    await eventually(lambda: len(scene.copied) >= len(values), what="all is copied")
    assert scene.copied == values
    assert scene.target.request_size.is_small
    scene.loop.check()
    scene.loop.check()
    assert scene.writer.events.count("RequestsLimited") == 1


async def test_slot_refuses_a_record_that_needs_a_larger_request(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    append_large(scene, 1, 2_000_000)
    await eventually(lambda: partition.phase is Phase.HALTED, what="the record cannot be sent")
    assert scene.copied == []


async def test_slot_keeps_large_requests_to_a_target_that_is_frozen(scene: SlotLoopScene) -> None:
    """What it does not answer in time is given up by us, which says nothing of the size."""
    scene.target.largest_request = None
    await scene.begin()

    async def has(count: int) -> None:
        await eventually(lambda: len(scene.copied) >= count, what=f"the target has {count}")

    for count in (1, 3, 5):
        scene.target.holds_answers = True
        append_large(scene, 1, 2_000_000)
        await has(count)
        for produce_connection in list(scene.loop._sender._produce_connections.values()):
            if not produce_connection.connection.closed:
                produce_connection.give_up()
        scene.target.holds_answers = False
        append_large(scene, 1, 10)
        await has(count + 1)
    assert len(scene.copied) == 6
    assert scene.target.request_size.closings == 0
