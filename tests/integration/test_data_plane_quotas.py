"""Quotas of real brokers: a client over its quota waits, and nothing is lost or doubled."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.events import Acked
from lockstep_data_plane.fetch.fetcher import Delivery
from lockstep_data_plane.produce.sender import AnsweredBatch, NoProduceAnswer, Sender
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_kafka.wire.connection import Connection
from lockstep_runtime.util.clock import now_ms
from tests.integration.partition_fetches import copying, fetched_elsewhere, fetching_from
from tests.support.batch_bytes import batch, record
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name
from tests.support.eventually import eventually
from tests.support.wire import set_quota

QUOTA = 20_000.0
RECORDS, RECORD_BYTES = 12, 10_000
"""More than the quota allows in five seconds. A broker handles one request of a connection after the other, which takes
a twentieth of that on a busy machine."""

COUNTS_OVER_S = {"quota.window.num": "2"}
"""Brokers count over eleven seconds by default."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker("Q", properties=COUNTS_OVER_S) as running:
        yield running


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """When each request was sent, and until when its connection was to be left alone then."""
    found: list[tuple[float, float]] = []
    send = Connection.send

    def noted(connection: Connection, *what: Any) -> asyncio.Future[Any]:
        found.append((time.monotonic(), connection.resting_until))
        return send(connection, *what)

    monkeypatch.setattr(Connection, "send", noted)
    return found


@pytest.fixture
def client_id(broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A client id that the broker throttles in both directions by now."""
    name = unique_name("quota")
    set_quota(broker.bootstrap, name, consumer_byte_rate=QUOTA, producer_byte_rate=QUOTA)
    produce_until_throttled(broker.bootstrap, name)
    yield name
    set_quota(broker.bootstrap, name, consumer_byte_rate=None, producer_byte_rate=None)


def produce_until_throttled(bootstrap: str, client_id: str) -> None:
    """A broker counts by a quota a moment after it has accepted it."""
    throttled: list[Any] = []
    settings = {"bootstrap.servers": bootstrap, "client.id": client_id, "throttle_cb": throttled.append}
    topic = create_topic(bootstrap)
    producer = Producer(settings)
    deadline = time.monotonic() + 30
    while not throttled:
        assert time.monotonic() < deadline, "the broker has never throttled the client"
        producer.produce(topic, b"x" * RECORD_BYTES)
        producer.flush(1)


def assert_throttle_obeyed(asked: list[tuple[float, float]]) -> None:
    """The broker throttled a connection, and no request was sent before that time was over."""
    assert any(until for _, until in asked), "the broker has throttled no connection"
    assert [at - until for at, until in asked if at < until] == []


async def test_consumer_over_its_quota_waits_and_loses_nothing(
    broker: Broker, client_id: str, asked: list[tuple[float, float]]
) -> None:
    topic = create_topic(broker.bootstrap)
    one_a_batch = {"batch.num.messages": "1"}
    produce(broker.bootstrap, topic, [Record(value=b"x" * RECORD_BYTES) for _ in range(RECORDS)], settings=one_a_batch)
    cluster = connect_cluster("a", {"bootstrap.servers": broker.bootstrap}, client_id)
    offsets: list[int] = []

    def fetched(delivery: Delivery) -> None:
        offsets.extend(each.base_offset for each in delivery.batches)

    fetcher = fetching_from(cluster, fetched, FetchSettings(max_partition_bytes=5 * RECORD_BYTES))
    try:
        await cluster.refresh([topic])
        fetcher.attach(copying(topic))
        await eventually(lambda: len(offsets) >= RECORDS, within=60)
        assert fetcher.crashed() is None
    finally:
        await fetcher.close()
        await cluster.close()
    assert offsets == list(range(RECORDS))
    assert_throttle_obeyed(asked)
    assert cluster.quota.take_notice() > 0


async def test_producer_over_its_quota_waits_and_doubles_nothing(
    broker: Broker, client_id: str, asked: list[tuple[float, float]]
) -> None:
    topic = create_topic(broker.bootstrap)
    cluster = connect_cluster("a", {"bootstrap.servers": broker.bootstrap}, client_id)
    answers: list[ProduceAnswer | NoProduceAnswer] = []
    partition = copying(topic)

    def answered(batches: Sequence[AnsweredBatch]) -> None:
        for acked, sent, answer in batches:
            answers.append(answer)
            assert isinstance(answer, ProduceAnswer)
            acked.step(Acked(sent, answer.base_offset, now_ms()))

    sender = Sender(cluster, answered)
    large = [batch([record(n, b"x" * RECORD_BYTES, timestamp=now_ms())]) for n in range(RECORDS)]
    try:
        await cluster.refresh([topic])
        await sender.attach(partition)
        fetched_elsewhere(partition, *large)
        sender.mark_ready(partition)
        sender.pump()
        await eventually(lambda: len(answers) >= RECORDS, within=60)
    finally:
        await cluster.close()
    assert [each.base_offset for each in answers if isinstance(each, ProduceAnswer)] == list(range(RECORDS))
    assert_throttle_obeyed(asked)
    assert cluster.quota.take_notice() > 0
    assert end_offsets(broker.bootstrap, topic) == {0: RECORDS}
