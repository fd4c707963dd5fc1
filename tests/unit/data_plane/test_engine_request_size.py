"""A target that closes the connection on large requests gets smaller ones, and each record once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from tests.support.batch_bytes import record
from tests.support.eventually import eventually
from tests.unit.data_plane.engine_scene import EngineScene

EVENT_HUBS = 1_046_528


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineScene]:
    made = EngineScene(tmp_path, monkeypatch)
    made.topic = replace(made.topic, target_configs=(("max.message.bytes", "8000000"),))
    made.target.largest_request = EVENT_HUBS
    yield made
    if made.task is not None and not made.task.done():
        made.engine.leave(("t", 0), goes_on=True)
    await made.end()


def append_large(scene: EngineScene, count: int, size: int) -> list[bytes]:
    """One batch of so many records of this size."""
    values = [b"%d" % n + b"v" * size for n in range(count)]
    scene.log.append_records([record(0, value) for value in values])
    return values


async def test_engine_splits_batches_for_a_target_that_closes_on_large_requests(scene: EngineScene) -> None:
    await scene.begin()
    values = append_large(scene, 12, 200_000) + append_large(scene, 12, 200_000)
    await eventually(lambda: len(scene.copied) >= len(values), within=30, what="all is copied")
    assert scene.copied == values
    assert scene.target.request_size.is_small
    scene.engine.check()
    scene.engine.check()
    assert scene.writer.events.count("RequestsLimited") == 1


async def test_engine_refuses_a_record_that_needs_a_larger_request(scene: EngineScene) -> None:
    partition = await scene.begin()
    append_large(scene, 1, 2_000_000)
    await eventually(lambda: partition.phase is Phase.HALTED, within=30, what="the record cannot be sent")
    assert scene.copied == []
