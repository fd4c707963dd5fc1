"""The record batches of a topic as they lie in its log, which no consumer shows."""

from __future__ import annotations

import asyncio

from lockstep_data_plane.batches.layout import CODEC_MASK, CONTROL, Batch
from lockstep_data_plane.cluster import cluster_of
from lockstep_data_plane.reading import log_between
from tests.unit.data_plane.batch_bytes import decoded

__all__ = ["body", "codecs_of_records", "read_batches"]

HEADER = 61


def read_batches(bootstrap: str, topic: str, partition: int = 0) -> list[Batch]:
    """Every batch between where the log begins and where it ends now, markers too. Not for a thread with an event loop:
    async tests call it through `asyncio.to_thread`."""
    return asyncio.run(_read(bootstrap, topic, partition))


def codecs_of_records(bootstrap: str, topic: str, partition: int = 0) -> dict[int, int]:
    """The codec of the batch that each record lies in, by offset and in order."""
    return {
        record.offset: batch.attributes & CODEC_MASK
        for batch in read_batches(bootstrap, topic, partition)
        if not batch.attributes & CONTROL
        for record in decoded(batch.data, batch.base_offset)
    }


def body(batch: Batch) -> bytes:
    """What lies behind the header: the records, compressed as they are."""
    return bytes(batch.data[HEADER:])


async def _read(bootstrap: str, topic: str, partition: int) -> list[Batch]:
    cluster, tp = cluster_of("read", {"bootstrap.servers": bootstrap}, "read-batches"), (topic, partition)
    try:
        await cluster.refresh([topic])
        start, end = await cluster.end_offset(tp, timestamp=-2), await cluster.end_offset(tp)
        return [batch async for batches, _ in log_between(cluster, tp, start, end) for batch in batches]
    finally:
        await cluster.close()
