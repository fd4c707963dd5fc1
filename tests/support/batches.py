"""The record batches of a topic as they lie in its log, which no consumer shows."""

import asyncio

from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.layout import CODEC_MASK, CONTROL, Batch
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_state.offsets import TopicPartition
from tests.support.batch_bytes import decoded

HEADER = 61


def read_batches(bootstrap: str, topic: str, partition: int = 0) -> list[Batch]:
    """Return every batch between where the log begins and where it ends now, markers too. Not for a thread with an
    event loop: async tests call it through `asyncio.to_thread`."""
    return asyncio.run(_read(bootstrap, topic, partition))[partition]


def codecs_of_records(bootstrap: str, topic: str) -> dict[tuple[int, int], int]:
    """Return the codec of the batch that each record lies in, by partition and offset and in that order. As
    `read_batches`."""
    return {
        (number, record.offset): batch.attributes & CODEC_MASK
        for number, batches in asyncio.run(_read(bootstrap, topic)).items()
        for batch in batches
        if not batch.attributes & CONTROL
        for record in decoded(batch.data, batch.base_offset)
    }


def body(batch: Batch) -> bytes:
    """Return what lies behind the header: the records, compressed as they are."""
    return bytes(batch.data[HEADER:])


async def _read(bootstrap: str, topic: str, partition: int | None = None) -> dict[int, list[Batch]]:
    cluster = connect_cluster("read", {"bootstrap.servers": bootstrap}, "read-batches")
    try:
        await cluster.refresh([topic])
        numbers = range(cluster.partitions(topic)) if partition is None else [partition]
        return {number: await _log(cluster, (topic, number)) for number in numbers}
    finally:
        await cluster.close()


async def _log(cluster: ClusterClient, tp: TopicPartition) -> list[Batch]:
    start, end = await cluster.end_offset(tp, timestamp=-2), await cluster.end_offset(tp)
    return [batch async for batches, _ in log_between(cluster, tp, start, end) for batch in batches]
