"""The loop of a slot turns effects into requests, and responses into events of a partition."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.produce.sender import NoProduceAnswer
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import record
from tests.support.eventually import eventually
from tests.unit.data_plane.resume_scene import OURS, TRANSACTIONS
from tests.unit.data_plane.slot_loop_scene import SlotLoopScene

INVALID_RECORD, NOT_ENOUGH_REPLICAS, TOO_LARGE = 87, 19, 10


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlotLoopScene]:
    async with SlotLoopScene(tmp_path, monkeypatch, "A->B.lockstep.on.refused = quarantine") as scene:
        yield scene


async def test_slot_copies_each_record_once_and_counts_it(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(*range(5))
    await scene.has_copied(5)
    scene.append(5, 6)
    await scene.has_copied(7)
    assert scene.loop.appended == partition.row().records == 7
    await scene.loop.flush()
    assert scene.writer.rows[-1].upstream == 6
    assert scene.loop.held_bytes == 0


@pytest.mark.parametrize(
    "code",
    [
        NOT_ENOUGH_REPLICAS,
        KafkaErrorCode.NOT_LEADER_OR_FOLLOWER,
        KafkaErrorCode.POLICY_VIOLATION,
        KafkaErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ],
)
async def test_slot_resumes_after_a_failed_append_and_doubles_nothing(scene: SlotLoopScene, code: int) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.target.append_codes.append(code)
    scene.append(1, 2, 3)
    await scene.has_copied(4)
    assert partition.incarnation == 2


async def test_slot_over_a_limit_waits_and_never_halts(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.target.append_codes.extend([KafkaErrorCode.POLICY_VIOLATION] * 4)
    scene.append(0, 1, 2)
    await scene.has_copied(3)
    assert partition.phase is Phase.COPYING
    assert "PartitionHalted" not in scene.writer.events


async def test_slot_splits_a_batch_that_is_too_large(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    before = partition.limits
    scene.target.append_codes.append(TOO_LARGE)
    scene.log.append(range(20))
    await scene.has_copied(20)
    assert partition.limits.max_bytes == before.max_bytes
    assert partition.limits.largest_split < before.largest_split
    assert partition.incarnation == 2


async def test_slot_asks_the_log_after_appends_without_an_answer(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.target.holds_answers = True
    scene.append(1, 2)
    await eventually(lambda: len(scene.copied) > 1, what="the target has more than it acknowledged")
    assert partition.row().upstream == 0
    scene.target.holds_answers = False
    scene.target.cut()
    await scene.has_copied(3)
    assert "ProgressRecovered" in scene.writer.events


async def test_slot_counts_gathered_appends_before_progress_and_failures(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.target.holds_answers = True
    for number in range(1, 5):
        scene.log.append_records([record(number, bytes(5000))])
    await eventually(lambda: partition.routing.appends_to(0).unanswered == 4, what="four batches are on their way")
    sent = list(partition.routing.appends_to(0)._in_flight)
    await scene.loop.flush()
    scene.loop.on_answers([(partition, sent[0], ProduceAnswer(0, 1))])
    assert (partition.row().upstream, scene.loop.appended) == (0, 1), "others are on their way"
    await scene.loop.flush()
    assert scene.writer.rows[-1].upstream == 1
    assert (partition.row().upstream, scene.loop.appended) == (1, 2)
    scene.loop.on_answers([(partition, sent[1], ProduceAnswer(0, 2))])
    assert partition.row().upstream == 1
    scene.loop.on_answers([(partition, sent[2], NoProduceAnswer("the connection ended"))])
    assert (partition.row().upstream, scene.loop.appended) == (2, 3)
    assert partition.phase is Phase.SETTLING
    scene.target.holds_answers = False
    scene.target.cut()
    await eventually(lambda: partition.row().upstream == 4, what="all is copied")
    assert len(scene.copied) == 5


async def test_slot_awaits_what_is_in_flight_before_a_partition_leaves(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.target.holds_answers = True
    scene.append(1)
    await eventually(lambda: len(scene.copied) == 2)
    scene.loop.leave(("t", 0), "paused")
    assert partition.phase is Phase.DRAINING
    scene.append(2)
    scene.target.holds_answers = False
    scene.target.cut()
    await scene.end()
    row = scene.writer.rows[-1]
    assert (row.phase, row.located, row.upstream, row.downstream) == ("paused", True, 1, 1)
    assert len(scene.copied) == 2, "nothing more was fetched"


async def test_slot_quarantines_a_refused_record_and_goes_on_behind_it(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.target.append_codes.append(INVALID_RECORD)
    scene.append(0)
    await eventually(lambda: scene.writer.kept != [] and partition.phase is Phase.COPYING)
    assert scene.writer.kept[0].ranges == ((0, 0),)
    scene.append(1)
    await eventually(lambda: partition.row().upstream == 1)
    assert scene.copied == [b"value-1"]
    assert partition.acked.written.quarantined == 1


@pytest.mark.parametrize("cut", [True, False])
async def test_slot_resumes_after_the_source_failed(scene: SlotLoopScene, cut: bool) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    if cut:
        asked = scene.source.connections.values()
        await eventually(lambda: any(connection.unanswered for connection in asked), what="a fetch is out")
        scene.source.cut()
    else:
        scene.source.fetch_codes.append(KafkaErrorCode.NOT_LEADER_OR_FOLLOWER)
    await eventually(lambda: partition.incarnation == 2)
    scene.append(1)
    await scene.has_copied(2)


async def test_slot_gives_new_limits_to_the_partition(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    scene.loop.topic_changed(replace(scene.topic, target_configs=(("max.message.bytes", "500"),)))
    assert (partition.limits.max_bytes, partition.phase) == (500, Phase.COPYING)
    scene.loop.topic_changed(replace(scene.topic, source_topic_id="another"))
    assert partition.phase is Phase.SETTLING


async def test_slot_ends_a_transaction_that_is_cut_off_and_copies_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SlotLoopScene(tmp_path, monkeypatch, TRANSACTIONS)
    partition = await scene.begin()
    scene.append(0, 1)
    await eventually(lambda: partition.row().upstream == 1, what="the transaction is committed")
    scene.target.open_codes.append(KafkaErrorCode.INVALID_PRODUCER_EPOCH)
    scene.append(2)
    await eventually(lambda: partition.incarnation == 2 and partition.row().upstream == 2)
    assert scene.copied == [b"value-0", b"value-1", b"value-2"]
    assert scene.copy.open_transactions == {}
    scene.loop.leave(("t", 0), "stopped")
    await scene.end()
    assert (scene.writer.rows[-1].phase, scene.writer.rows[-1].located) == ("stopped", True)


async def loses_source(scene: SlotLoopScene, *, silent: bool) -> None:
    """Its connections end, in the middle of a fetch. Others are refused, or open and bring no answer."""
    asked = scene.source.connections.values()
    await eventually(lambda: any(connection.unanswered for connection in asked), what="a fetch is out")
    scene.source.silent, scene.source.away = silent, not silent
    scene.source.cut()


@pytest.mark.parametrize("silent", [True, False])
async def test_slot_lets_a_partition_rest_whose_source_is_gone(scene: SlotLoopScene, silent: bool) -> None:
    partition = await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    await loses_source(scene, silent=silent)
    await eventually(lambda: partition.phase is Phase.RESUMING, what="it resumes")
    await asyncio.sleep(0.05)
    scene.loop.leave(("t", 0), "stopped")
    await scene.end()
    row = scene.writer.rows[-1]
    assert (row.phase, row.located, row.upstream) == ("stopped", True, 0)


async def test_slot_lets_a_partition_go_whose_source_is_silent(scene: SlotLoopScene) -> None:
    partition = await scene.begin()
    await loses_source(scene, silent=True)
    await eventually(lambda: partition.phase is Phase.RESUMING, what="it resumes")
    await asyncio.sleep(0.05)
    scene.loop.leave(("t", 0), goes_on=True)
    await scene.end()
    assert partition.phase is Phase.RELEASED


@pytest.mark.parametrize("answers", [False, True], ids=["nothing", "questions only"])
async def test_slot_gives_up_a_source_that_brings_nothing_to_locate(
    scene: SlotLoopScene, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr("lockstep_data_plane.slot.partition_task.LOCATES_WITHIN_S", 0.1)
    monkeypatch.setattr("lockstep_data_plane.slot.partition_task.BRINGS_WITHIN_S", 0.1)
    monkeypatch.setattr("lockstep_data_plane.resume.evidence.SOURCE_WITHIN_S", 0.1)
    scene.append(0, 1)
    scene.copy.append(range(2), (OURS, 0))
    scene.rows["t", 0] = PartitionProgress(
        topic="t", partition=0, producer_id=OURS, sequence=0, upstream=0, downstream=0
    )
    scene.source.holds_fetches = True
    scene.task = asyncio.create_task(scene.loop.run_partition(("t", 0), scene.topic, rests="stopped"))
    await asyncio.sleep(0)
    partition = scene.loop.partitions["t", 0]
    await eventually(lambda: partition.phase is Phase.LOCATING, what="it counts past")
    scene.source.silent = not answers
    await scene.end()
    row = scene.writer.rows[-1]
    assert (row.phase, row.located, row.upstream, row.beyond) == ("stopped", False, 0, 1)


async def test_slot_that_waits_fetches_nothing_until_it_is_woken(scene: SlotLoopScene) -> None:
    """Nothing takes the slot's rows meanwhile. What is in flight then is appended, and no more."""
    await scene.begin()
    scene.append(0)
    await scene.has_copied(1)
    scene.waits = True
    await asyncio.sleep(0.7)  # the fetch that is out ends within half a second, without records
    scene.append(1, 2, 3)
    await asyncio.sleep(0.5)
    assert len(scene.copied) <= 2
    scene.waits = False
    scene.loop.wake()
    await scene.has_copied(4)
