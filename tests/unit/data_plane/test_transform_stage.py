"""Records of a transformed topic are judged in their order once they are evaluated, and never before."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.record_transform import RecordFailure, RecordTransform, TransformedRecords
from lockstep_data_plane.record_batch.layout import CONTROL, Batch, OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build, read_records
from lockstep_data_plane.slot import transform_stage
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.slot.transform_stage import StageTransform
from lockstep_data_plane.transform.evaluation_answer import (
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import format_sentence
from tests.support.batch_bytes import record
from tests.support.eventually import eventually
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

NUMBER = b"value-%d"


class Upper:
    """Keeps records whose number is a multiple of `every`, with their value in capitals."""

    version = "v1"

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.errors: deque[BaseException] = deque()
        self.error: BaseException | None = None
        """An error of every request."""
        self.damaged: set[int] = set()
        """The base offsets of batches that cannot be read."""
        self.fails: set[int] = set()
        """The offsets of records that cannot be evaluated."""
        self.at_most = 1000
        """The most records of an answer."""
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked: list[int] = []

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        self.asked.append(start)
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        if self.errors:
            raise self.errors.popleft()
        if self.damaged & {each.base_offset for each in batches}:
            raise TransformRefused("BATCH_CORRUPT", "a record ends early")
        kept: list[PlainRecord] = []
        covers = -1
        content = [r for one in batches if not one.attributes & CONTROL for r in read_records(one) if r.offset >= start]
        for index, each in enumerate(content):
            covers = each.offset
            if each.offset in self.fails:
                failed = (RecordFailure(each.offset, "JSON_MALFORMED", "json_mask(value)"),)
                return TransformedRecords(_built(kept), covers, False, failed)
            if each.offset % self.every == 0:
                kept.append(each._replace(value=each.value and each.value.upper()))
            if index + 1 == self.at_most:
                return TransformedRecords(_built(kept), covers, index + 1 == len(content))
        return TransformedRecords(_built(kept), covers)


def _built(kept: list[PlainRecord]) -> OutgoingBatch | None:
    return build(kept, 0, 1_000_000, -1)[0] if kept else None


class Given(SlotTransforms):
    """One transform for every topic."""

    def __init__(self, transform: RecordTransform, on_error: str) -> None:
        self._given = StageTransform("pii", transform, on_error, {"value"})
        self._evaluated = {}

    def find(self, topic: str) -> RecordTransform | None:
        return self._given.transform

    def find_evaluated(self, topic: str) -> StageTransform | None:
        return self._given


class Scene(SlotLoopScene):
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str, on_error: str = "halt") -> None:
        self.upper = Upper()
        super().__init__(folder, monkeypatch, *lines, transforms=Given(self.upper, on_error))

    async def has_made(self, *numbers: int) -> None:
        """Exactly these are there, in capitals, each once, and all of the source is decided."""
        partition = self.loop.partitions["t", 0]
        await eventually(
            lambda: len(self.copied) >= len(numbers) and partition.row().upstream >= self.log.end - 1,
            what="all is copied",
        )
        assert self.copied == [b"VALUE-%d" % n for n in numbers]


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(transform_stage, "WAITS_AT_MOST_S", 0.4)
    async with Scene(tmp_path, monkeypatch) as made:
        yield made


async def test_records_are_copied_as_the_transform_makes_them(scene: Scene) -> None:
    scene.upper.every = 2
    await scene.begin()
    scene.append(*range(7))
    await scene.has_made(0, 2, 4, 6)
    scene.append(7, 8)
    await scene.has_made(0, 2, 4, 6, 8)
    await scene.loop.flush()
    assert scene.writer.rows[-1].upstream == 8
    assert scene.loop.held_bytes == 0


async def test_a_filter_that_drops_everything_moves_the_row(scene: Scene) -> None:
    scene.upper.every = 1000
    partition = await scene.begin()
    scene.append(*range(1, 7))
    await eventually(lambda: partition.row().upstream == scene.log.end - 1, what="all is decided")
    assert scene.copied == [b"VALUE-1"], "offset 0"


async def test_an_answer_that_ends_early_is_continued(scene: Scene) -> None:
    scene.upper.at_most = 3
    await scene.begin()
    scene.log.append(range(10))
    await scene.has_made(*range(10))
    assert scene.upper.asked == [0, 3, 6, 9]


async def test_order_is_kept_while_answers_are_slow(scene: Scene) -> None:
    scene.upper.may_answer.clear()
    partition = await scene.begin()
    scene.append(0)
    await eventually(lambda: scene.upper.asked == [0])
    scene.append(1, 2, 3)
    await eventually(lambda: partition.fetch_from == 4, what="all of them are fetched")
    assert scene.copied == []
    assert scene.loop.held_bytes > 0
    scene.upper.may_answer.set()
    await scene.has_made(0, 1, 2, 3)
    assert scene.loop.held_bytes == 0


async def test_what_was_held_for_an_earlier_incarnation_is_forgotten(scene: Scene) -> None:
    scene.append(0)
    partition = await scene.begin()
    await scene.has_made(0)
    scene.upper.may_answer.clear()
    scene.append(1, 2)
    await eventually(lambda: len(scene.upper.asked) > 1)
    await eventually(lambda: any(each.unanswered for each in scene.source.connections.values()), what="it fetches")
    scene.source.cut()
    await eventually(lambda: partition.incarnation == 2)
    scene.upper.may_answer.set()
    scene.append(3)
    await scene.has_made(0, 1, 2, 3)


@pytest.mark.parametrize("error", [TransformConnectionLost("gone"), TransformTimedOut("slow")])
async def test_a_passing_failure_is_waited_out(scene: Scene, error: Exception) -> None:
    partition = await scene.begin()
    scene.upper.errors.append(error)
    scene.append(0, 1)
    await scene.has_made(0, 1)
    assert partition.phase is Phase.COPYING
    assert "PartitionHalted" not in scene.writer.events


@pytest.mark.parametrize(
    "error",
    [
        TransformConnectionLost("the JVM has ended"),
        TransformTimedOut("no answer"),
        TransformVersionDiffers("the JVM has another jar"),
        TransformRefused("SECRET_MISSING", "salt"),
    ],
)
async def test_what_nothing_evaluates_halts_and_is_never_copied_as_it_is(scene: Scene, error: Exception) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_made(0)
    scene.upper.error = error
    scene.append(1, 2)
    await eventually(lambda: partition.halted, what="it halts")
    row = partition.row()
    assert (row.case, row.upstream) == ("transform", 0)
    assert "transform pii" in format_sentence(row.cause)
    assert scene.copied == [b"VALUE-0"]


async def test_a_record_that_cannot_be_evaluated_halts_the_partition_behind_those_before_it(scene: Scene) -> None:
    scene.upper.fails = {2}
    partition = await scene.begin()
    scene.log.append(range(5))
    await eventually(lambda: partition.halted, what="it halts")
    row = partition.row()
    assert scene.copied == [b"VALUE-0", b"VALUE-1"]
    assert (row.case, row.upstream, row.cause.detail("first")) == ("refused", 1, 2)
    assert "value-2" not in str(row)


@pytest.mark.parametrize(("policy", "key"), [("quarantine", b"k"), ("quarantine-metadata", None)])
async def test_a_record_that_cannot_be_evaluated_goes_to_quarantine_without_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, key: bytes | None
) -> None:
    async with Scene(tmp_path, monkeypatch, on_error=policy) as scene:
        scene.upper.fails = {0, 2}
        await scene.begin()
        scene.log.append_records([record(n, NUMBER % n, key=b"k") for n in range(5)])
        await scene.has_made(1, 3, 4)
        entries = [entry for refusal in scene.writer.kept for entry in refusal.entries]
        assert [(e.first, e.last, e.key, e.value) for e in entries] == [(0, 0, key, None), (2, 2, key, None)]
        assert not [e for e in scene.writer.events if e == "PartitionHalted"]


async def test_quarantine_of_refused_records_is_another_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lockstep.on.refused` is about the target. A transform says `halt` for what it cannot mask."""
    async with Scene(tmp_path, monkeypatch, "A->B.lockstep.on.refused = quarantine") as scene:
        scene.upper.fails = {0}
        partition = await scene.begin()
        scene.append(0)
        await eventually(lambda: partition.halted, what="it halts")
        assert not scene.writer.kept


async def test_damaged_batch_halts_the_partition_behind_the_batches_before_it(scene: Scene) -> None:
    scene.upper.damaged = {2}
    scene.upper.may_answer.clear()
    partition = await scene.begin()
    scene.append(*range(5))
    await eventually(lambda: partition.fetch_from == 5, what="all of them are fetched")
    scene.upper.may_answer.set()
    await eventually(lambda: partition.halted, what="it halts")
    row = partition.row()
    assert scene.copied == [b"VALUE-0", b"VALUE-1"]
    assert (row.case, row.upstream, row.cause.detail("first"), row.cause.detail("last")) == ("refused", 1, 2, 2)


@pytest.mark.parametrize("is_readable", [True, False])
async def test_damaged_batch_goes_to_quarantine_once_without_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_readable: bool
) -> None:
    """A slot finds a wrong CRC, and only what evaluates finds records that are damaged."""
    async with Scene(tmp_path, monkeypatch, "A->B.lockstep.on.refused = quarantine") as scene:
        scene.upper.damaged = {2} if is_readable else set()
        scene.upper.may_answer.clear()
        partition = await scene.begin()
        scene.append(0, 1)
        scene.log.append_records([record(2), record(3)])
        if not is_readable:
            scene.log.damage()
        scene.append(4, 5)
        await eventually(lambda: partition.fetch_from == 6, what="all of them are fetched")
        scene.upper.may_answer.set()
        await scene.has_made(0, 1, 4, 5)
        entries = [entry for refusal in scene.writer.kept for entry in refusal.entries]
        assert [(e.first, e.last, e.key, e.value) for e in entries] == [(2, 3, None, None)]
        assert "PartitionHalted" not in scene.writer.events


async def test_a_flow_whose_transform_was_not_compiled_copies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["A->B.lockstep.transform.pii.topics = t", "A->B.lockstep.transform.pii.sql = SELECT * FROM records"]
    async with SlotLoopScene(tmp_path, monkeypatch, *lines) as scene:
        scene.append(0, 1)
        scene.task = asyncio.create_task(scene.loop.run_partition(("t", 0), scene.topic))
        await asyncio.sleep(0)
        partition = scene.loop.partitions["t", 0]
        await eventually(lambda: partition.halted, what="it halts")
        assert partition.row().case == "transform"
        assert scene.copied == []
        assert partition.has_row, "status and metrics count it"
        assert (partition.row().phase, partition.row().begins, partition.row().producer_id) == ("halted", "reset", -1)


async def test_batches_that_were_not_evaluated_are_refused(scene: Scene) -> None:
    """Whatever leads there is a mistake of ours, and nothing may be published that should be masked."""
    partition = await scene.begin()
    scene.loop._stage.remove(partition)
    scene.append(0)
    await eventually(lambda: partition.halted, what="it halts")
    assert scene.copied == []
