"""Our bytes are MM2's bytes: Java reads what our codec writes, and writes the very same (`mm2-behaviour.md` §1.2 to
1.7)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep_state.codecs import mm2_codec
from lockstep_state.codecs.mm2_codec import Checkpoint, Heartbeat, OffsetSync
from lockstep_state.codecs.murmur2 import murmur2, partition_for
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from tests.support.jvm import call

MIRROR = "org.apache.kafka.connect.mirror"

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
strings = st.text(st.characters(codec="utf-8"), max_size=20)
partitions = st.integers(0, 2**31 - 1)
offsets = st.integers(-(2**63), 2**63 - 1)
written = st.tuples(st.text(st.characters(codec="utf-8"), max_size=20), partitions, st.integers(0, 2**63 - 1))


def deserialized(java: Any, kind: str, key: bytes, value: bytes) -> Any:
    record = java.jvm.org.apache.kafka.clients.consumer.ConsumerRecord("topic", 0, 0, key, value)
    return getattr(java.jvm.org.apache.kafka.connect.mirror, kind).deserializeRecord(record)


def serialized(java: Any, record: Any) -> tuple[bytes, bytes]:
    return call(java, record, "recordKey"), call(java, record, "recordValue")


@few
@given(strings, strings, partitions, offsets, offsets, strings)
def test_mm2_020_java_reads_and_writes_our_checkpoints(
    java: Any, group: str, topic: str, partition: int, up: int, down: int, metadata: str
) -> None:
    ours = Checkpoint(group, topic, partition, UpstreamOffset(up), DownstreamOffset(down), metadata)
    key, value = mm2_codec.encode_checkpoint(ours)
    theirs = deserialized(java, "Checkpoint", key, value)
    where = theirs.topicPartition()
    assert (theirs.consumerGroupId(), where.topic(), where.partition()) == (group, topic, partition)
    assert (theirs.upstreamOffset(), theirs.downstreamOffset(), theirs.metadata()) == (up, down, metadata)
    assert serialized(java, theirs) == (key, value)


@few
@given(strings, strings, offsets)
def test_mm2_021_java_reads_and_writes_our_heartbeats(java: Any, source: str, target: str, at: int) -> None:
    key, value = mm2_codec.encode_heartbeat(Heartbeat(source, target, at))
    theirs = deserialized(java, "Heartbeat", key, value)
    assert (theirs.sourceClusterAlias(), theirs.targetClusterAlias(), theirs.timestamp()) == (source, target, at)
    assert serialized(java, theirs) == (key, value)


@few
@given(strings, partitions, offsets, offsets)
def test_mm2_022_java_reads_and_writes_our_offset_syncs(
    java: Any, topic: str, partition: int, up: int, down: int
) -> None:
    key, value = mm2_codec.encode_offset_sync(OffsetSync(topic, partition, UpstreamOffset(up), DownstreamOffset(down)))
    theirs = deserialized(java, "OffsetSync", key, value)
    assert (theirs.topicPartition().topic(), theirs.topicPartition().partition()) == (topic, partition)
    assert (theirs.upstreamOffset(), theirs.downstreamOffset()) == (up, down)
    assert serialized(java, theirs) == (key, value)


@pytest.fixture(scope="module")
def connect_json(java: Any) -> Callable[[Any, bool], bytes]:
    """What Connect's converter for its offset topic makes of a value; the flag is for a key."""

    def convert(value: Any, is_key: bool) -> bytes:
        converter = java.jvm.org.apache.kafka.connect.json.JsonConverter()
        converter.configure({"schemas.enable": "false"}, is_key)
        return bytes(converter.fromConnectData("connector", None, value))

    return convert


@few
@given(strings, written)
def test_connect_writes_the_bytes_of_our_progress(
    java: Any, connect_json: Callable[[Any, bool], bytes], cluster: str, position: tuple[str, int, int]
) -> None:
    """Connect finds its offsets by these very bytes. The partition and the offset are MM2's own maps, so the order of
    the fields is Java's."""
    topic, partition, offset = position
    where = java.jvm.org.apache.kafka.common.TopicPartition(topic, partition)
    types = ["org.apache.kafka.common.TopicPartition", "java.lang.String"]
    wrapped = call(java, f"{MIRROR}.MirrorUtils", "wrapPartition", types, [where, cluster])
    theirs = connect_json([mm2_codec.SOURCE_CONNECTOR, wrapped], True)
    at = connect_json(java.jvm.org.apache.kafka.connect.mirror.MirrorUtils.wrapOffset(offset), False)
    assert mm2_codec.encode_source_progress(cluster, topic, partition, offset) == (theirs, at)


@few
@given(st.binary(max_size=40), st.integers(1, 50))
def test_java_puts_a_key_into_the_partition_that_we_do(java: Any, key: bytes, partitions: int) -> None:
    assert murmur2(key) == java.jvm.org.apache.kafka.common.utils.Utils.murmur2(key)
    internals = java.jvm.org.apache.kafka.clients.producer.internals
    assert partition_for(key, partitions) == internals.BuiltInPartitioner.partitionForKey(key, partitions)
