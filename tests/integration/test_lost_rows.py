"""Records of ours in the target's log of which a row does not tell: it is older, on its way, or was lost
(docs/decisions/0049)."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import SEARCHED, LastAppend, LogContradiction
from lockstep_data_plane.record_batch.layout import stamp
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.resume.evidence import read_tail
from lockstep_kafka.messages.produce_codec import produce_answer, produce_request
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_kafka.wire.optional_requests import active_producers
from lockstep_state.names import state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Origin, PartitionProgress
from tests.conftest import Pair
from tests.support.batch_bytes import batch_bytes, record
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

FORGETS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}
THREE_DAYS_MS = 3 * 86_400_000
OURS = 990_001
"""A producer id that no broker of a test gives away: it takes one that it has never given (`kafka-wire.md` §0)."""
HELD, THERE = 10, 30
PRODUCE_BEFORE_KIP_890 = 11
"""The newest version of Produce in which the broker does not add a partition to the transaction itself."""
SOON = 90.0


@asynccontextmanager
async def cluster(bootstrap: str, topic: str) -> AsyncIterator[ClusterClient]:
    cluster = connect_cluster("B", {"bootstrap.servers": bootstrap}, "lost-rows")
    try:
        await cluster.refresh([topic])
        yield cluster
    finally:
        await cluster.close()


async def append(target: ClusterClient, tp: TopicPartition, values: Sequence[bytes], *producer: int, at: int) -> None:
    """A batch of these records under (id, epoch, sequence), as slots append."""
    await append_records(target, tp, [record(n, value, timestamp=at) for n, value in enumerate(values)], *producer)


async def append_records(
    target: ClusterClient,
    tp: TopicPartition,
    records: Sequence[PlainRecord],
    *producer: int,
    in_transaction: str | None = None,
) -> int:
    """A batch of these records. Returns the offset of the first one.

    A transaction need not have the partition, if the broker does not verify that. A broker needs a moment until it
    leads a partition that was just created.
    """
    leader = target.require_leader(tp)
    connection = await target.connection(leader.broker, "produce-0")
    batches = [(tp, leader, stamp(batch_bytes(records), *producer, transactional=in_transaction is not None))]
    version, waits = connection.version("produce"), timedelta(seconds=10)
    if in_transaction is not None:
        version = min(version, PRODUCE_BEFORE_KIP_890)
    async with asyncio.timeout(30):
        while True:
            response = await connection.request(produce_request(version, batches, waits, in_transaction))
            answer = produce_answer(response.responses[0].partition_responses[0])
            if answer.code != ErrorCode.not_leader_or_follower:
                break
            await asyncio.sleep(0.1)
    assert answer.code == 0
    return int(answer.base_offset)


def first_row(topic: str, downstream: int, epoch: int = 0) -> PartitionProgress:
    """The row of a chain that begins behind what the log holds."""
    return PartitionProgress(
        topic="t", partition=0, producer_id=OURS, producer_epoch=epoch, upstream=-1, downstream=downstream
    )


async def found_by(target: ClusterClient, topic: str, epoch: int = 0) -> LastAppend:
    """What a copy that begins now is told of its chain."""
    end = await target.end_offset((topic, 0))
    tail = await read_tail(target, PartitionState("t", 0, topic, 0), first_row(topic, end - 1, epoch))
    return tail.last_append()


@pytest.mark.parametrize("others", [0, SEARCHED + 10])
async def test_chain_position_before_its_begin_is_found(pair: Pair, others: int) -> None:
    """By the log, or behind much of others by its leader's memory."""
    topic = create_topic(pair.b.bootstrap)
    async with cluster(pair.b.bootstrap, topic) as target:
        assert await found_by(target, topic) == LastAppend(-1, -1)
        await append(target, (topic, 0), [b"v"] * HELD, OURS, 3, 0, at=now())
        if others:
            await asyncio.to_thread(produce, pair.b.bootstrap, topic, [Record(value=b"theirs")] * others)
        with pytest.raises(LogContradiction) as found:
            await found_by(target, topic, epoch=3)
        assert found.value.epoch == 3
        assert await found_by(target, topic, epoch=4) == LastAppend(-1, HELD + others - 1), "that chain has ended"


@pytest.mark.long
async def test_chain_position_is_found_where_the_leader_has_forgotten_us() -> None:
    with Broker("forgetful", properties=FORGETS) as broker:
        topic = create_topic(broker.bootstrap)
        async with cluster(broker.bootstrap, topic) as target:
            await append(target, (topic, 0), [b"v"] * HELD, OURS, 0, 0, at=now() - THREE_DAYS_MS)
            async with asyncio.timeout(30):
                while await active_producers(target, (topic, 0), {OURS}):
                    await asyncio.sleep(0.1)
            with pytest.raises(LogContradiction, match="which our row does not include"):
                await found_by(target, topic)


def now() -> int:
    return time.time_ns() // 1_000_000


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(key=b"k", value=b"%d" % (first + n), timestamp_ms=1_000) for n in range(count)]


def without_a_row(flow: MirroredFlow, stem: str, held: int = HELD, there: int = THERE) -> str:
    """A topic of which so many records are on the target already, under the flow's own id, and no row says so."""
    topic = unique_name(stem)
    remote = create_topic(flow.target, flow.remote(topic))

    async def appended() -> None:
        async with cluster(flow.target, remote) as target:
            values = [r.value or b"" for r in numbered(held)]
            await append(target, (remote, 0), values, own_id(flow), 0, 0, at=1_000)

    asyncio.run(appended())
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(there))
    return topic


def own_id(flow: MirroredFlow) -> int:
    return wait_until(lambda: flow.rows(Origin), within=SOON, every=0.1, what="the flow has its id")[0].producer_id


def write_down(flow: MirroredFlow, topic: str, upstream: int) -> None:
    """A row as the slot had written it that appended these: up to there, and no more."""
    seen = flow.wait_mirrored(topic)
    row = PartitionProgress(
        topic=topic,
        partition=0,
        upstream=upstream,
        downstream=upstream,
        sequence=upstream,
        producer_id=own_id(flow),
        source_topic_id=seen.source_topic_id,
        target_topic_id=seen.target_topic_id,
    )
    key, value = row.encode()
    produce(flow.target, state_topic(flow.flow), [Record(key, value, partition=0)])


def untroubled(flow: MirroredFlow, topic: str) -> None:
    for kind in ("GapFound", "PartitionHalted", "ForeignWrite"):
        assert flow.events(kind, topic) == flow.events(kind, flow.remote(topic)) == []


@pytest.mark.parametrize("held", [pytest.param(HELD, marks=pytest.mark.long), 20_000])
def test_a_row_that_comes_late_is_waited_for_however_far_it_is_behind(
    mirror: Mirror, there: MirroredFlow, held: int
) -> None:
    """Another slot has begun the partition, and we had read the state before it wrote its row."""
    topic = without_a_row(there, "there-late", held, held + THERE)

    def waits() -> bool:
        said = mirror.data_plane.text().splitlines()
        return any(topic in line and "waiting for the row" in line for line in said)

    wait_until(waits, within=SOON, every=0.1, what="it has looked, and waits")
    assert there.progress(topic) == {}, "nothing is written that says less"
    write_down(there, topic, 3)
    assert len(there.wait_copied(topic)) == held + THERE
    recovered = there.wait_event("ProgressRecovered", f"{topic}-0", within=SOON)
    assert (recovered.detail["records"], recovered.detail["upstream"]) == (held - 4, 3)
    untroubled(there, topic)


@pytest.mark.long
def test_source_that_lost_what_was_appended_is_truncated(there: MirroredFlow) -> None:
    """What comes next is not taken for the lost records."""
    halts, goes_on = (without_a_row(there, stem, there=HELD - 3) for stem in ("there-short", "there-skip-short"))
    for topic in (halts, goes_on):
        write_down(there, topic, 3)
    there.wait_event("PartitionHalted", f"{halts}-0", within=SOON)
    wait_until(lambda: there.progress(halts)[0].phase == "halted", within=SOON, every=0.25)
    assert there.progress(halts)[0].case == "source-truncated"
    assert end_offsets(there.target, there.remote(halts))[0] == HELD
    event = there.wait_event("GapSkipped", f"{goes_on}-0", within=SOON)
    assert event.detail["begin"] == HELD - 3
    new = numbered(5, first=100)
    produce(there.source, goes_on, new)
    there.wait_holds(goes_on, [*numbered(HELD), *new])


@pytest.mark.long
def test_row_that_never_comes_halts_for_a_decision(there: MirroredFlow) -> None:
    halts, goes_on = without_a_row(there, "there-lost"), without_a_row(there, "there-doubt")
    there.wait_event("PartitionHalted", f"{halts}-0", within=SOON)
    wait_until(lambda: there.progress(halts)[0].phase == "halted", within=SOON, every=0.25)
    assert there.progress(halts)[0].case == "in-doubt"
    assert end_offsets(there.target, there.remote(halts))[0] == HELD
    event = there.wait_event("ResumedWithDoubt", f"{goes_on}-0", within=SOON)
    assert (event.detail["begin"], event.detail["again"]) == (0, [0, THERE - 1])
    there.wait_written_down(goes_on)
    twice = [r.value for r in numbered(HELD) + numbered(THERE)]
    assert [r.value for r in read_topic(there.target, there.remote(goes_on))] == twice
    assert there.progress(goes_on)[0].producer_epoch == 1
