"""The harness keeps its promises: brokers come and go, records come back as written, the proxy cuts what it should."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.conftest import Pair
from tests.support import clusters
from tests.support.broker import Broker
from tests.support.clusters import Record
from tests.support.compaction import compacted_topic
from tests.support.eventually import NeverHappened, eventually, wait_until
from tests.support.proxy import Proxy
from tests.support.topic_comparison import compare

AWKWARD = [
    Record(
        key=b"k", value=b"v", headers=(("h", b"1"), ("h", b"2"), ("empty", b""), ("null", None)), timestamp_ms=1_000
    ),
    Record(key=None, value=b"no key", timestamp_ms=2_000),
    Record(key=b"", value=b"", timestamp_ms=3_000),
    Record(key=b"tombstone", value=None, timestamp_ms=4_000),
]


def test_brokers_are_up_and_are_two_clusters(pair: Pair) -> None:
    ids = {clusters.admin(broker.bootstrap).list_topics(timeout=10).cluster_id for broker in (pair.a, pair.b)}
    assert ids == {pair.a.cluster_id, pair.b.cluster_id}
    assert len(ids) == 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_written(broker_a: Broker, topic_name: str, codec: str) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    clusters.produce(broker_a.bootstrap, topic_name, AWKWARD, codec=codec)
    read = clusters.read_topic(broker_a.bootstrap, topic_name)
    assert [record.same_as() for record in read] == [record.same_as() for record in AWKWARD]
    assert [record.offset for record in read] == [0, 1, 2, 3]


def test_topic_is_read_again_if_records_are_deleted_meanwhile(
    broker_a: Broker, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    clusters.produce(broker_a.bootstrap, topic_name, [Record(value=b"%d" % number) for number in range(10)])
    clusters.delete_records(broker_a.bootstrap, topic_name, 5)
    now, bounds = clusters._bounds, [(0, 10)]
    monkeypatch.setattr(clusters, "_bounds", lambda *about: bounds.pop() if bounds else now(*about))
    assert [record.offset for record in clusters.read_topic(broker_a.bootstrap, topic_name)] == [5, 6, 7, 8, 9]
    assert bounds == []


def test_an_aborted_transaction_shows_only_uncommitted(broker_a: Broker, topic_name: str) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    clusters.produce_transaction(broker_a.bootstrap, topic_name, [Record(value=b"kept")])
    clusters.produce_transaction(broker_a.bootstrap, topic_name, [Record(value=b"gone")], commit=False)
    committed = clusters.read_topic(broker_a.bootstrap, topic_name)
    everything = clusters.read_topic(broker_a.bootstrap, topic_name, isolation="read_uncommitted")
    assert [record.value for record in committed] == [b"kept"]
    assert [record.value for record in everything] == [b"kept", b"gone"]
    assert clusters.end_offsets(broker_a.bootstrap, topic_name) == {0: 4}, "two records and two markers"


def test_partitions_grow_and_topics_go(broker_a: Broker, topic_name: str) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name, partitions=2)
    clusters.add_partitions(broker_a.bootstrap, topic_name, 3)
    assert clusters.end_offsets(broker_a.bootstrap, topic_name) == {0: 0, 1: 0, 2: 0}
    clusters.delete_topic(broker_a.bootstrap, topic_name)
    with pytest.raises(KafkaException):
        clusters.produce(broker_a.bootstrap, topic_name, [Record(value=b"")], settings={"message.timeout.ms": "2000"})


def test_topic_created_a_moment_ago_can_be_read(broker_a: Broker, topic_name: str) -> None:
    new = NewTopic(topic_name, num_partitions=20, replication_factor=1)
    client = clusters.admin(broker_a.bootstrap)
    client.create_topics([new])[topic_name].result(10)
    assert clusters.read_topic(broker_a.bootstrap, topic_name) == [], "whether or not each partition is led by now"


def test_groups_keep_their_offsets(broker_a: Broker, topic_name: str) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    assert clusters.committed_offset(broker_a.bootstrap, topic_name, topic_name, 0) is None
    clusters.commit_offset(broker_a.bootstrap, topic_name, topic_name, 0, 7)
    assert clusters.committed_offset(broker_a.bootstrap, topic_name, topic_name, 0) == 7


def test_acls_can_be_created_and_listed(broker_a: Broker, topic_name: str) -> None:
    on, principal_and_host = (ResourceType.TOPIC, topic_name, ResourcePatternType.LITERAL), ("User:reader", "*")
    acl = AclBinding(*on, *principal_and_host, AclOperation.READ, AclPermissionType.ALLOW)
    mine = AclBindingFilter(*on, *principal_and_host, AclOperation.ANY, AclPermissionType.ANY)
    client = clusters.admin(broker_a.bootstrap)
    client.create_acls([acl])[acl].result(10)
    assert wait_until(lambda: client.describe_acls(mine).result(10)) == [acl]


def test_a_compacted_topic_has_gaps(broker_a: Broker, topic_name: str) -> None:
    remaining = compacted_topic(broker_a.bootstrap, topic_name)
    offsets = [record.offset for record in remaining if record.offset is not None]
    steps = {later - earlier for earlier, later in pairwise(offsets)}
    assert 4 in steps, "between two records that stayed, three are gone"
    assert len({record.key for record in remaining}) == 50 + 5 + 1, "kept for good, shared keys, and the one that rolls"


def test_comparison_counts_missing_doubled_and_reordered_records() -> None:
    one, two, three = (Record(value=value, partition=0) for value in (b"1", b"2", b"3"))
    assert compare([one, two, three], [one, two, three]).equal
    assert compare([one, two, three], [one, three]).missing == 1
    assert compare([one, two, three], [one, two, two, three]).doubled == 1
    swapped = compare([one, two, three], [two, one, three])
    assert (swapped.missing, swapped.doubled, swapped.reordered) == (0, 0, 2)
    assert swapped.first_difference is not None
    moved = compare([one], [Record(value=b"1", partition=1)])
    assert (moved.missing, moved.doubled) == (1, 1)


@pytest.mark.long
def test_a_killed_broker_continues_with_its_data() -> None:
    with Broker("killed") as broker:
        topic = clusters.create_topic(broker.bootstrap)
        clusters.produce(broker.bootstrap, topic, AWKWARD)
        first = broker.pid
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.pid != first
        assert len(clusters.read_topic(broker.bootstrap, topic)) == len(AWKWARD)
    assert not broker.folder.exists()


@pytest.mark.long
def test_a_suspended_broker_answers_nobody_until_it_is_resumed() -> None:
    with Broker("frozen") as broker:
        topic = clusters.create_topic(broker.bootstrap)
        broker.suspend()
        with pytest.raises(KafkaException):
            clusters.admin(broker.bootstrap).list_topics(timeout=0.5)
        broker.resume()
        assert clusters.produce(broker.bootstrap, topic, AWKWARD) == len(AWKWARD)


def test_no_broker_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    code = "from tests.support.broker import Broker; print(Broker('orphan').start().pid, flush=True); input()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    starter = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    assert psutil.pid_exists(pid)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    wait_until(lambda: not psutil.pid_exists(pid), what="the broker died with its starter")


def test_clients_behind_the_proxy_stay_behind_it(broker_a: Broker, proxy_a: Proxy, topic_name: str) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    before = proxy_a.requested
    clusters.produce(proxy_a.bootstrap, topic_name, [Record(value=b"x" * 100_000)])
    assert proxy_a.requested - before > 100_000
    seen = clusters.admin(proxy_a.bootstrap).list_topics(timeout=10).brokers
    assert {one.port for one in seen.values()} == {proxy_a.port}


def test_a_cut_connection_loses_the_answer_and_not_the_record(
    broker_a: Broker, proxy_a: Proxy, topic_name: str
) -> None:
    clusters.create_topic(broker_a.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": proxy_a.bootstrap, "enable.idempotence": "true", "log_level": 0})
    producer.produce(topic_name, b"first")
    assert producer.flush(10) == 0
    proxy_a.hold(requests=False)
    producer.produce(topic_name, b"second")
    assert producer.flush(0.5) == 1, "its answer is held"
    wait_until(lambda: clusters.end_offsets(broker_a.bootstrap, topic_name) == {0: 2})
    assert proxy_a.cut() > 0
    proxy_a.heal()
    assert producer.flush(20) == 0
    values = [record.value for record in clusters.read_topic(broker_a.bootstrap, topic_name)]
    assert values == [b"first", b"second"], "resent under the same sequence, so kept once"


async def test_delay_and_refusal(broker_a: Broker, proxy_a: Proxy) -> None:
    async def round_trip() -> float:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy_a.port)
        # ApiVersions v0 with correlation id 7 and an empty client id: the smallest question a broker answers.
        writer.write(b"\0\0\0\x0a" + b"\0\x12" + b"\0\0" + b"\0\0\0\7" + b"\0\0")
        try:
            answer = await asyncio.wait_for(reader.readexactly(8), 5)
            assert answer[4:] == b"\0\0\0\7"
            return time.monotonic() - began
        finally:
            writer.close()

    proxy_a.delay(requests=0.2, answers=0.2)
    assert await round_trip() >= 0.4
    proxy_a.refuse()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await round_trip()
    proxy_a.heal()
    assert await round_trip() < 0.4


async def test_eventually_names_what_did_not_happen() -> None:
    answers = iter([0, None, 3])
    assert await eventually(lambda: next(answers), every=0.001) == 3
    with pytest.raises(NeverHappened, match=r"not within 0.05 s: the moon \(last: False\)"):
        await eventually(lambda: False, within=0.05, every=0.01, what="the moon")


def test_slow_condition_is_asked_less_often() -> None:
    asked: list[float] = []

    def slow() -> bool:
        asked.append(time.monotonic())
        time.sleep(0.05)
        return len(asked) == 4

    wait_until(slow, every=0.001)
    assert all(after - before >= 0.15 for before, after in pairwise(asked))
