"""Replay, follow, append and administer against a real broker."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.request_pieces import merge_outcomes
from lockstep_kafka.common.admin_types import NewTopic
from lockstep_kafka.common.errors import ClusterUnreachable, LogTruncated, RequestRefused, TopicMissing
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.control_topics import ControlTopic, ensure_control_topics
from lockstep_kafka.topics.topic_follower import TopicFollower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_state.acl_binding import AclBinding
from lockstep_state.codecs.murmur2 import partition_for
from tests.support.broker import Broker
from tests.support.clusters import Record as Written
from tests.support.clusters import create_topic, delete_topic, end_offsets, produce, produce_transaction, unique_name
from tests.support.eventually import eventually, wait_until
from tests.support.ports import free_port


def conf(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture
async def facts(broker_b: Broker) -> AsyncIterator[ControlProducer]:
    producer = ControlProducer("B", conf(broker_b))
    await producer.start()
    yield producer
    await producer.stop()


def _has(seen: Sequence[Record], count: int) -> bool:
    return len(seen) == count


def _write(broker: Broker, topic: str, numbers: Iterable[int]) -> None:
    produce(broker.bootstrap, topic, [Written(value=b"%d" % number) for number in numbers])


def _numbers(seen: Sequence[Record]) -> list[int]:
    return [int(record.value or b"") for record in seen]


async def test_a_follower_replays_in_order_then_wakes_at_once(
    broker_b: Broker, topic_name: str, facts: ControlProducer
) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    log = ControlTopicLog(facts, topic_name)
    count = 20_000
    await log.append_all((f"k{i}".encode(), str(i).encode()) for i in range(count))
    seen: list[Record] = []
    began = time.monotonic()
    async with TopicFollower(conf(broker_b), topic_name, on_records=seen.extend, alias="B") as follower:
        await follower.caught_up()
        replayed = time.monotonic() - began
        assert _numbers(seen) == list(range(count))
        assert [r.offset for r in seen] == list(range(count))
        assert follower.positions == {0: count}

        # An idle fetch waits half a second at the broker; a new record must not.
        latencies = []
        for i in range(5):
            began = time.monotonic()
            assert await log.append(b"new", str(i).encode()) == count + i
            await eventually(partial(_has, seen, count + i + 1), every=0.002)
            latencies.append(time.monotonic() - began)
    assert sorted(latencies)[2] < 0.4
    assert replayed < 20.0


async def test_an_empty_topic_is_caught_up_at_once(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name, partitions=6)
    await asyncio.wait_for(TopicFollower(conf(broker_b), topic_name, on_records=lambda _: None).replay(), 15.0)
    async with TopicFollower(conf(broker_b), topic_name, on_records=lambda _: None) as follower:
        await asyncio.wait_for(follower.permitted(), 15.0)
        assert follower.positions == dict.fromkeys(range(6), 0)


async def test_follow_from_the_end_misses_nothing_after_it_caught_up(
    broker_b: Broker, topic_name: str, facts: ControlProducer
) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    log = ControlTopicLog(facts, topic_name)
    await log.append(b"k", b"before")
    seen: list[Record] = []
    async with TopicFollower(
        conf(broker_b), topic_name, on_records=seen.extend, from_beginning=False, alias="B"
    ) as follower:
        await follower.caught_up()
        await log.append(b"k", b"after")  # at once, before the consumer has asked for anything
        await eventually(lambda: _has(seen, 1))
    assert [record.value for record in seen] == [b"after"]


async def test_a_replay_passes_over_the_marker_at_the_end_of_a_log(broker_b: Broker, topic_name: str) -> None:
    """The offset before the end then belongs to no record."""
    create_topic(broker_b.bootstrap, topic_name)
    produce_transaction(broker_b.bootstrap, topic_name, [Written(b"k", b"v")])
    # The commit is answered before its marker is written.
    wait_until(lambda: end_offsets(broker_b.bootstrap, topic_name, isolation="read_committed") == {0: 2})
    seen: list[Record] = []
    await asyncio.wait_for(TopicFollower(conf(broker_b), topic_name, on_records=seen.extend).replay(), 15.0)
    assert [r.value for r in seen] == [b"v"]


async def test_a_topic_created_anew_is_noticed(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    produce(broker_b.bootstrap, topic_name, [Written(b"k", str(i).encode()) for i in range(10)])
    seen: list[Record] = []
    async with TopicFollower(conf(broker_b), topic_name, on_records=seen.extend, alias="B") as follower:
        await follower.caught_up()
        assert len(seen) == 10
        delete_topic(broker_b.bootstrap, topic_name)
        create_topic(broker_b.bootstrap, topic_name)
        with pytest.raises((LogTruncated, TopicMissing)):
            await asyncio.wait_for(follower.failed(), 60.0)


async def test_partition_not_fetched_by_librdkafka_is_read_anew_at_its_offset(
    broker_b: Broker, topic_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition that is paused behind the follower's back stands as still as one that librdkafka has lost."""
    to_pause = [TopicPartition(topic_name, 1)]
    asked = threading.Event()

    class Losing(Consumer):
        # On the follower's own thread: another one may wait for ever until the client is between two calls.
        def poll(self, timeout: float = -1) -> Message | None:
            if asked.is_set():
                self.pause(to_pause)
                asked.clear()
            return super().poll(timeout)

    monkeypatch.setattr("lockstep_kafka.topics.topic_reader.Consumer", Losing)
    monkeypatch.setattr("lockstep_kafka.topics.topic_reader.CHECK_INTERVAL", 2.0)
    create_topic(broker_b.bootstrap, topic_name, partitions=2)
    produce(broker_b.bootstrap, topic_name, [Written(value=b"%d" % n, partition=n % 2) for n in range(10)])
    seen: list[Record] = []
    async with TopicFollower(conf(broker_b), topic_name, on_records=seen.extend, alias="B") as follower:
        await follower.caught_up()
        asked.set()
        await eventually(lambda: not asked.is_set())
        produce(broker_b.bootstrap, topic_name, [Written(value=b"%d" % n, partition=n % 2) for n in range(10, 20)])
        await eventually(lambda: _has(seen, 20))
    assert "reading anew" in caplog.text
    for number in range(2):
        assert _numbers([r for r in seen if r.partition == number]) == list(range(number, 20, 2)), "each once, in order"


async def test_lost_client_is_replaced_and_continues_at_its_offset(
    broker_b: Broker, topic_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that fetches nothing and whose questions nobody answers, while the cluster is there for another one."""
    to_pause = [TopicPartition(topic_name, 0)]
    lost = threading.Event()
    clients: list[Consumer] = []

    class Lost(Consumer):
        def __init__(self, conf: dict[str, Any]) -> None:
            super().__init__(conf)
            clients.append(self)

        def poll(self, timeout: float = -1) -> Message | None:
            if lost.is_set() and self is clients[0]:
                self.pause(to_pause)
            return super().poll(timeout)

        def get_watermark_offsets(
            self, partition: TopicPartition, timeout: float = -1, cached: bool = False
        ) -> tuple[int, int]:
            if lost.is_set() and self is clients[0]:
                raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
            return super().get_watermark_offsets(partition, timeout, cached)

    monkeypatch.setattr("lockstep_kafka.topics.topic_reader.Consumer", Lost)
    monkeypatch.setattr("lockstep_kafka.topics.topic_reader.CHECK_INTERVAL", 1.0)
    create_topic(broker_b.bootstrap, topic_name)
    _write(broker_b, topic_name, range(10))
    seen: list[Record] = []
    with caplog.at_level("DEBUG"):
        async with TopicFollower(conf(broker_b), topic_name, on_records=seen.extend, alias="B") as follower:
            await follower.caught_up()
            lost.set()
            await asyncio.sleep(1.0)  # what was fetched before is handed over
            _write(broker_b, topic_name, range(10, 20))
            await eventually(lambda: len(seen) >= 20)
            await eventually(lambda: follower.positions == {0: 20})
    assert _numbers(seen) == list(range(20)), "each once, in order"
    assert len(clients) == 2
    assert "connecting anew" in caplog.text


@pytest.mark.long
async def test_a_follower_goes_on_when_its_broker_was_away_for_long(
    topic_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lockstep_kafka.topics.topic_reader.CHECK_INTERVAL", 1.0)
    with Broker("away") as broker:
        create_topic(broker.bootstrap, topic_name)
        _write(broker, topic_name, range(10))
        seen: list[Record] = []
        with caplog.at_level("DEBUG"):
            async with TopicFollower(conf(broker), topic_name, on_records=seen.extend, alias="away") as follower:
                await follower.caught_up()
                await asyncio.to_thread(broker.stop)
                await eventually(lambda: caplog.text.count("connecting anew") >= 2, within=60)
                await asyncio.to_thread(broker.start)
                _write(broker, topic_name, range(10, 20))
                await eventually(lambda: follower.positions == {0: 20})
        assert _numbers(seen) == list(range(20)), "each once, in order"


async def test_follower_ends_with_the_error_of_its_receiver(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    produce(broker_b.bootstrap, topic_name, [Written(b"k", b"v")])

    def refuse(records: Sequence[Record]) -> None:
        raise LookupError(str(records[0].offset))

    async with TopicFollower(conf(broker_b), topic_name, on_records=refuse) as follower:
        with pytest.raises(LookupError, match="0"):
            await follower.caught_up()


async def test_missing_topic_is_reported_as_missing(broker_b: Broker) -> None:
    with pytest.raises(TopicMissing):
        await asyncio.wait_for(
            TopicFollower(conf(broker_b), unique_name("missing"), on_records=lambda _: None).replay(), 30.0
        )


async def test_facts_go_where_mm2_puts_them(broker_b: Broker, topic_name: str, facts: ControlProducer) -> None:
    create_topic(broker_b.bootstrap, topic_name, partitions=25)
    keys = [f"key-{i}".encode() for i in range(50)]
    await ControlTopicLog(facts, topic_name).append_all((key, b"") for key in keys)
    await ControlTopicLog(facts, topic_name).append(b"explicit", None, partition=7, timestamp_ms=1234567890123)
    seen: list[Record] = []
    await TopicFollower(conf(broker_b), topic_name, on_records=seen.extend).replay()
    where = {r.key: r for r in seen}
    assert all(where[key].partition == partition_for(key, 25) for key in keys)
    assert (where[b"explicit"].partition, where[b"explicit"].timestamp_ms) == (7, 1234567890123)


async def test_mm2_146_147_control_topics_are_created_once_and_their_factor_fits(
    broker_b: Broker, topic_name: str
) -> None:
    admin = Admin("B", conf(broker_b))
    wanted = [ControlTopic(topic_name, 6, 3, {"cleanup.policy": "delete", "retention.ms": "1000"})]
    created = await asyncio.gather(*(ensure_control_topics(admin, wanted) for _ in range(3)))
    assert sorted(topic.names for topic in created) == [(), (), (topic_name,)]
    described = (await admin.topics([topic_name])).done
    assert described[topic_name].partitions == 6  # with three replicas one broker would have refused it
    assert len(described[topic_name].topic_id) == 22
    configs = (await merge_outcomes(admin.config_pieces([topic_name]))).done[topic_name]
    assert {c.value for c in configs if c.name == "segment.index.bytes"} == {str(64 << 10)}


async def test_control_topic_is_created_without_what_the_cluster_refuses(broker_b: Broker, topic_name: str) -> None:
    admin = Admin("B", conf(broker_b))
    configs = {"cleanup.policy": "compact", "segment.bytes": "tiny", "no.such.config": "1"}
    created = await ensure_control_topics(admin, [ControlTopic(topic_name, 1, 1, configs)])
    assert created.names == (topic_name,)
    assert created.refused[topic_name].keys() == {"segment.bytes", "no.such.config"}
    there = {c.name: c.value for c in (await merge_outcomes(admin.config_pieces([topic_name]))).done[topic_name]}
    assert (there["cleanup.policy"], there["segment.index.bytes"]) == ("compact", str(64 << 10))


async def test_mm2_151_152_topic_that_cannot_be_created_is_an_error_with_cause(
    broker_b: Broker, topic_name: str
) -> None:
    wrong = [ControlTopic(topic_name, 1, 1, {"cleanup.policy": "shred"})]
    with pytest.raises(RequestRefused, match=rf"refused to create topic {topic_name}: .*shred"):
        await ensure_control_topics(Admin("B", conf(broker_b)), wrong)
    nobody = Admin("C", {"bootstrap.servers": f"127.0.0.1:{free_port()}"}, timedelta(seconds=1))
    with pytest.raises(ClusterUnreachable, match=r"cluster C at .* cannot be reached: "):
        await ensure_control_topics(nobody, [ControlTopic(topic_name)])


async def test_partial_success_is_a_value(broker_b: Broker, topic_name: str) -> None:
    admin = Admin("B", conf(broker_b))
    outcome = await admin.create_topics([NewTopic(topic_name, 1, 1), NewTopic("not/allowed", 1, 1)])
    assert outcome.done == {topic_name: None}
    assert "not/allowed" in str(outcome.failed["not/allowed"])
    again = await admin.create_topics([NewTopic(topic_name, 1, 1)])
    assert Admin.is_existing_topic(again.failed[topic_name])
    deadline = time.monotonic() + 15.0
    while not await admin.topic(topic_name) and time.monotonic() < deadline:
        continue  # created a moment ago; each look asks the broker
    described = await admin.topics([topic_name])
    assert described.done.keys() == {topic_name}
    assert await admin.topics([topic_name, "x" * 300, unique_name()]) == described


async def test_configs_are_set_and_taken_back(broker_b: Broker, topic_name: str) -> None:
    admin = Admin("B", conf(broker_b))
    create_topic(broker_b.bootstrap, topic_name)

    async def flush() -> tuple[str, bool, bool]:
        configs = (await merge_outcomes(admin.config_pieces([topic_name]))).done[topic_name]
        (entry,) = (c for c in configs if c.name == "flush.messages")
        return entry.value, entry.is_topics, entry.is_default

    async def becomes(wanted: tuple[str, bool, bool]) -> None:
        found: tuple[str, bool, bool] | None = None
        deadline = time.monotonic() + 15.0
        while found != wanted and time.monotonic() < deadline:
            found = await flush()
        assert found == wanted

    default = await flush()
    assert not (await admin.alter_configs({topic_name: {"flush.messages": "5"}})).troubles()
    await becomes(("5", True, False))
    assert not (await admin.alter_configs({topic_name: {"flush.messages": None}})).troubles()
    await becomes(default)


async def test_an_unreachable_cluster_is_named_with_address_and_reason() -> None:
    address = f"127.0.0.1:{free_port()}"
    admin = Admin("C", {"bootstrap.servers": address})
    with pytest.raises(ClusterUnreachable) as error:
        await admin.probe(timedelta(seconds=2))
    assert str(error.value).startswith(f"cluster C at {address} cannot be reached: ")
    assert "refused" in str(error.value)


async def test_acls_are_deleted_one_by_one_and_absent_ones_are_no_trouble(broker_b: Broker, topic_name: str) -> None:
    admin = Admin("B", conf(broker_b))
    ann, bob = (AclBinding(topic_name, f"User:{user}", operation="READ", permission="ALLOW") for user in ("ann", "bob"))
    await admin.create_acls([ann, bob])
    outcome = await admin.delete_acls([ann, replace(bob, principal="User:eve")])
    assert (len(outcome.done), outcome.troubles()) == (2, {})
    deadline = time.monotonic() + 15.0
    while ann in (left := await admin.describe_acls("TOPIC")) and time.monotonic() < deadline:
        continue  # brokers learn of it a moment later
    assert [task for task in left if task.name == topic_name] == [bob]
    await admin.delete_acls([bob])
