"""A target that keeps no producer ids: a slot appends without one, and reads the log back when it has to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    monkeypatch.setattr("lockstep_data_plane.resume.read_back_reader.ON_ITS_WAY_S", 0.01)
    async with SlotLoopScene(tmp_path, monkeypatch, reads_back=True) as scene:
        scene.target.checks_sequences = False
        yield scene


async def test_slot_appends_without_producer_ids(scene: SlotLoopScene) -> None:
    await scene.begin()
    scene.append(*range(20))
    await scene.has_copied(20)
    assert {batch.producer for batch in scene.copy._batches} == {(-1, -1, -1)}


async def test_slot_begins_once_a_run_that_was_cut_off_has_ended(scene: SlotLoopScene) -> None:
    others_end_by = scene.loop.others_end_by = asyncio.get_running_loop().time() + 0.3
    await scene.begin()
    assert asyncio.get_running_loop().time() >= others_end_by


async def test_slot_finds_appends_whose_answers_were_lost(scene: SlotLoopScene) -> None:
    await scene.begin()
    scene.append(0, 1)
    await scene.has_copied(2)
    for part in range(1, 4):
        scene.target.holds_answers = True
        scene.append(2 * part, 2 * part + 1)
        await eventually(lambda: scene.copy.end == scene.log.end, what="it is appended")
        scene.target.holds_answers = False
        scene.target.cut()
        await scene.has_copied(2 * part + 2)
    assert "ProgressRecovered" in scene.writer.events
    assert "RecordsDoubled" not in scene.writer.events
    assert scene.loop.partitions["t", 0].row().open_run == (0, 0, 8)


async def test_slot_reports_what_a_woken_writer_has_doubled(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(0, 1, 2)
    await scene.has_copied(3)
    scene.copy.append([1, 2])
    scene.append(3, 4)
    await eventually(lambda: partition.row().upstream == 4, what="all is copied")
    assert scene.copied == [b"value-%d" % n for n in (0, 1, 2, 1, 2, 3, 4)]
    assert scene.writer.events.count("RecordsDoubled") == 1
    assert partition.row().doubled == 2
    assert partition.row().open_run == (3, 5, 2)


@pytest.mark.parametrize("truncated", [True, False])
async def test_slot_halts_where_the_log_is_not_what_it_appended(scene: SlotLoopScene, truncated: bool) -> None:
    partition = await scene.begin()
    scene.append(0, 1, 2)
    await scene.has_copied(3)
    if truncated:
        scene.copy.truncate(2)
    else:
        scene.copy.append([900])
    scene.append(3, 4)
    await eventually(lambda: partition.phase is Phase.HALTED, what="it halts")
    assert partition.row().case == "in-doubt"
