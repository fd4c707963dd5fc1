"""The least of Kafka's protocol that measuring needs: one blocking connection, and requests for raw batches.

Typed messages are kio's. By topic name and to the one broker of a cluster, which leads every partition there.
"""

import io
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Self

from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

TIMEOUT = timedelta(seconds=60)
BATCH_OVERHEAD = 12  # baseOffset and batchLength stand before what batchLength counts
LAST_OFFSET_DELTA_AT = 23
RECORD_COUNT_AT = 57
HEADER = 61
LATEST = -1
NOT_YET = (3, 5, 6)  # unknown topic, leader not available, not the leader: while a topic is being created

_write_header = entity_writer(RequestHeader)
_writers: dict[type, Any] = {each: entity_writer(each) for each in (FetchRequest, ListOffsetsRequest, ProduceRequest)}
_readers: dict[type, Any] = {
    each: entity_reader(each) for each in (FetchResponse, ListOffsetsResponse, ProduceResponse)
}


class BrokerRefused(Exception):
    """A broker answered with an error where the measurement cannot go on."""


class Connection:
    """One blocking connection: frames go out, whole answers come back, in the same order.

    Not safe for two threads at once.
    """

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT.total_seconds())
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        """The next answer without its length and its header."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        whole = bytearray(count)
        view, at = memoryview(whole), 0
        while at < count:
            received = self._socket.recv_into(view[at:])
            if not received:
                raise ConnectionError("the broker closed the connection in the middle of an answer")
            at += received
        return bytes(whole)


def _frame(request: Any) -> bytes:
    out = io.BytesIO()
    out.write(b"\0\0\0\0")
    header = RequestHeader(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(1),  # answers come in order, so nothing is told apart by it
        client_id="lockstep-bench",
    )
    _write_header(out, header)
    _writers[type(request)](out, request)
    struct.pack_into(">i", out.getbuffer(), 0, out.tell() - 4)
    return out.getvalue()


def _answer(kind: type, body: bytes) -> Any:
    # A flexible response header: correlation id, then an empty tag buffer.
    return _readers[kind](body, 5)[0]


def fetch_frame(topic: str, positions: Mapping[int, int], *, partition_max_bytes: int, max_bytes: int) -> bytes:
    """A sessionless fetch that waits for nothing, of the given partitions from the given offsets."""
    return _frame(
        FetchRequest(
            max_wait=i32Timedelta.parse(timedelta(milliseconds=500)),
            min_bytes=i32(1),
            max_bytes=i32(max_bytes),
            isolation_level=i8(0),
            topics=(
                FetchTopic(
                    topic=TopicName(topic),
                    partitions=tuple(
                        FetchPartition(
                            partition=i32(partition),
                            fetch_offset=i64(offset),
                            partition_max_bytes=i32(partition_max_bytes),
                        )
                        for partition, offset in positions.items()
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
    )


def fetched(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The partitions of a fetch answer with their raw bytes, which may end in a cut batch. Raises BrokerRefused."""
    for topic in _answer(FetchResponse, body).responses:
        for partition in topic.partitions:
            if partition.error_code:
                raise BrokerRefused(f"fetch of {topic.topic}-{partition.partition_index}: {partition.error_code.name}")
            yield partition.partition_index, partition.records or b""


def whole_batches(records: bytes) -> Iterator[tuple[int, int, int]]:
    """``(start, end, offset after it)`` of each complete batch."""
    start, length = 0, len(records)
    while start + HEADER <= length:
        base, batch_length = struct.unpack_from(">qi", records, start)
        end = start + BATCH_OVERHEAD + batch_length
        if end > length:
            return
        (last_delta,) = struct.unpack_from(">i", records, start + LAST_OFFSET_DELTA_AT)
        yield start, end, base + last_delta + 1
        start = end


def record_count(records: bytes, start: int) -> int:
    """How many records the batch that begins at ``start`` holds, by its header."""
    (count,) = struct.unpack_from(">i", records, start + RECORD_COUNT_AT)
    return int(count)


def produce_frame(topic: str, batches: Iterable[tuple[int, bytes]]) -> bytes:
    """A produce request with acks from all replicas: at most one batch a partition, each with base offset 0."""
    return _frame(
        ProduceRequest(
            acks=i16(-1),
            timeout=i32Timedelta.parse(TIMEOUT),
            topic_data=(
                TopicProduceData(
                    name=TopicName(topic),
                    partition_data=tuple(
                        PartitionProduceData(index=i32(partition), records=Records(batch))
                        for partition, batch in batches
                    ),
                ),
            ),
        )
    )


def produced(body: bytes) -> None:
    """Raises BrokerRefused when a batch of the answered request was not appended."""
    for topic in _answer(ProduceResponse, body).responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise BrokerRefused(f"produce to {topic.name}-{partition.index}: {partition.error_code.name}")


def end_offsets(connection: Connection, topic: str, partitions: int, *, committed: bool = False) -> tuple[int, ...]:
    """The high watermark of each partition, or where what is ``committed`` ends.

    Zeros while the topic is not there. Raises BrokerRefused on any other error.
    """
    return tuple(0 if end is None else end for end in ends_if_led(connection, topic, partitions, committed=committed))


def ends_everywhere(
    connections: Iterable[Connection], topic: str, partitions: int, *, committed: bool = False
) -> tuple[int, ...]:
    """As `end_offsets`, of a cluster of several brokers: each says it of what it leads."""
    found = [ends_if_led(connection, topic, partitions, committed=committed) for connection in connections]
    return tuple(max((end for end in ends if end is not None), default=0) for ends in zip(*found, strict=True))


@contextmanager
def to_each(bootstrap: str) -> Iterator[Sequence[Connection]]:
    """A connection to each broker that the bootstrap addresses name."""
    with ExitStack() as stack:
        yield [stack.enter_context(Connection(address)) for address in bootstrap.split(",")]


def ends_if_led(
    connection: Connection, topic: str, partitions: int, *, committed: bool = False
) -> tuple[int | None, ...]:
    """As `end_offsets`, but None for a partition that does not exist or has no leader yet."""
    wanted = tuple(ListOffsetsPartition(partition_index=i32(each), timestamp=i64(LATEST)) for each in range(partitions))
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(1 if committed else 0),
        topics=(ListOffsetsTopic(name=TopicName(topic), partitions=wanted),),
    )
    connection.send(_frame(request))
    found: list[int | None] = [None] * partitions
    for answered in _answer(ListOffsetsResponse, connection.receive()).topics:
        for partition in answered.partitions:
            if not partition.error_code:
                found[partition.partition_index] = partition.offset
            elif partition.error_code not in NOT_YET:
                raise BrokerRefused(f"end of {topic}-{partition.partition_index}: {partition.error_code.name}")
    return tuple(found)
