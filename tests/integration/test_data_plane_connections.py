"""The data plane's own connections on real brokers: sessions, time-outs, and connections that the broker closes.

Fetching and producing are driven here without a slot around them, so that each request can be timed."""

import asyncio
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.events import Acked, Received
from lockstep_data_plane.fetch import fetch_sizes
from lockstep_data_plane.fetch.fetcher import Delivery, Fetcher
from lockstep_data_plane.produce.sender import AnsweredBatch, NoProduceAnswer, Sender
from lockstep_kafka.messages.fetch_codec import DIVERGED
from lockstep_kafka.messages.message_versions import EncodedRequest
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_kafka.wire.connection import Connection
from lockstep_runtime.util.clock import now_ms
from tests.integration.partition_fetches import copying, fetched_elsewhere, fetching_from
from tests.support.batch_bytes import batch, record
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce
from tests.support.eventually import eventually
from tests.support.kio_codec import read_back
from tests.support.proxy import Proxy

PARTITIONS, SINGLE, LARGE = 4, 20_000, 400
SOME_RECORDS = 600
"""In batches of their own. A fetch brings a whole batch, however large, of one partition all the same."""

OFFSET_OUT_OF_RANGE, UNKNOWN_LEADER_EPOCH = 1, 75


@pytest.mark.long
async def test_connections_for_single_records_are_one_and_for_much_two(
    broker_a: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(broker_a.bootstrap, partitions=PARTITIONS)
    cluster = connect_cluster("a", {"bootstrap.servers": broker_a.bootstrap}, "test")
    offsets: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    room, attached = [True], [copying(topic, number) for number in range(PARTITIONS)]

    def fetched(delivery: Delivery) -> None:
        for received in delivery.batches:
            offsets[delivery.partition.number].extend(range(received.base_offset, received.last_offset + 1))

    fetcher = fetching_from(
        cluster, fetched, FetchSettings(max_partition_bytes=SOME_RECORDS), has_room=lambda partition: room[0]
    )

    def by_connection() -> list[int]:
        return sorted(len(fetch_connection.partitions) for fetch_connection in fetcher._connections.values())

    def read() -> int:
        return sum(map(len, offsets.values()))

    def write(count: int, size: int, **settings: str) -> None:
        records = [Record(value=b"x" * size, partition=number % PARTITIONS) for number in range(count)]
        produce(broker_a.bootstrap, topic, records, settings=settings)

    try:
        write(SINGLE, 10, **{"linger.ms": "0", "batch.num.messages": "1"})
        await cluster.refresh([topic])
        for partition in attached:
            fetcher.attach(partition)
        await eventually(lambda: read() == SINGLE, within=60)
        assert by_connection() == [4]
        room[0] = False
        write(LARGE, 100_000, **{"linger.ms": "50"})
        room[0] = True
        for partition in attached:
            fetcher.set_held(partition, 0)
        await eventually(lambda: read() == SINGLE + LARGE, within=60)
        assert by_connection() == [2, 2]
        monkeypatch.setattr(fetch_sizes, "MUCH_LASTS_S", 1.0)
        await eventually(lambda: by_connection() == [0, 4], what="one connection waits where little comes")
        write(PARTITIONS, 10)
        await eventually(lambda: read() == SINGLE + LARGE + PARTITIONS, within=60)
        assert by_connection() == [0, 4]
        assert fetcher.crashed() is None
    finally:
        await fetcher.close()
        await cluster.close()
    assert offsets == {number: list(range((SINGLE + LARGE) // PARTITIONS + 1)) for number in range(PARTITIONS)}


@dataclass(slots=True)
class Reading:
    """Fetches of a test's own, what they brought, and each request that they sent, as kio reads it."""

    cluster: ClusterClient
    fetcher: Fetcher
    offsets: dict[int, list[int]]
    codes: list[int]
    asked: list[Any]

    def said(self) -> list[dict[int, Any]]:
        """What each request says of partitions, by their numbers."""
        return [{part.partition: part for topic in each.topics for part in topic.partitions} for each in self.asked]


@asynccontextmanager
async def reading(
    bootstrap: str,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    properties: Mapping[str, str] | None = None,
    *,
    max_wait_ms: int = 100,
) -> AsyncIterator[Reading]:
    """Nothing is fetched yet."""
    offsets: dict[int, list[int]] = defaultdict(list)
    codes: list[int] = []
    asked: list[Any] = []
    send = Connection.send

    def noted(connection: Connection, entity: Any, *more: Any) -> asyncio.Future[Any]:
        if isinstance(entity, EncodedRequest):
            asked.append(read_back(entity))
        return send(connection, entity, *more)

    def fetched(delivery: Delivery) -> None:
        if delivery.fetched.code:
            codes.append(delivery.fetched.code)
            made.fetcher.detach(delivery.partition)
        for received in delivery.batches:
            offsets[delivery.partition.number].extend(range(received.base_offset, received.last_offset + 1))

    monkeypatch.setattr(Connection, "send", noted)
    cluster = connect_cluster("a", {"bootstrap.servers": bootstrap, **(properties or {})}, "test")
    fetcher = fetching_from(cluster, fetched, FetchSettings(max_wait_ms=max_wait_ms))
    made = Reading(cluster, fetcher, offsets, codes, asked)
    try:
        await cluster.refresh([topic])
        yield made
        assert fetcher.crashed() is None
    finally:
        await fetcher.close()
        await cluster.close()


async def test_a_session_holds_and_what_follows_names_only_what_moved(
    broker_a: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(broker_a.bootstrap, partitions=PARTITIONS)
    produce(broker_a.bootstrap, topic, [Record(value=b"1", partition=number) for number in range(PARTITIONS)])
    async with reading(broker_a.bootstrap, topic, monkeypatch) as all_of_it:
        for number in range(PARTITIONS):
            all_of_it.fetcher.attach(copying(topic, number))
        await eventually(lambda: sum(map(len, all_of_it.offsets.values())) == PARTITIONS)
        await eventually(lambda: all_of_it.said()[-3:] == [{}] * 3, what="nothing moves, nothing is named")
        for number in range(3):
            produce(broker_a.bootstrap, topic, [Record(value=b"2", partition=2)])
            await eventually(partial(_is, all_of_it.offsets[2], 2 + number))
        await eventually(lambda: all_of_it.said()[-1:] == [{}])
    first, *after = all_of_it.asked
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert set(all_of_it.said()[0]) == set(range(PARTITIONS))
    (session,) = {each.session_id for each in after}
    assert session != 0, "the broker has made one, and knows it each time"
    assert [each.session_epoch for each in after] == list(range(1, len(after) + 1))
    moved = [{n: part.fetch_offset for n, part in each.items()} for each in all_of_it.said()[1:] if each]
    assert [each for each in moved if 2 in each][-3:] == [{2: 2}, {2: 3}, {2: 4}], "each alone"
    assert sum(map(len, moved)) == PARTITIONS + 3, "and nothing is named that has not moved"


async def test_broker_gets_leader_epochs_and_refuses_a_later_or_diverged_one(
    broker_a: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(broker_a.bootstrap)
    produce(broker_a.bootstrap, topic, [Record(value=b"1")])
    async with reading(broker_a.bootstrap, topic, monkeypatch) as reader:
        leader = reader.cluster.require_leader((topic, 0))
        assert leader.epoch >= 0
        partition = copying(topic)
        reader.fetcher.attach(partition)
        await eventually(lambda: reader.said()[-1:] == [{}])
        said = [
            (part.current_leader_epoch, part.last_fetched_epoch) for each in reader.said() for part in each.values()
        ]
        assert said == [(leader.epoch, -1)] * 2, "and not that of the record, which this leader has appended"
        reader.cluster._leaders[topic, 0] = replace(leader, epoch=leader.epoch + 1)
        reader.fetcher.attach(partition)
        await eventually(partial(_is_code, reader.codes, UNKNOWN_LEADER_EPOCH))
        reader.cluster._leaders[topic, 0] = leader
        partition.step(Received(0, leader.epoch + 1))  # as if another leader had given us what this one never had
        reader.fetcher.attach(partition)
        await eventually(partial(_is_code, reader.codes, OFFSET_OUT_OF_RANGE))
        reader.cluster._leaders[topic, 0] = replace(leader, epoch=-1)  # it is not said in which epoch it leads
        partition.step(Received(5, leader.epoch))  # and more of it than this log holds
        reader.fetcher.attach(partition)
        await eventually(partial(_is_code, reader.codes, DIVERGED))


async def test_fetch_held_by_the_broker_for_its_wait_does_not_time_out(
    broker_a: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(broker_a.bootstrap)
    impatient = {"request.timeout.ms": "1500"}
    async with reading(broker_a.bootstrap, topic, monkeypatch, impatient, max_wait_ms=2000) as idle:

        def asked_again() -> bool:
            idle.fetcher.end_stuck()
            assert idle.fetcher.crashed() is None, "no connection was given up"
            if not any(each.partitions for each in idle.fetcher._connections.values()):
                idle.asked.clear()  # a busy broker has refused the topic, which it has just created
                idle.fetcher.attach(copying(topic))
            return len(idle.asked) == 3

        await eventually(asked_again)
        assert len({each.session_id for each in idle.asked[1:]}) == 1


async def test_request_without_an_answer_times_out_as_set_in_the_file(broker_a: Broker, proxy_a: Proxy) -> None:
    topic = create_topic(broker_a.bootstrap)
    cluster = connect_cluster("a", {"bootstrap.servers": proxy_a.bootstrap, "request.timeout.ms": "1000"}, "test")
    written, read = copying(topic), copying(topic)
    answers: list[ProduceAnswer | NoProduceAnswer] = []
    troubles: list[str] = []

    def answered(batches: Sequence[AnsweredBatch]) -> None:
        answers.extend(answer for _, _, answer in batches)

    sender = Sender(cluster, answered)
    fetcher = fetching_from(cluster, lambda delivery: None, on_trouble=lambda partition, why: troubles.append(why))

    def given_up() -> bool:
        fetcher.end_stuck()
        sender.end_stuck()
        return bool(answers) and bool(troubles)

    try:
        await cluster.refresh([topic])
        await sender.attach(written)
        fetcher.attach(read)
        assert await cluster.end_offset((topic, 0)) == 0
        proxy_a.hold(requests=False)
        fetched_elsewhere(written, batch([record(0, timestamp=now_ms())]))
        sender.mark_ready(written)
        sender.pump()
        await eventually(given_up, what="the append and the fetch are given up")
        assert all(connection.closed for connection in cluster._connections.values()), "idle ones are not trusted"
        assert [type(answer) for answer in answers] == [NoProduceAnswer]
        assert fetcher.crashed() is None
    finally:
        proxy_a.heal()
        await fetcher.close()
        await cluster.close()
    assert end_offsets(broker_a.bootstrap, topic) == {0: 1}, "what nobody answered was appended all the same"


def _is_code(codes: list[int], code: int) -> bool:
    return codes[-1:] == [code]


@pytest.mark.long
async def test_connections_closed_as_idle_are_opened_again_silently() -> None:
    with Broker("idle", properties={"connections.max.idle.ms": "700"}) as broker:
        topic = create_topic(broker.bootstrap)
        cluster = connect_cluster("idle", {"bootstrap.servers": broker.bootstrap}, "test")
        written, read, room = copying(topic), copying(topic), [True]
        offsets: list[int] = []

        def answered(batches: Sequence[AnsweredBatch]) -> None:
            for partition, sent, answer in batches:
                assert isinstance(answer, ProduceAnswer), answer
                partition.step(Acked(sent, answer.base_offset, now_ms()))

        def fetched(delivery: Delivery) -> None:
            offsets.extend(received.base_offset for received in delivery.batches)
            room[0] = room[0] and not delivery.batches  # an answer may also bring no more than a new end

        sender = Sender(cluster, answered)
        fetcher = fetching_from(cluster, fetched, has_room=lambda partition: room[0])
        try:
            await cluster.refresh([topic])
            await sender.attach(written)
            fetcher.attach(read)
            for number in range(3):
                fetched_elsewhere(written, batch([record(number, timestamp=now_ms())]))
                sender.mark_ready(written)
                sender.pump()
                await eventually(partial(_is, offsets, number + 1))
                await eventually(lambda: not written.routing.records_held, what="the append is acknowledged")
                opened = list(cluster._connections.values())
                await eventually(partial(_all_closed, opened), what="the broker closes idle connections")
                room[0] = True
                fetcher.set_held(read, 0)
            assert fetcher.crashed() is None
        finally:
            await fetcher.close()
            await cluster.close()
    assert offsets == [0, 1, 2]


def _is(offsets: list[int], count: int) -> bool:
    return len(offsets) == count


def _all_closed(connections: list[Connection]) -> bool:
    return all(connection.closed for connection in connections)


async def test_the_sizes_of_a_sockets_buffers_are_as_configured(broker_a: Broker) -> None:
    async def size(**properties: str) -> int:
        named = {key.replace("_", "."): value for key, value in properties.items()}
        cluster = connect_cluster("a", {"bootstrap.servers": broker_a.bootstrap, **named}, "test")
        try:
            await cluster.refresh([])
            connection = await cluster.any_connection()
            found: int = connection._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            return found
        finally:
            await cluster.close()

    # Linux doubles what it is told, for its own accounts.
    assert await size(receive_buffer_bytes="50000") in (50_000, 100_000)
    assert await size(receive_buffer_bytes="-1") == await size()
