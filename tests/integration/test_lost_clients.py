"""Clients of librdkafka that never ask anybody again (docs/decisions/0040), and that others go on instead."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lockstep_heartbeat.upstream_monitor import UpstreamMonitor
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterUnreachable, NotAppended
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.mm2_codec import Heartbeat, encode_heartbeat
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic
from tests.support.eventually import eventually
from tests.support.ports import free_port

AT_ONCE = 6


def conf(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


def first_lost(
    monkeypatch: pytest.MonkeyPatch, where: str, client: Callable[[dict[str, Any]], object]
) -> list[dict[str, Any]]:
    """Of the clients that are made there, the first knows of no broker. What all are made with, as they come."""
    made: list[dict[str, Any]] = []

    def make(conf: dict[str, Any]) -> object:
        made.append(conf)
        return client({**conf, "bootstrap.servers": f"127.0.0.1:{free_port()}"} if len(made) == 1 else conf)

    monkeypatch.setattr(where, make)
    return made


async def test_admin_without_answers_continues_with_another_client(
    broker_b: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = first_lost(monkeypatch, "lockstep_kafka.admin.admin_requests.AdminClient", AdminClient)
    monkeypatch.setattr("lockstep_kafka.admin.admin_requests.QUICK", 1.0)
    admin = Admin("B", conf(broker_b))
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            await admin.cluster_id()
    assert await admin.cluster_id()
    assert len(made) == 2


async def test_rows_without_an_ack_are_sent_by_another_producer(
    broker_b: Broker, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = first_lost(monkeypatch, "lockstep_kafka.librdkafka.control_producer.Producer", Producer)
    create_topic(broker_b.bootstrap, topic_name)
    producer = ControlProducer("B", conf(broker_b), within=1.0)
    facts = ControlTopicLog(producer, topic_name)
    for number in range(2):
        with pytest.raises(NotAppended):
            await facts.append(b"k", b"lost %d" % number, partition=0)

    async def appended() -> bool:
        with contextlib.suppress(NotAppended):  # it may have been sent before the other one was there
            await facts.append(b"k", b"kept", partition=0)
            return True
        return False

    async with asyncio.timeout(30):
        while not await appended():
            pass
    await producer.stop()
    assert [record.value for record in read_topic(broker_b.bootstrap, topic_name)] == [b"kept"]
    assert len(made) == 2


async def test_appends_in_flight_are_settled_by_a_stop(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    producer = ControlProducer("B", conf(broker_b))
    await producer.start()
    sent = ControlTopicLog(producer, topic_name).send(((None, b"%d" % number) for number in range(1_000)), partition=0)
    await producer.stop()
    assert [future.result() for future in sent if future.done()] == [(0, offset) for offset in range(1_000)]


async def test_upstream_monitor_continues_with_another_consumer(
    broker_b: Broker, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = first_lost(monkeypatch, "lockstep_heartbeat.upstream_monitor.Consumer", Consumer)
    monkeypatch.setattr("lockstep_heartbeat.upstream_monitor.QUIET", 1.0)
    create_topic(broker_b.bootstrap, topic_name)
    key, value = encode_heartbeat(Heartbeat("A", "B", now_ms()))
    listener = UpstreamMonitor("B", conf(broker_b), now_ms)
    listener.listen_to([topic_name])
    await eventually(lambda: len(made) == 2)
    produce(broker_b.bootstrap, topic_name, [Record(key, value)])
    await eventually(lambda: topic_name in listener.heartbeats)
    await listener.stop()


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_requests_during_a_broker_start_are_answered_afterwards(topic_name: str) -> None:
    """A broker that has just started can answer that there is none: some of these clients are then lost."""
    with Broker("restarted") as broker:
        create_topic(broker.bootstrap, topic_name)
        producers = [ControlProducer("A", conf(broker), within=2.0) for _ in range(AT_ONCE)]
        admins = [Admin("A", conf(broker)) for _ in range(AT_ONCE)]
        for admin, producer in zip(admins, producers, strict=True):
            await admin.probe()
            await ControlTopicLog(producer, topic_name).append(None, b"before")
        ends_at = time.monotonic() + 8.0

        async def ask(admin: Admin) -> None:
            while time.monotonic() < ends_at:
                with contextlib.suppress(ClusterUnreachable):
                    await admin.probe(timedelta(seconds=0.3))

        async def append(producer: ControlProducer) -> None:
            while time.monotonic() < ends_at:
                with contextlib.suppress(NotAppended):
                    await ControlTopicLog(producer, topic_name).append(None, b"meanwhile")

        asking = asyncio.gather(*map(ask, admins), *map(append, producers))
        await asyncio.to_thread(broker.restart)
        await asking

        async def answered(admin: Admin, producer: ControlProducer) -> bool:
            with contextlib.suppress(ClusterUnreachable, NotAppended):
                await admin.probe()
                await ControlTopicLog(producer, topic_name).append(None, b"after")
                return True
            return False

        for admin, producer in zip(admins, producers, strict=True):
            async with asyncio.timeout(60):
                while not await answered(admin, producer):
                    pass
        assert end_offsets(broker.bootstrap, topic_name)[0] >= 2 * AT_ONCE
        for producer in producers:
            await producer.stop()
