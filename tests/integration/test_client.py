"""The client against a real cluster, on checkpoints written by hand: what it finds, and what it says when it cannot
(`mm2-behaviour.md` §3.8, §8 row 10)."""

import logging
import re
import uuid

import pytest

from lockstep_client import (
    CheckpointsNotRead,
    CheckpointsTopicMissing,
    ClusterUnreachable,
    DefaultReplicationPolicy,
    MirrorClient,
    MirrorClientError,
    UnsupportedCheckpoint,
    remote_consumer_offsets,
    remote_topics,
    translate_offsets,
)
from lockstep_state.codecs.mm2_codec import Checkpoint, encode_checkpoint
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.proxy import Proxy


@pytest.fixture
def alias() -> str:
    return f"s{uuid.uuid4().hex[:6]}"


def record(group: str, partition: int, up: int, down: int, metadata: str = "") -> Record:
    one = Checkpoint(group, "s.orders", partition, UpstreamOffset(up), DownstreamOffset(down), metadata)
    key, value = encode_checkpoint(one)
    return Record(key=key, value=value, partition=0)


def checkpoints(broker: Broker, alias: str, *records: Record) -> dict[str, str]:
    topic = create_topic(broker.bootstrap, f"{alias}.checkpoints.internal", configs={"cleanup.policy": "compact"})
    if records:
        produce(broker.bootstrap, topic, records, settings={"batch.num.messages": "100", "linger.ms": "20"})
    return {"bootstrap.servers": broker.bootstrap}


def test_group_continues_at_its_last_checkpoint(broker_b: Broker, alias: str) -> None:
    conf = checkpoints(
        broker_b, alias, record("billing", 1, 5, 4), record("billing", 0, 9, 9), record("billing", 1, 7, 6, "mine")
    )
    at = translate_offsets(conf, alias, "billing")
    assert [(one.topic, one.partition, one.offset, one.metadata) for one in at] == [
        ("s.orders", 0, 9, ""),
        ("s.orders", 1, 6, "mine"),
    ]
    of_each = translate_offsets(conf, alias, re.compile("bill.*"))
    assert {group: [one.offset for one in at] for group, at in of_each.items()} == {"billing": [9, 6]}
    assert translate_offsets(conf, alias, "bill") == []


def test_malformed_checkpoint_is_counted_and_logged(
    broker_b: Broker, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    conf = checkpoints(
        broker_b, alias, record("billing", 0, 5, 4), Record(key=b"?", value=b"\0\0", partition=0), record("g", 0, 1, 1)
    )
    assert remote_consumer_offsets(conf, alias, "billing").malformed == 1
    with caplog.at_level(logging.WARNING, logger="lockstep_client"):
        assert [offset.offset for offset in translate_offsets(conf, alias, "billing")] == [4]
    assert caplog.messages == [f"passed over 1 of the checkpoints of {alias}: no such record"]


def test_a_checkpoint_of_a_later_version_is_named_with_its_place(broker_b: Broker, alias: str) -> None:
    good = record("billing", 0, 5, 4)
    later = Record(key=good.key, value=b"\x00\x01" + (good.value or b"")[2:], partition=0)
    conf = checkpoints(broker_b, alias, good, later)
    with pytest.raises(UnsupportedCheckpoint, match=r"checkpoints\.internal at offset 1: .*version 1") as caught:
        translate_offsets(conf, alias, "billing")
    assert caught.value.offset == 1


def test_missing_checkpoints_topic_is_named_with_the_existing_ones(broker_b: Broker, alias: str) -> None:
    conf = checkpoints(broker_b, alias)
    assert remote_consumer_offsets(conf, alias, "billing").checkpoints == (), "an empty topic is no mistake"
    with pytest.raises(CheckpointsTopicMissing) as caught:
        translate_offsets(conf, "nobody", "billing")
    assert f"{alias}.checkpoints.internal" in caught.value.existing_topics
    with pytest.raises(CheckpointsTopicMissing, match=f"no topic {alias}_checkpoints_internal"):
        translate_offsets(conf, alias, "billing", policy=DefaultReplicationPolicy("_"))
    assert f"{alias}_checkpoints_internal" not in remote_topics(conf), "asking creates nothing"


@pytest.mark.long
def test_read_that_times_out_has_its_progress(broker_b: Broker, proxy_b: Proxy, alias: str) -> None:
    """MM2 returns the part it has, as if it were all."""
    count = 20_000
    written = (record(f"group-{n}", 0, n, n) for n in range(count))
    checkpoints(broker_b, alias, *written)
    proxy_b.delay(answers=0.1)  # each of the 200 batches takes so long, for a fetch has room for one
    small = ("fetch.message.max.bytes", "fetch.max.bytes", "message.max.bytes")
    conf = {"bootstrap.servers": proxy_b.bootstrap, **dict.fromkeys(small, "1000")}
    with pytest.raises(CheckpointsNotRead, match=f"of {count} within 6 s") as caught:
        MirrorClient(conf).remote_consumer_offsets(alias, re.compile(".*"), timeout=6.0)
    assert isinstance(caught.value, TimeoutError)
    assert 0 < caught.value.position < caught.value.end == count
    assert len(caught.value.so_far.checkpoints) == caught.value.position


def test_a_cluster_that_does_not_answer_is_named(proxy_b: Proxy) -> None:
    proxy_b.refuse()
    with pytest.raises(ClusterUnreachable, match=re.escape(proxy_b.bootstrap)):
        MirrorClient({"bootstrap.servers": proxy_b.bootstrap}, timeout=1.0).upstream_clusters()
    assert issubclass(ClusterUnreachable, MirrorClientError)
