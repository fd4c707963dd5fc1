"""The loop of a slot holds a delayed copy back, and ends it at an offset."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_state.rows.state_rows import SeenEnds
from tests.support.eventually import eventually
from tests.unit.data_plane.resume_scene import FIRST_ID
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

NOT_ENOUGH_REPLICAS = 19
TP = ("t", 0)


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    async with SlotLoopScene(tmp_path, monkeypatch, "A->B.lockstep.delay = 30m") as scene:
        yield scene


def release(scene: SlotLoopScene, offset: int, topic_id: str = FIRST_ID) -> None:
    scene.loop.take_seen_ends(SeenEnds(topic="t", partition=0, released=offset, source_topic_id=topic_id))


async def holds(scene: SlotLoopScene, count: int) -> None:
    """Wait until so many are copied, and see that no more are, however often the loop turns."""
    partition = scene.loop.partitions[TP]
    await eventually(lambda: len(scene.copied) >= count and partition.row().upstream >= count - 1, what="it is copied")
    for _ in range(200):
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    assert scene.copied == [b"value-%d" % number for number in range(count)]


async def test_slot_copies_what_is_released_and_nothing_more(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(*range(6))
    await holds(scene, 0)
    release(scene, 3)
    await holds(scene, 3)
    release(scene, 3, "another")
    scene.append(6)
    await holds(scene, 3)
    release(scene, 5)
    await holds(scene, 5)
    release(scene, 7)
    await holds(scene, 7)
    assert partition.row().upstream == 6
    assert (partition.incarnation, scene.loop.held_bytes) == (1, 0), "what is held back is not in memory"


async def test_partition_that_has_what_is_released_lags_behind_nothing(scene: SlotLoopScene) -> None:
    """Else its row would be written anew each second, for as long as the delay."""
    partition = await scene.begin()
    scene.append(*range(6))
    release(scene, 3)
    await holds(scene, 3)
    assert (partition.acked.lag, partition.row().source_end) == (0, 3)
    assert partition.caught_up, "a transaction may end"


async def test_end_is_reached_exactly_and_the_copy_goes_on_behind_it(scene: SlotLoopScene) -> None:
    await scene.begin()
    scene.append(*range(6))
    scene.loop.set_ends({TP: 4})
    await holds(scene, 4)
    await scene.loop.flush()
    assert scene.loop.has_reached(TP, 4)
    assert not scene.loop.has_reached(TP, 5)
    release(scene, 6)
    await holds(scene, 4)
    scene.loop.set_ends({})
    await holds(scene, 6)


async def test_batch_that_goes_beyond_the_end_is_not_divided(scene: SlotLoopScene) -> None:
    await scene.begin()
    scene.log.append([0, 1])
    scene.log.append([2, 3, 4])
    scene.loop.set_ends({TP: 3})
    await holds(scene, 2)
    assert scene.loop.has_reached(TP, 3), "nothing more comes before it"
    scene.loop.set_ends({TP: 5})
    await holds(scene, 5)


async def test_failed_append_of_a_delayed_copy_doubles_nothing_and_reads_nothing_early(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(*range(6))
    scene.target.append_codes.append(NOT_ENOUGH_REPLICAS)
    release(scene, 3)
    await holds(scene, 3)
    assert partition.incarnation == 2
    release(scene, 6)
    await holds(scene, 6)


async def test_delayed_copy_that_leaves_has_its_end_although_more_is_on_the_source(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(*range(6))
    release(scene, 3)
    await holds(scene, 3)
    scene.loop.leave(TP, "stopped")
    await eventually(lambda: partition.phase is Phase.RELEASED, what="it leaves")
    row = scene.writer.rows[-1]
    assert (row.upstream, row.phase, row.located) == (2, "stopped", True)


async def test_row_of_a_lost_run_is_made_good_although_nothing_is_released(scene: SlotLoopScene) -> None:
    """The state topic has lost what was seen. What the target has already is counted, and nothing is appended."""
    partition = await scene.begin()
    scene.append(*range(6))
    release(scene, 4)
    await holds(scene, 4)
    await scene.loop.flush()
    behind = scene.writer.rows[0]
    scene.loop.leave(TP, goes_on=True)
    await eventually(lambda: partition.phase is Phase.RELEASED, what="it leaves")
    scene.loop.remove(TP)
    scene.rows[TP] = replace(behind, upstream=-1, downstream=-1, sequence=-1, source_topic_id=FIRST_ID)
    release(scene, 0)
    again = await scene.begin()
    await holds(scene, 4)
    await eventually(lambda: again.records_to_skip == 0, what="all of it is counted")
    release(scene, 6)
    await holds(scene, 6)
