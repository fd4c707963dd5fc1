"""Partitions that are taken over behind a marker (`lockstep.fence=marker`, docs/transactions.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.core.mirror_partition import Partition
from lockstep_data_plane.core.provenance import OWN
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.stamp import stamp
from lockstep_data_plane.resume.sequence_recovery import remembered_by
from lockstep_data_plane.resume.transaction_runner import Transacting
from lockstep_data_plane.wire.cluster import Cluster, cluster_of
from lockstep_data_plane.wire.produce_codec import produce_request
from lockstep_data_plane.wire.transaction_coordinator import Fenced, Producer
from lockstep_protocol.names import Flow
from tests.conftest import Pair
from tests.support.batch_bytes import batch_bytes, record
from tests.support.broker import Broker
from tests.support.clusters import create_topic
from tests.support.services import two_cluster_file

APPENDED, OUT_OF_ORDER, FENCED = 0, 45, 47
FORGETS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}
THREE_DAYS_MS = 3 * 86_400_000


class Slot:
    """What one slot does to take `topic`-0 of the target over. It keeps how long the target's log was each time that an
    id was written down."""

    def __init__(self, pair: Pair, folder: Path, topic: str) -> None:
        file = two_cluster_file(
            folder,
            ("A", pair.a.bootstrap),
            ("B", pair.b.bootstrap),
            "A->B.enabled = true",
            "A->B.lockstep.fence = marker",
        )
        settings = load(file, {}).flow(Flow("A", "B"))
        self.target: Cluster = cluster_of("B", settings.clients.data_producer, "marks")
        self.transacting = Transacting(
            settings, self.target, on_open=_unexpected, on_commit=_unexpected, on_failed=_unexpected
        )
        self.partition = Partition(topic, 0, topic, 100)
        self.partition.traces = self
        self.written_down: list[tuple[int, int]] = []

    async def take_over(self) -> Producer:
        await self.target.refresh([self.partition.target_topic])
        return await self.transacting.mark(self.partition)

    async def append(self, producer: Producer, sequence: int, timestamp: int) -> int:
        """The target's error code for a record of the producer, appended as slots do."""
        leader = self.target.leader_of(self.partition.target_tp)
        connection = await self.target.connection(leader.broker, "produce-0")
        data = stamp(batch_bytes([record(0, timestamp=timestamp)]), producer.id, producer.epoch, sequence)
        batches = [(self.partition.target_tp, leader, data)]
        request = produce_request(connection.version("produce"), batches, timedelta(seconds=10), None)
        answer = await connection.call(request)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def own(self, producer_id: int) -> None:
        self.written_down.append((producer_id, await self.target.end_offset(self.partition.target_tp)))

    async def learn(self, producer_ids: Iterable[int]) -> None:
        return

    def producer_of(self, batch: Batch) -> int | None:
        return OWN

    async def ours(self) -> frozenset[int]:
        return frozenset()


def _unexpected(*_: object) -> None:
    raise AssertionError("no transaction of records was opened")


@pytest.fixture
async def slots(pair: Pair, tmp_path: Path) -> AsyncIterator[tuple[Slot, Slot]]:
    topic = create_topic(pair.b.bootstrap)
    both = Slot(pair, tmp_path, topic), Slot(pair, tmp_path, topic)
    yield both
    for slot in both:
        await slot.target.close()


async def test_each_take_over_leaves_a_marker_and_a_later_epoch(slots: tuple[Slot, Slot]) -> None:
    first, second = slots
    earlier, later = await first.take_over(), await second.take_over()
    assert later.id == earlier.id
    assert later.epoch > earlier.epoch
    assert await first.target.end_offset(first.partition.target_tp) == 2


async def test_its_id_is_written_down_before_the_marker_is_there(slots: tuple[Slot, Slot]) -> None:
    """Who fetches the marker on the other side asks whose it is, and remembers the answer."""
    producer = await slots[0].take_over()
    assert slots[0].written_down[0] == (producer.id, 0)


async def test_who_is_overtaken_behind_its_own_marker_has_not_got_the_partition(
    slots: tuple[Slot, Slot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else both would go on from the same end: no marker would stand between the epochs of the two."""
    overtaken, other = slots
    coordinators = overtaken.transacting._coordinators
    end, got = coordinators.end, []

    async def end_late(name: str, producer: Producer, *, commit: bool) -> None:
        await end(name, producer, commit=commit)
        got.append(await other.take_over())

    monkeypatch.setattr(coordinators, "end", end_late)
    with pytest.raises(Fenced):
        await overtaken.take_over()
    monkeypatch.undo()
    assert (await overtaken.take_over()).epoch > got[0].epoch


async def test_who_is_overtaken_before_its_marker_is_told_so(
    slots: tuple[Slot, Slot], monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken, other = slots
    coordinators = overtaken.transacting._coordinators
    fence = coordinators.fence

    async def fence_early(name: str) -> Producer:
        producer = await fence(name)
        await other.take_over()
        return producer

    monkeypatch.setattr(coordinators, "fence", fence_early)
    with pytest.raises(Fenced):
        await overtaken.take_over()


@pytest.mark.long
async def test_a_marker_fences_for_as_long_as_the_leader_remembers_it(tmp_path: Path) -> None:
    """It forgets a producer by the time of the last record: what docs/transactions.md says a marker does, and does
    not."""
    with Broker("forgetful", properties=FORGETS) as broker:
        slot = Slot(Pair(broker, broker), tmp_path, create_topic(broker.bootstrap))
        old = time.time_ns() // 1_000_000 - THREE_DAYS_MS
        former = await slot.take_over()
        assert await slot.append(former, 0, old) == APPENDED
        later = await slot.take_over()
        assert await slot.append(former, 1, old) == FENCED, "right behind the marker"
        assert await slot.append(later, 0, old) == APPENDED
        assert await slot.append(former, 1, old) == FENCED, "while the leader remembers what came behind it"

        async def forgotten() -> bool:
            return not await remembered_by(slot.target, slot.partition.target_tp, {former.id})

        async with asyncio.timeout(30):
            while not await forgotten():
                await asyncio.sleep(0.1)
        assert await slot.append(former, 1, old) == APPENDED, "let in once all behind the marker is forgotten"
        assert await slot.append(later, 1, old) == OUT_OF_ORDER, "and that is noticed with the next append"
        await slot.target.close()
