"""What goes over connections is counted whole, by the rack of the broker."""

from datetime import timedelta
from io import BytesIO

from kio.serial import entity_writer

from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.link_bytes import LinkBytes
from lockstep_state.kafka.kafka_apis import APIS
from tests.support.written_frames import WrittenFrames


async def test_connection_counts_requests_and_answers_with_their_lengths() -> None:
    connection = Connection("broker", 9092, client_id="client")
    stream = connection._writer = WrittenFrames()
    connection._versions = {APIS["describe_producers"].key: (0, 0)}
    connection.send(load_message("describe_producers", 0, "request").DescribeProducersRequest(topics=()))
    assert connection.link.sent == sum(map(len, stream.frames)) > 0
    m = load_message("describe_producers", 0, "response")
    body = BytesIO()
    answer = m.DescribeProducersResponse(throttle_time=timedelta(0), topics=())
    entity_writer(m.DescribeProducersResponse)(body, answer)
    ((correlation_id, _, _),) = connection._requests
    frame = correlation_id.to_bytes(4) + b"\0" + body.getvalue()
    connection._answered(memoryview(frame))
    assert connection.link.received == 4 + len(frame)


def test_link_bytes_of_racks_count_apart() -> None:
    links = LinkBytes()
    links.of_rack("east").sent += 5
    links.of_rack("").received += 3
    links.of_rack("east").sent += 2
    assert list(links.totals()) == [("sent", "", 0), ("received", "", 3), ("sent", "east", 7), ("received", "east", 0)]


def test_cluster_client_without_connections_has_no_link() -> None:
    assert list(ClusterClient("A", [("broker", 9092)], {}).links.totals()) == []
