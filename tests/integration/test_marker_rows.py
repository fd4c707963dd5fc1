"""What a release left that ended an empty transaction at each take-over (`lockstep.fence=marker`,
docs/decisions/0018): records without transactions, under the producer id of the partition's transactional id."""

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_data_plane.admin.offset_admin import with_position
from lockstep_kafka.wire.transaction_coordinator import Producer, TransactionCoordinators
from lockstep_state.names import state_topic, transactional_id
from lockstep_state.rows.state_rows import Origin, PartitionProgress
from tests.conftest import Pair
from tests.integration.test_lost_rows import append, cluster, numbered, own_id, untroubled
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.mirror import Mirror, MirroredFlow

SOON = 90.0
FORMER, LATER, THERE = 4, 6, 30
"""Records behind the first marker, behind the second one, and on the source."""
RELAY = "lockstep.provenance = relay"
LEFT = 4
"""The epoch of the flow's own id that was used before the markers."""


def left_behind_a_marker(flow: MirroredFlow, topic: str) -> PartitionProgress:
    """The target's log as that release left it: marker, records, marker, records. Returns the row of the second chain,
    of which two records are known."""
    seen, remote = flow.wait_mirrored(topic), flow.remote(topic)
    name, values = transactional_id(flow.flow, flow.group_id, topic, 0), [r.value or b"" for r in numbered(THERE)]

    async def taken_over(coordinators: TransactionCoordinators) -> Producer:
        producer = await coordinators.fence(name)
        await coordinators.open(name, producer, [(remote, 0)])
        await coordinators.end(name, producer, commit=False)
        return await coordinators.fence(name)

    async def left() -> Producer:
        async with cluster(flow.target, remote) as target:
            coordinators = TransactionCoordinators(target, timedelta(seconds=60))
            former = await taken_over(coordinators)
            await append(target, (remote, 0), values[:FORMER], *former, 0, at=1_000)
            later = await taken_over(coordinators)
            await append(target, (remote, 0), values[FORMER : FORMER + LATER], *later, 0, at=1_000)
            return later

    producer = asyncio.run(left())
    return PartitionProgress(
        topic=topic,
        partition=0,
        upstream=FORMER + 1,
        downstream=1 + FORMER + 1 + 1,
        sequence=1,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        left_epoch=LEFT,
        source_topic_id=seen.source_topic_id,
        target_topic_id=seen.target_topic_id,
    )


@pytest.mark.long
@pytest.mark.parametrize("way", ["disabled", "enabled"])
def test_partitions_behind_markers_go_on(pair: Pair, tmp_path: Path, way: str) -> None:
    """To the record, without transactions and in them: where the row is behind the log, where the slot was killed right
    behind its marker, and where an operator has altered the offset since."""
    mark = f"m{uuid.uuid4().hex[:6]}"
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b, f"t{mark}.exactly.once.source.support = {way}") as mirror:
        flow = mirror.flow
        own = own_id(flow)
        mirror.kill_data_plane()
        topics = [create_topic(flow.source, unique_name(mark)) for _ in range(3)]
        for topic in topics:
            produce(flow.source, topic, numbered(THERE))
        rows = [left_behind_a_marker(flow, topic) for topic in topics]
        epochs = [row.producer_epoch for row in rows]
        rows[1] = replace(rows[1], upstream=FORMER - 1, downstream=1 + FORMER, sequence=-1)
        rows[2] = with_position(rows[2], 1)
        for row in rows:
            produce(flow.target, state_topic(flow.flow), [Record(*row.encode(), partition=0)])
        mirror.data_plane.start()
        for topic, row, epoch in zip(topics, rows, epochs, strict=True):
            goes_on = row.upstream + 1 if row.begins else FORMER + LATER
            flow.wait_holds(topic, [*numbered(FORMER + LATER), *numbered(THERE)[goes_on:]], within=SOON)
            untroubled(flow, topic)
            now = flow.wait_written_down(topic, within=SOON)[0]
            assert now.transactional is (way == "enabled")
            if now.transactional:
                assert (now.producer_id, now.left_epoch) == (row.producer_id, LEFT)
                assert now.producer_epoch > epoch
            else:
                assert (now.producer_id, now.producer_epoch) == (own, LEFT + 1)


class SameNames(MirroredFlow):
    """Topics keep their names."""

    def remote(self, topic: str) -> str:
        return topic


@pytest.mark.long
def test_partitions_behind_markers_of_a_flow_with_several_origins_go_on(pair: Pair, tmp_path: Path) -> None:
    """The former id stood for the source's own records, in later epochs than the flow's own has had."""
    mark = f"m{uuid.uuid4().hex[:6]}"
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    lines = ("replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy", RELAY)
    with Mirror.one_flow(tmp_path, mark, a, b, *lines) as mirror:
        flow = SameNames(mirror.flow.flow, mirror.flow.source, mirror.flow.target)
        own = own_id(flow)
        (origin,) = flow.rows(Origin)
        mirror.kill_data_plane()
        topic = create_topic(flow.source, unique_name(mark))
        produce(flow.source, topic, numbered(THERE))
        row = replace(left_behind_a_marker(flow, topic), left_epoch=-1)
        for marker in (row, replace(origin, producer_id=row.producer_id)):
            produce(flow.target, state_topic(flow.flow), [Record(*marker.encode(), partition=0)])
        mirror.data_plane.start()
        flow.wait_holds(topic, numbered(THERE), within=SOON)
        untroubled(flow, topic)
        now = flow.wait_written_down(topic, within=SOON)[0]
        assert (now.producer_id, now.producer_epoch) == (own, 0)
