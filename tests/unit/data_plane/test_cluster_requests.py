"""Requests about topics and partitions, and the header of any request, in every version that is spoken."""

import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from lockstep_data_plane.wire.cluster import ClusterClient, PartitionLeader
from lockstep_data_plane.wire.cluster_requests import (
    CONSUMER,
    DEBUGGING,
    leader_epoch_request,
    list_offsets_request,
    metadata_request,
)
from lockstep_data_plane.wire.connection import Connection
from lockstep_data_plane.wire.frame_protocol import EncodedRequest
from lockstep_data_plane.wire.kio_messages import NAMES, message, message_version
from lockstep_protocol.kafka_apis import APIS
from tests.support.kio_codec import written

TP = ("orders", 3)


def versions(api: str) -> range:
    return range(APIS[api].oldest, APIS[api].newest + 1)


@pytest.mark.parametrize("version", versions("list_offsets"))
def test_offset_request_of_every_version_asks_the_same(version: int) -> None:
    request = list_offsets_request(version, TP, -2, DEBUGGING, committed=False)
    assert written(request)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (request.replica_id, topic.name, partition.partition_index, partition.timestamp) == (-2, "orders", 3, -2)
    if version >= 2:
        assert list_offsets_request(version, TP, -1, CONSUMER, committed=True).isolation_level == 1
    else:
        with pytest.raises(ValueError, match="last stable offset"):
            list_offsets_request(version, TP, -1, CONSUMER, committed=True)


def test_offset_request_of_version_1_has_these_bytes() -> None:
    golden = "ffffffff000000010006" + b"orders".hex() + "0000000100000003ffffffffffffffff"
    assert written(list_offsets_request(1, TP, -1, CONSUMER, committed=False)).hex() == golden


@pytest.mark.parametrize("version", versions("offset_for_leader_epoch"))
def test_epoch_request_of_every_version_asks_the_same(version: int) -> None:
    request = leader_epoch_request(version, TP, -1, 7)
    assert written(request)
    ((partition,),) = (topic.partitions for topic in request.topics)
    assert (partition.partition, partition.current_leader_epoch, partition.leader_epoch) == (3, -1, 7)
    assert version < 3 or request.replica_id == CONSUMER


@pytest.mark.parametrize("version", versions("metadata"))
def test_metadata_request_of_every_version_creates_no_topic(version: int) -> None:
    request, of_all = metadata_request(version, ["orders"]), metadata_request(version, None)
    assert written(request)
    assert of_all.topics is None
    assert metadata_request(version, []).topics == ()
    if version < 4:
        assert request.topics is None, "a named topic would be created"
    else:
        assert ([topic.name for topic in request.topics], request.allow_auto_topic_creation) == (["orders"], False)


@pytest.mark.parametrize("version", versions("metadata"))
def test_metadata_answer_of_every_version_is_learned(version: int) -> None:
    m = message("metadata", version, "response")
    epoch = {"leader_epoch": 5} if version >= 7 else {}
    topic_id = {"topic_id": UUID(int=7)} if version >= 10 else {}
    partition = m.MetadataResponsePartition(
        error_code=ErrorCode.none, partition_index=3, leader_id=1, replica_nodes=(1,), isr_nodes=(1,), **epoch
    )
    topics = [
        m.MetadataResponseTopic(error_code=ErrorCode.none, name=name, partitions=(partition,), **topic_id)
        for name in ("orders", "not asked for")
    ]
    answer = m.MetadataResponse(
        brokers=(m.MetadataResponseBroker(node_id=1, host="a", port=9092),),
        topics=tuple(topics),
        **({"cluster_id": "id"} if version >= 2 else {}),
        **({"throttle_time": timedelta(0)} if version >= 3 else {}),
    )
    frame = bytes(4) + (b"\0" if version >= 9 else b"") + written(answer)
    reader, is_flexible = message_version(APIS["metadata"].key, version)
    read, _ = reader(memoryview(frame), 4 + is_flexible)
    cluster = ClusterClient("A", [("a", 9092)], {})
    cluster._learn(read, ["orders", "gone"])
    leader = cluster.leader(TP)
    assert leader == PartitionLeader(1, 5 if version >= 9 else -1, UUID(int=7) if version >= 10 else None)
    assert (cluster.trouble("orders"), cluster.trouble("gone"), cluster.partitions("gone")) == (0, 3, 0)
    assert cluster.cluster_id == ("id" if version >= 2 else "")
    assert bool(cluster.topic_id(TP)) == (version >= 10)


class _Written:
    """Keeps what a connection sends."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)


EVERY = [(api, version) for api in APIS for version in versions(api)]
FLEXIBLE = {"produce": 9, "fetch": 12, "list_offsets": 6, "metadata": 9, "find_coordinator": 3, "init_producer_id": 2}
FLEXIBLE |= {"offset_for_leader_epoch": 4, "add_partitions_to_txn": 3, "end_txn": 3, "describe_producers": 0}
"""The first version of each API with tags in its headers, by Kafka's schemas."""


@pytest.mark.parametrize(("api", "version"), EVERY)
async def test_header_of_a_request_has_tags_in_flexible_versions_only(api: str, version: int) -> None:
    connection = Connection("broker", 9092, client_id="me")
    stream: Any = _Written()
    connection._writer = stream
    connection.ask(EncodedRequest(APIS[api].key, version, [b"body"]))
    (frame,) = stream.frames
    tags = b"\0" if version >= FLEXIBLE[api] else b""
    header = struct.pack(">hhih2s", APIS[api].key, version, 1, 2, b"me") + tags
    assert frame == struct.pack(">i", len(header) + 4) + header + b"body"
    assert message_version(APIS[api].key, version).is_flexible == (version >= FLEXIBLE[api])
    assert NAMES[APIS[api].key] == api
    connection._writer = None
