"""A run takes over records that a killed one appended, while their transform is another one or is not evaluated."""

import asyncio
from pathlib import Path

import pytest

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.slot import transform_stage
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.transform.evaluation_answer import (
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import record
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene
from tests.unit.data_plane.test_transform_stage import Given, Upper

DIFFERS = TransformVersionDiffers("the JVM has another jar")
COUNT = 6


class Runs:
    """A run that was killed behind its first row, and the run that comes after it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, reads_back: bool = False) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._reads_back = reads_back
        self.upper = Upper()

    def scene(self, transforms: SlotTransforms | None, *lines: str) -> SlotLoopScene:
        scene = SlotLoopScene(
            self._folder, self._monkeypatch, *lines, reads_back=self._reads_back, transforms=transforms
        )
        scene.target.checks_sequences = not self._reads_back
        return scene

    def given(self) -> Given:
        return Given(self.upper, "halt")

    async def after_a_kill(
        self, before: SlotTransforms | None, now: SlotTransforms | None, *lines: str
    ) -> SlotLoopScene:
        """Return the loop of the second run. The row that it finds is the one with which the first run began."""
        async with self.scene(before, *lines) as first:
            await first.begin()
            first.append(*range(COUNT))
            await eventually(lambda: first.copy.end >= COUNT, what="all is appended")
            row = first.writer.rows[0]
        return self.next_run(first, now, row, *lines)

    def next_run(
        self, former: SlotLoopScene, transforms: SlotTransforms | None, row: PartitionProgress, *lines: str
    ) -> SlotLoopScene:
        """Return the loop of a run behind another one, which finds this row."""
        scene = self.scene(transforms, *lines)
        scene.log, scene.copy = former.log, former.copy
        scene.source.logs["t", 0], scene.target.logs["A.t", 0] = former.log, former.copy
        scene.rows["t", 0] = row
        return scene


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


@pytest.fixture
def read_back_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr("lockstep_data_plane.resume.read_back_reader.ON_ITS_WAY_S", 0.01)
    return Runs(tmp_path, monkeypatch, reads_back=True)


async def begun(scene: SlotLoopScene, rests: str | None = None) -> PartitionState:
    scene.task = asyncio.create_task(scene.loop.run_partition(("t", 0), scene.topic, rests=rests))
    await asyncio.sleep(0)
    return scene.loop.partitions["t", 0]


@pytest.mark.parametrize("error", [DIFFERS, TransformRefused("ENGINE_ERROR", "out of memory")])
@pytest.mark.parametrize("kind", ["runs", "read_back_runs"])
async def test_a_transform_that_cannot_be_asked_decides_nothing_about_the_copy(
    kind: str, error: Exception, request: pytest.FixtureRequest
) -> None:
    """`progress` would append everything behind the row again, although the next JVM can say what is there."""
    runs: Runs = request.getfixturevalue(kind)
    async with await runs.after_a_kill(runs.given(), runs.given(), "A->B.lockstep.on.doubt = progress") as scene:
        runs.upper.error = error
        partition = await begun(scene)
        await eventually(lambda: partition.halted, what="it halts")
        row = partition.row()
        assert row.case == "transform"
    runs.upper.error = None
    async with runs.next_run(scene, runs.given(), row) as scene:
        partition = await begun(scene)
        scene.append(COUNT)
        await eventually(lambda: partition.row().upstream == COUNT, what="all is copied")
        assert scene.copied == [b"VALUE-%d" % n for n in range(COUNT + 1)]


@pytest.mark.parametrize("error", [TransformConnectionLost("the JVM has ended"), TransformTimedOut("no answer")])
async def test_a_resume_waits_for_its_transform_no_longer_than_a_copy(
    runs: Runs, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transform_stage, "WAITS_AT_MOST_S", 0.2)
    async with await runs.after_a_kill(runs.given(), runs.given()) as scene:
        runs.upper.error, before = error, len(runs.upper.asked)
        partition = await begun(scene)
        await eventually(lambda: partition.halted, what="it halts")
        assert (partition.row().case, partition.row().upstream) == ("transform", -1)
        if isinstance(error, TransformTimedOut):
            assert len(runs.upper.asked) - before == transform_stage.TIMES_OUT, "each leaves a thread in the JVM"


@pytest.mark.parametrize("error", [DIFFERS, TransformConnectionLost("the JVM has ended")])
async def test_a_partition_at_rest_is_released_while_its_transform_cannot_be_asked(
    runs: Runs, error: Exception
) -> None:
    async with await runs.after_a_kill(runs.given(), runs.given()) as scene:
        runs.upper.error = error
        partition = await begun(scene, "stopped")
        await eventually(lambda: partition.phase is Phase.RELEASED, what="it is released")
        row = partition.row()
        assert (row.located, row.beyond, row.case) == (False, COUNT, "")


async def test_the_end_of_a_raw_copy_is_not_counted_in_transformed_records(runs: Runs) -> None:
    """The raw copy of a partition that was stopped ends at a raw record, and the new transform drops most of them."""
    runs.upper.every = 3
    async with await runs.after_a_kill(None, runs.given()) as scene:
        partition = await begun(scene, "stopped")
        await eventually(lambda: partition.phase is Phase.RELEASED, what="it is released")
        row = partition.row()
        assert (row.located, row.upstream, row.downstream) == (True, COUNT - 1, COUNT - 1)
        assert not runs.upper.asked


async def test_equal_records_do_not_let_the_end_of_a_raw_copy_go_too_far(runs: Runs) -> None:
    runs.upper.every = 3
    same = [record(n, b"SAME")._replace(timestamp=1) for n in range(5 * COUNT)]
    async with runs.scene(None) as first:
        await first.begin()
        first.log.append_records(same[:COUNT])
        await eventually(lambda: first.copy.end >= COUNT, what="all is appended")
        row = first.writer.rows[0]
    first.log.append_records(same[COUNT:])
    async with runs.next_run(first, runs.given(), row) as scene:
        partition = await begun(scene, "stopped")
        await eventually(lambda: partition.phase is Phase.RELEASED, what="it is released")
        assert partition.row().upstream < COUNT


async def test_another_transform_begins_once_a_run_that_was_cut_off_has_ended(runs: Runs) -> None:
    async with await runs.after_a_kill(None, runs.given()) as scene:
        scene.loop.others_end_by = asyncio.get_running_loop().time() + 0.3
        partition = await begun(scene)
        assert partition.phase is Phase.RESUMING
        await eventually(lambda: partition.phase is Phase.COPYING, what="it copies")
        assert asyncio.get_running_loop().time() >= scene.loop.others_end_by
