"""aiokafka's requests in versions that it lacks, held against kio's messages."""

import sys

import pytest
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest, OffsetResponse_v4
from kio.index import load_request_schema, load_response_schema

from lockstep_runtime.membership.aiokafka_requests import with_newer_versions
from tests.support.kafka_frame import Frame, filled, read_frame, written_frame

METADATA, COORDINATOR, OFFSETS = MetadataRequest.API_KEY, FindCoordinatorRequest.API_KEY, OffsetRequest.API_KEY


def metadata_body(version: int, **fields: object) -> bytes:
    """An answer about one partition, as kio writes it, without its header."""
    schema = load_response_schema(METADATA, version)
    kinds = vars(sys.modules[schema.__module__])
    epoch = {"leader_epoch": 44} if version >= 7 else {}
    nodes = {"leader_id": 3, "replica_nodes": (3, 4), "isr_nodes": (3,)}
    partition = filled(kinds["MetadataResponsePartition"], **nodes, **epoch)
    topic = filled(kinds["MetadataResponseTopic"], name="orders", partitions=(partition,))
    broker = filled(kinds["MetadataResponseBroker"], node_id=3, host="b3", port=9092)
    body = filled(schema, brokers=(broker,), cluster_id="c", controller_id=3, topics=(topic,), **fields)
    return written_frame(Frame(body, filled(schema.__header_schema__)))[4:-4]


@pytest.mark.parametrize(
    ("announced", "chosen"), [((0, 12), 5), ((1, 3), 3), ((5, 11), 5), ((6, 11), 6), ((7, 11), 7), ((6, 6), 6)]
)
def test_metadata_has_aiokafkas_newest_version_before_ours(announced: tuple[int, int], chosen: int) -> None:
    request = with_newer_versions(MetadataRequest(["orders"])).prepare({METADATA: announced})
    assert chosen == request.API_VERSION


def test_metadata_in_no_version_in_common_fails_as_before() -> None:
    with pytest.raises(NotImplementedError, match="MetadataRequest v9"):
        with_newer_versions(MetadataRequest()).prepare({METADATA: (9, 13)})


def test_request_without_newer_versions_is_left_as_it_is() -> None:
    request = HeartbeatRequest("g", 1, "m")
    assert with_newer_versions(request) is request


@pytest.mark.parametrize(("key", "version"), [(METADATA, 6), (METADATA, 7), (COORDINATOR, 2)])
def test_newer_request_is_what_kio_reads(key: int, version: int) -> None:
    request = MetadataRequest(["orders"], False) if key == METADATA else FindCoordinatorRequest("billing", 0)
    struct = with_newer_versions(request).prepare({key: (version, version)})
    head = struct.build_request_header(correlation_id=7, client_id="c").encode()
    content = head + struct.encode()
    _, body = read_frame(len(content).to_bytes(4) + content, load_request_schema(key, version))
    if key == METADATA:
        assert ([topic.name for topic in body.topics], body.allow_auto_topic_creation) == (["orders"], False)
    else:
        assert (body.key, body.key_type) == ("billing", 0)


@pytest.mark.parametrize("version", [4, 5])
def test_newer_question_about_offsets_is_what_kio_reads(version: int) -> None:
    struct = with_newer_versions(OffsetRequest(-1, 1, [("orders", [(3, -2)])])).prepare({OFFSETS: (version, 6)})
    content = struct.build_request_header(correlation_id=7, client_id="c").encode() + struct.encode()
    _, body = read_frame(len(content).to_bytes(4) + content, load_request_schema(OFFSETS, version))
    (partition,) = body.topics[0].partitions
    assert (partition.partition_index, partition.current_leader_epoch, partition.timestamp) == (3, -1, -2)


def test_newer_answer_about_offsets_is_as_the_former_one() -> None:
    struct = with_newer_versions(OffsetRequest(-1, 0, [])).prepare({OFFSETS: (5, 6)})
    answer = OffsetResponse_v4(0, [("orders", [(3, 0, -1, 77, 44)])]).encode()
    assert struct.RESPONSE_TYPE.decode(answer).topics == [("orders", [(3, 0, -1, 77)])]


@pytest.mark.parametrize("version", [6, 7])
def test_newer_metadata_answer_is_understood_by_aiokafka(version: int) -> None:
    struct = with_newer_versions(MetadataRequest()).prepare({METADATA: (version, version)})
    cluster = ClusterMetadata(metadata_max_age_ms=1)
    cluster.update_metadata(struct.RESPONSE_TYPE.decode(metadata_body(version)))
    partition = cluster._partitions["orders"][0]
    assert (partition.leader, partition.replicas, partition.isr) == (3, [3, 4], [3])
    assert cluster.controller.host == "b3"
