"""A batch whose header names another last offset goes to quarantine once, and no good record is passed over with it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.layout import Batch, scan, scan_groups, size_before
from tests.support.batch_bytes import batch_bytes, records
from tests.support.eventually import eventually
from tests.support.memory_cluster import MemoryCluster, MemoryLog
from tests.unit.data_plane.partition_steps import admit, partition
from tests.unit.data_plane.resume_scene import TRANSACTIONS
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene
from tests.unit.data_plane.test_transform_stage import Scene as TransformScene

QUARANTINE = "A->B.lockstep.on.refused = quarantine"
NOT_COMMITTED = 16
"""An error code on which a partition resumes."""
MODES: dict[str, Callable[[Path, pytest.MonkeyPatch], SlotLoopScene]] = {
    "raw": lambda folder, patch: SlotLoopScene(folder, patch, QUARANTINE),
    "rules": lambda folder, patch: SlotLoopScene(folder, patch, QUARANTINE, "A->B.lockstep.headers = drop x-debug-*"),
    "transactions": lambda folder, patch: SlotLoopScene(folder, patch, QUARANTINE, TRANSACTIONS),
    "read back": lambda folder, patch: SlotLoopScene(folder, patch, QUARANTINE, reads_back=True),
    "transform": lambda folder, patch: TransformScene(folder, patch, QUARANTINE),
    "transform in transactions": lambda folder, patch: TransformScene(folder, patch, QUARANTINE, TRANSACTIONS),
}
CLAIMS = [-(2**31), -1, 0, 1, 3, 4, 5, 700, 2**31 - 1]
"""Last offset deltas. That of the batch, which has the offsets 2 to 4, is 2."""


@pytest.fixture(params=MODES)
async def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlotLoopScene]:
    monkeypatch.setattr("lockstep_data_plane.resume.read_back_reader.ON_ITS_WAY_S", 0.01)
    async with MODES[request.param](tmp_path, monkeypatch) as scene:
        scene.target.checks_sequences = request.param != "read back"
        yield scene


def values(scene: SlotLoopScene) -> list[bytes]:
    return [(value or b"").lower() for value in scene.copied]


@pytest.mark.parametrize("claimed", CLAIMS)
async def test_damaged_batch_goes_to_quarantine_once(scene: SlotLoopScene, claimed: int) -> None:
    scene.log.append([0, 1]).append([2, 3, 4]).damage(claimed).append([5, 6]).append([7])
    copy = await scene.begin()
    await eventually(lambda: copy.phase is Phase.HALTED or copy.row().upstream == 7, what="all is copied")
    assert [refusal.ranges for refusal in scene.writer.kept] == [((2, 4),)]
    assert values(scene) == [b"value-%d" % n for n in (0, 1, 5, 6, 7)]
    incarnation = copy.incarnation
    scene.target.append_codes.append(
        NOT_COMMITTED
    )  # the log is fetched from the damaged batch on if its header says so
    scene.append(8, 9)
    await eventually(lambda: copy.row().upstream == 9 and copy.incarnation > incarnation, what="it has resumed")
    assert len(scene.writer.kept) == 1
    assert values(scene) == [b"value-%d" % n for n in (0, 1, 5, 6, 7, 8, 9)]
    assert copy.row().quarantined == 1


async def test_damaged_batch_whose_end_nothing_shows_halts_until_the_next_is_there(scene: SlotLoopScene) -> None:
    copy = await scene.begin()
    scene.log.append([0, 1]).append([2, 3, 4]).damage(700)
    await eventually(lambda: copy.phase is Phase.HALTED, what="it halts")
    assert (scene.writer.kept, values(scene)) == ([], [b"value-0", b"value-1"])
    assert "2" in str(copy.row().reason)


def with_base(data: bytes, base: int) -> bytes:
    return base.to_bytes(8, "big") + data[8:]


THREE = [batch_bytes(records(10 * n, 10)) for n in range(3)]


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize(
    "log",
    [
        pytest.param([THREE[0], with_base(THREE[1], 15), THREE[2]], id="the second reaches into the third"),
        pytest.param([THREE[0], with_base(THREE[1], 5), THREE[2]], id="the second begins within the first"),
        pytest.param([THREE[0], with_base(THREE[1], 2**40), THREE[2]], id="the second is behind the third"),
        pytest.param([THREE[0], THREE[1], with_base(THREE[2], 3)], id="the third is before the second"),
    ],
)
def test_batches_whose_offsets_contradict_each_other_are_refused(log: list[bytes], grouped: bool) -> None:
    """No CRC covers a base offset. What is before the position would be passed over as copied."""
    copy = partition()
    data = b"".join(log)
    admit(copy, *(scan_groups(data, any_producer=True) if grouped else scan(data)), source_end=30)
    assert copy.phase is Phase.DRAINING
    assert copy.position <= 10, "no record counts as passed over"


@pytest.mark.parametrize("claimed", [2, 3, 700, 2**31 - 1])
def test_limit_of_a_delayed_copy_lets_a_damaged_batch_through(claimed: int) -> None:
    log = MemoryLog().append([0, 1]).append([2, 3, 4]).damage(claimed).append([5, 6]).append([7])
    data, _ = log.fetched(0, committed=False)
    sizes = [len(each.data) for each in scan(data)]
    assert [size_before(data, limit) for limit in (2, 5, 7, 8)] == [sum(sizes[:count]) for count in (1, 2, 3, 4)]


@pytest.mark.parametrize("claimed", CLAIMS)
async def test_log_is_read_to_its_end_behind_a_damaged_batch(claimed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if an answer ends with that batch."""
    cluster = MemoryCluster("A")
    log = MemoryLog().append([0, 1]).append([2, 3, 4]).damage(claimed).append([5, 6]).append([7])
    cluster.create("t", log)
    await cluster.refresh(["t"])
    whole = log.fetched

    def fetched(offset: int, *, committed: bool) -> tuple[bytes, list[tuple[int, int]]]:
        data, aborted = whole(offset, committed=committed)
        return b"".join(bytes(each.data) for each in list(scan(data))[: 2 if offset == 0 else None]), aborted

    monkeypatch.setattr(log, "fetched", fetched)
    seen: list[Batch] = []
    async for batches, _ in log_between(cluster, ("t", 0), 0, 8):
        seen += batches
        assert len(seen) < 20
    assert [each.base_offset for each in seen][-2:] == [5, 7]
