"""A target that refuses a codec gets the same records compressed otherwise, each once, also over a kill."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import GZIP, LZ4, SNAPPY, ZSTD
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_FOR_MESSAGE_FORMAT = 76, 43


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    async with SlotLoopScene(tmp_path, monkeypatch) as scene:
        yield scene


def append_compressed(scene: SlotLoopScene, *codecs: int) -> None:
    """One batch of three records for each codec."""
    for codec in codecs:
        scene.log.codec = codec
        first = scene.log.end
        scene.log.append(range(first, first + 3))


@pytest.mark.parametrize("code", [UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_FOR_MESSAGE_FORMAT])
async def test_slot_recompresses_refused_codecs_and_reports_each_once(scene: SlotLoopScene, code: int) -> None:
    scene.target.refused_codecs = dict.fromkeys((LZ4, SNAPPY, ZSTD), code)
    await scene.begin()
    append_compressed(scene, 0, LZ4, GZIP, ZSTD, SNAPPY, LZ4, ZSTD)
    await scene.has_copied(21)
    assert set(scene.codecs) == {0, GZIP}
    assert scene.writer.events.count("CodecRefused") == 3


async def test_slot_sends_uncompressed_batches_where_all_codecs_are_refused(scene: SlotLoopScene) -> None:
    scene.target.refused_codecs = dict.fromkeys((GZIP, LZ4, SNAPPY, ZSTD), UNSUPPORTED_FOR_MESSAGE_FORMAT)
    await scene.begin()
    append_compressed(scene, GZIP, LZ4)
    await scene.has_copied(6)
    assert set(scene.codecs) == {0}


async def test_slot_halts_where_the_target_refuses_uncompressed_batches(scene: SlotLoopScene) -> None:
    scene.target.refused_codecs = dict.fromkeys((0, GZIP, LZ4, SNAPPY, ZSTD), UNSUPPORTED_FOR_MESSAGE_FORMAT)
    partition = await scene.begin()
    append_compressed(scene, LZ4)
    await eventually(lambda: partition.phase is Phase.HALTED, what="nothing is left to try")
    assert scene.copied == []


@pytest.mark.parametrize("word", ["never", "false"])
async def test_slot_that_never_recompresses_halts(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with SlotLoopScene(tmp_path, monkeypatch, f"A->B.lockstep.recompress = {word}") as scene:
        scene.target.refused_codecs = {LZ4: UNSUPPORTED_COMPRESSION_TYPE}
        partition = await scene.begin()
        append_compressed(scene, LZ4)
        await eventually(lambda: partition.phase is Phase.HALTED, what="it halts")
        assert scene.copied == []
        assert "CodecRefused" not in scene.writer.events


async def test_slot_remembers_a_refused_codec_when_the_topic_changes(scene: SlotLoopScene) -> None:
    scene.target.refused_codecs = {LZ4: UNSUPPORTED_COMPRESSION_TYPE}
    partition = await scene.begin()
    append_compressed(scene, LZ4)
    await scene.has_copied(3)
    scene.loop.topic_changed(scene.topic)
    append_compressed(scene, LZ4)
    await scene.has_copied(6)
    assert partition.incarnation == 2


async def test_slot_that_was_killed_counts_past_what_it_had_recompressed(
    scene: SlotLoopScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next slot knows nothing of the codec, and its row is behind."""
    scene.target.refused_codecs = {ZSTD: UNSUPPORTED_COMPRESSION_TYPE, LZ4: UNSUPPORTED_COMPRESSION_TYPE}
    await scene.begin()
    append_compressed(scene, ZSTD)
    await scene.has_copied(3)
    await scene.writer.flush(scene.loop.partitions.values())
    row: PartitionProgress = scene.writer.rows[-1]
    scene.target.holds_answers = True
    append_compressed(scene, ZSTD, LZ4, GZIP, ZSTD)
    await eventually(lambda: len(scene.copied) > 3, what="the target has more than the row says")
    assert scene.task is not None
    scene.task.cancel()
    await asyncio.gather(scene.task, return_exceptions=True)
    await scene.loop.close()
    scene.task = None

    async with SlotLoopScene(tmp_path, monkeypatch) as after:
        after.log, after.copy = scene.log, scene.copy
        after.source.logs["t", 0], after.target.logs["A.t", 0] = scene.log, scene.copy
        after.target.refused_codecs = scene.target.refused_codecs
        after.rows["t", 0] = row
        await after.begin()
        append_compressed(after, ZSTD, GZIP)
        await after.has_copied(21)
        assert "ProgressRecovered" in after.writer.events
        assert set(after.codecs) == {GZIP}
