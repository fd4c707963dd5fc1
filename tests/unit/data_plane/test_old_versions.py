"""Versions of requests that only old brokers need: aiokafka, which knows them too, reads what we write of each."""

import struct
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from aiokafka.protocol import fetch as aiokafka_fetch
from aiokafka.protocol import produce as aiokafka_produce
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.record_batch.layout import stamp
from lockstep_kafka.messages import fetch_codec, produce_codec
from lockstep_kafka.messages.fetch_codec import (
    FetchedPartition,
    fetch_request,
    read_response,
    read_session_id,
    topic_names,
)
from lockstep_kafka.messages.fetch_session import NO_SESSION, SessionRequest
from lockstep_kafka.messages.message_versions import (
    EncodedRequest,
    encode_entity,
    load_message,
    make_entity,
    message_format,
)
from lockstep_kafka.messages.metadata_codec import PartitionLeader, TopicMetadata, metadata_request, read_topics
from lockstep_kafka.messages.produce_codec import Data, ProduceAnswer, produce_answer, produce_request
from lockstep_kafka.wire.connection import Connection
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.offsets import TopicPartition
from tests.support.batch_bytes import batch_bytes, records
from tests.support.kio_codec import read_back

OLD_FETCHES = range(APIS["fetch"].oldest, fetch_codec.OWN_ENCODING)
OLD_PRODUCES = range(APIS["produce"].oldest, produce_codec.OWN_ENCODING)
LEADER = PartitionLeader(1, 6, UUID(int=7))
SETTINGS = FetchSettings(max_wait_ms=500, min_bytes=1, max_bytes=9000, max_partition_bytes=800)
EVERY_VERSION = [(name, version) for name, api in APIS.items() for version in range(api.oldest, api.newest + 1)]


def read_by_aiokafka(module: Any, name: str, request: EncodedRequest) -> Any:
    """Return the request as aiokafka reads it, which must be all of it."""
    stream = BytesIO(b"".join(request.parts))
    decoded = getattr(module, f"{name}_v{request.version}").decode(stream)
    assert stream.read() == b""
    return decoded


def read_answer_back(entity: Any) -> Any:
    """Return an answer of kio's as a connection reads it from its frame."""
    body = BytesIO()
    entity_writer(type(entity))(body, entity)
    codec = message_format(int(entity.__api_key__), int(entity.__version__))
    header = struct.pack(">i", 5) + (b"\0" if codec.is_flexible else b"")
    return codec.read_response(memoryview(header + body.getvalue()))


@pytest.mark.parametrize("version", OLD_FETCHES)
def test_old_fetch_holds_what_its_version_knows(version: int) -> None:
    wanted = [(("orders", 3), LEADER, 17, 5), (("café", 0), LEADER, 2**40, -1), (("orders", 4), LEADER, 0, -1)]
    plan = SessionRequest(31, 8, wanted, [(("gone", 1), LEADER)] if version >= fetch_codec.WITH_SESSIONS else [])
    request = fetch_request(version, wanted, SETTINGS, isolation="read_committed", session=plan, rack="east")
    assert (request.api_key, request.version, request.asked_bytes) == (1, version, 9000)
    decoded = read_by_aiokafka(aiokafka_fetch, "FetchRequest", request)
    assert (decoded.replica_id, decoded.max_wait_time, decoded.min_bytes) == (-1, 500, 1)
    assert (decoded.max_bytes, decoded.isolation_level) == (9000, 1)
    epoch = (6,) if version >= 9 else ()
    start = (-1,) if version >= 5 else ()
    partitions = [(3, *epoch, 17, *start, 800), (4, *epoch, 0, *start, 800)]
    assert decoded.topics == [("orders", partitions), ("café", [(0, *epoch, 2**40, *start, 800)])]
    if version >= fetch_codec.WITH_SESSIONS:
        assert (decoded.session_id, decoded.session_epoch, decoded.forgotten_topics_data) == (31, 8, [("gone", [1])])
    assert getattr(decoded, "rack_id", None) == ("east" if version >= fetch_codec.WITH_RACK else None)


@pytest.mark.parametrize("version", range(APIS["fetch"].oldest, APIS["fetch"].newest + 1))
def test_fetch_answer_of_each_version_is_read(version: int) -> None:
    m = load_message("fetch", version, "response")
    records_read = batch_bytes(records(17, 3))
    aborted = (m.AbortedTransaction(producer_id=4000, first_offset=11),)
    partition = make_entity(
        m.PartitionData,
        partition_index=3,
        error_code=ErrorCode.none,
        high_watermark=20,
        last_stable_offset=19,
        aborted_transactions=aborted,
        preferred_read_replica=-1,
        records=records_read,
    )
    topic = make_entity(m.FetchableTopicResponse, topic="orders", topic_id=LEADER.topic_id, partitions=(partition,))
    no_time = timedelta(0)
    answer = read_answer_back(
        make_entity(
            m.FetchResponse, throttle_time=no_time, error_code=ErrorCode.none, session_id=31, responses=(topic,)
        )
    )
    names = topic_names([(("orders", 3), LEADER, 17, -1)])
    (answered,) = read_response([("orders", 3)], answer, names)
    assert answered._replace(records=bytes(answered.records)) == FetchedPartition(
        ("orders", 3), 0, 20, 19, ((4000, 11),), records_read
    )
    assert read_session_id(answer) == (31 if version >= fetch_codec.WITH_SESSIONS else NO_SESSION)


@pytest.mark.parametrize("name", [None, "flow-orders-3"])
@pytest.mark.parametrize("version", OLD_PRODUCES)
def test_old_produce_holds_the_batches_as_they_are(version: int, name: str | None) -> None:
    stamped = stamp(memoryview(batch_bytes(records(0, 3))), 4000, 1, 17)
    batches: list[tuple[TopicPartition, PartitionLeader, Data]] = [
        (("orders", 3), LEADER, stamped),
        (("café", 0), LEADER, b"other"),
        (("orders", 4), LEADER, b"third"),
    ]
    request = produce_request(version, batches, timedelta(seconds=30), name)
    assert (request.api_key, request.version) == (0, version)
    decoded = read_by_aiokafka(aiokafka_produce, "ProduceRequest", request)
    assert (decoded.transactional_id, decoded.required_acks, decoded.timeout) == (name, -1, 30_000)
    assert decoded.topics == [("orders", [(3, bytes(stamped)), (4, b"third")]), ("café", [(0, b"other")])]


@pytest.mark.parametrize("version", range(APIS["produce"].oldest, APIS["produce"].newest + 1))
def test_produce_answer_of_each_version_is_read(version: int) -> None:
    m = load_message("produce", version, "response")
    says_why = version >= 8

    def answered(code: ErrorCode, **values: Any) -> ProduceAnswer:
        partition = make_entity(m.PartitionProduceResponse, index=3, error_code=code, base_offset=41, **values)
        topic = make_entity(
            m.TopicProduceResponse, name="orders", topic_id=LEADER.topic_id, partition_responses=(partition,)
        )
        answer = read_answer_back(m.ProduceResponse(responses=(topic,), throttle_time=timedelta(0)))
        return produce_answer(answer.responses[0].partition_responses[0])

    assert answered(ErrorCode.none, record_errors=()) == ProduceAnswer(0, 41)
    moment = datetime(2026, 11, 29, tzinfo=UTC)
    stamped = answered(ErrorCode.none, record_errors=(), log_append_time=moment)
    assert (stamped.code, stamped.append_time_ms) == (0, round(moment.timestamp() * 1000))
    errors = (m.BatchIndexAndErrorMessage(batch_index=2, batch_index_error_message="no key"),) if says_why else ()
    refused = answered(ErrorCode.invalid_record, record_errors=errors, error_message="refused")
    assert (refused.code, refused.message) == (87, "refused" if says_why else "")
    assert refused.records == (((2, "no key"),) if says_why else ())


@pytest.mark.parametrize("version", range(APIS["metadata"].oldest, APIS["metadata"].newest + 1))
def test_metadata_request_of_each_version_creates_no_topic(version: int) -> None:
    request = metadata_request(version, ["orders"])
    decoded = read_metadata_back(request)
    if version < 4:
        assert decoded.topics is None, "the version would create a topic that is named"
    else:
        assert [topic.name for topic in decoded.topics] == ["orders"]
        assert not decoded.allow_auto_topic_creation
    assert read_metadata_back(metadata_request(version, None)).topics is None
    assert read_metadata_back(metadata_request(version, [])).topics == ()


def read_metadata_back(entity: Any) -> Any:
    return read_back(encode_entity(entity))


class Leads(NamedTuple):
    """What a test's broker leads."""

    number: int
    leader: int


@pytest.mark.parametrize("version", range(APIS["metadata"].oldest, APIS["metadata"].newest + 1))
def test_metadata_answer_of_each_version_is_read(version: int) -> None:
    m = load_message("metadata", version, "response")

    def topic(name: str, code: ErrorCode, *leads: Leads) -> Any:
        partitions = tuple(
            make_entity(
                m.MetadataResponsePartition,
                error_code=ErrorCode.none,
                partition_index=lead.number,
                leader_id=lead.leader,
                leader_epoch=6,
            )
            for lead in leads
        )
        return make_entity(
            m.MetadataResponseTopic, error_code=code, name=name, topic_id=LEADER.topic_id, partitions=partitions
        )

    topics = [topic("orders", ErrorCode.none, Leads(0, 1), Leads(1, -1))]
    names_missing = version >= 4
    topics += [topic("gone", ErrorCode.unknown_topic_or_partition)] if names_missing else [topic("b", ErrorCode.none)]
    broker = m.MetadataResponseBroker(node_id=1, host="a1", port=9092)
    answer = read_answer_back(
        make_entity(m.MetadataResponse, throttle_time=timedelta(0), brokers=(broker,), topics=tuple(topics))
    )
    by_name = {topic.name: topic for topic in read_topics(answer, ["gone", "orders"])}
    topic_id = LEADER.topic_id if version >= 10 else None
    assert by_name == {
        "orders": TopicMetadata("orders", 0, topic_id, 2, ((0, 1, 6 if version >= 9 else -1),)),
        "gone": by_name["gone"],
    }
    assert (by_name["gone"].code, by_name["gone"].leaders) == (3, ())


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
async def test_request_header_has_tags_only_in_flexible_versions(api: str, version: int) -> None:
    key, sent = APIS[api].key, bytearray()
    connection: Any = Connection("broker", 9092, client_id="ab")
    connection._writer = connection
    connection.write = sent.extend
    asked = connection.send(EncodedRequest(key, version, [b"body"]))
    is_flexible = bool(getattr(load_message(api, version, "request"), f"{APIS[api].name}Request").__flexible__)
    header = struct.pack(">hhih2s", key, version, connection._requests[0][0], 2, b"ab") + b"\0" * is_flexible
    assert bytes(sent) == struct.pack(">i", len(header) + 4) + header + b"body"
    asked.cancel()


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_answer_header_has_tags_only_in_flexible_versions(api: str, version: int) -> None:
    kind = getattr(load_message(api, version, "response"), f"{APIS[api].name}Response")
    assert message_format(APIS[api].key, version).is_flexible == kind.__flexible__
    assert kind.__header_schema__.__flexible__ == kind.__flexible__
    assert entity_reader(kind) is not None
