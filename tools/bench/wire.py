"""The least of Kafka's protocol that measuring needs: requests for raw batches and for the ends of logs.

By topic name, and to brokers that lead every partition that is fetched or appended.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from tests.support.wire import Connection, answer_of, frame

TIMEOUT = timedelta(seconds=60)
LATEST = -1
NOT_YET = (3, 5, 6, 78)
"""Unknown topic, leader not available, not the leader, offset not available: while a topic is being created."""


class BrokerRefused(Exception):
    """A broker answered with an error where the measurement cannot go on."""


def fetch_frame(topic: str, positions: Mapping[int, int], *, partition_max_bytes: int, max_bytes: int) -> bytes:
    """Return a sessionless fetch of the given partitions from the given offsets."""
    wanted = tuple(
        FetchPartition(partition=i32(number), fetch_offset=i64(offset), partition_max_bytes=i32(partition_max_bytes))
        for number, offset in positions.items()
    )
    return frame(
        FetchRequest(
            max_wait=i32Timedelta.parse(timedelta(milliseconds=500)),
            min_bytes=i32(1),
            max_bytes=i32(max_bytes),
            isolation_level=i8(0),
            topics=(FetchTopic(topic=TopicName(topic), partitions=wanted),),
            forgotten_topics_data=(),
        )
    )


def fetched(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the partitions of a fetch answer with their bytes, which may end in a cut batch. Raises BrokerRefused."""
    for topic in answer_of(FetchRequest, body).responses:
        for partition in topic.partitions:
            if partition.error_code:
                raise BrokerRefused(f"fetch of {topic.topic}-{partition.partition_index}: {partition.error_code.name}")
            yield partition.partition_index, partition.records or b""


def produce_frame(topic: str, batches: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a produce request with acks from all replicas: at most one batch a partition, with base offset 0."""
    data = tuple(PartitionProduceData(index=i32(number), records=Records(batch)) for number, batch in batches)
    return frame(
        ProduceRequest(
            acks=i16(-1),
            timeout=i32Timedelta.parse(TIMEOUT),
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=data),),
        )
    )


def produced(body: bytes) -> None:
    """Check that each batch of the answered request was appended. Raises BrokerRefused."""
    for topic in answer_of(ProduceRequest, body).responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise BrokerRefused(f"produce to {topic.name}-{partition.index}: {partition.error_code.name}")


@contextmanager
def ends_of(
    bootstrap: str, topic: str, partitions: int, *, committed: bool = False
) -> Iterator[Callable[[], tuple[int, ...]]]:
    """Yield what tells where each partition ends now; 0 while it is not there.

    Every broker that `bootstrap` names is asked about what it leads. The end is the high watermark, or the end of what
    is `committed`. The function raises BrokerRefused.
    """
    with ExitStack() as stack:
        brokers = [stack.enter_context(Connection(address)) for address in bootstrap.split(",")]

        def ends() -> tuple[int, ...]:
            by_broker = [ends_if_led(broker, topic, partitions, committed=committed) for broker in brokers]
            return tuple(max(end or 0 for end in answers) for answers in zip(*by_broker, strict=True))

        yield ends


def end_offsets(bootstrap: str, topic: str, partitions: int) -> tuple[int, ...]:
    """Return where each partition ends now. Raises BrokerRefused."""
    with ends_of(bootstrap, topic, partitions) as ends:
        return ends()


def ends_if_led(broker: Connection, topic: str, partitions: int, *, committed: bool = False) -> tuple[int | None, ...]:
    """Return the end of each partition; None for one that this broker does not lead."""
    wanted = tuple(
        ListOffsetsPartition(partition_index=i32(number), timestamp=i64(LATEST)) for number in range(partitions)
    )
    broker.send(
        frame(
            ListOffsetsRequest(
                replica_id=BrokerId(-1),
                isolation_level=i8(1 if committed else 0),
                topics=(ListOffsetsTopic(name=TopicName(topic), partitions=wanted),),
            )
        )
    )
    ends: list[int | None] = [None] * partitions
    for answered in answer_of(ListOffsetsRequest, broker.receive()).topics:
        for partition in answered.partitions:
            if not partition.error_code:
                ends[partition.partition_index] = partition.offset
            elif partition.error_code not in NOT_YET:
                raise BrokerRefused(f"end of {topic}-{partition.partition_index}: {partition.error_code.name}")
    return tuple(ends)
