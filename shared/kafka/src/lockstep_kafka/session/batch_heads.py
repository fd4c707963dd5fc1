"""The headers of some batches of a log: which codec they have and how large they are. The records stay unread."""

import asyncio
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from lockstep_config.flow.model import FetchSettings
from lockstep_kafka.messages.fetch_codec import fetch_request, read_response, topic_names
from lockstep_kafka.messages.fetch_session import UNSAID, FetchPosition
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.request_client import request_client
from lockstep_state.kafka.batch_codecs import CODEC_NAMES
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

PURPOSE = "batch-heads"

_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = _HEADER.size
"""Bytes of a batch before its records."""

_LENGTH_AT, _CODEC, _CONTROL = 12, 0x07, 0x20
_FORMAT = 2
"""The record format whose batches have a header: that of Kafka 0.11 and newer."""

AT_ONCE = FetchSettings(max_wait_ms=0, max_bytes=8 * 1024 * 1024, max_partition_bytes=64 * 1024)
"""One fetch. A batch that is larger than a partition's limit comes if the partition is the first of its fetch."""


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The header of one batch. `stored_bytes` is its size in the log."""

    codec: str
    base_offset: int
    last_offset: int
    records: int
    stored_bytes: int


async def read_batch_heads(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    offsets: Mapping[TopicPartition, int],
    timeout_s: float,
) -> dict[TopicPartition, tuple[BatchHead, ...]]:
    """Return headers of the batches from these offsets on.

    A partition is absent if its leader gives no batch: it has none, we may not read it, or the time is over.

    Args:
        alias: The alias of the cluster, for errors.
        properties: Java properties of a consumer.
        client_id: The client id for the brokers.
        offsets: The offset from which each partition is read.
        timeout_s: Seconds that each connection and each answer, and the reading as a whole, may take.

    Raises:
        ClusterUnreachable: A broker does not answer.
        RequestUnsupported: A broker knows Fetch or Metadata in no version of ours.
    """
    heads: dict[TopicPartition, tuple[BatchHead, ...]] = {}
    async with request_client(alias, properties, client_id, timeout_s, "read", "batches") as cluster:
        await cluster.refresh({topic for topic, _ in offsets})
        by_leader: dict[int, list[FetchPosition]] = {}
        for tp, offset in offsets.items():
            if (leader := cluster.leader(tp)) is not None:
                position = tp, replace(leader, epoch=UNSAID), offset, UNSAID
                by_leader.setdefault(leader.broker, []).append(position)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                readings = (_read_from(cluster, broker, led, heads) for broker, led in by_leader.items())
                await asyncio.gather(*readings)
    return heads


async def _read_from(
    cluster: ClusterClient,
    broker: int,
    waiting: list[FetchPosition],
    heads: dict[TopicPartition, tuple[BatchHead, ...]],
) -> None:
    """Fetch until each partition has given a batch or an error. The first of a fetch gives a batch of any size."""
    connection = await cluster.connection(broker, PURPOSE)
    version = connection.version("fetch")
    while waiting:
        by_id = all(leader.topic_id is not None for _, leader, _, _ in waiting)
        answer = await connection.request(fetch_request(version, waiting, AT_ONCE, by_id=by_id))
        done = {waiting[0][0]}
        for fetched in read_response([tp for tp, *_ in waiting], answer, topic_names(waiting)):
            if batches := tuple(_heads(fetched.records)):
                heads[fetched.tp] = batches
            if batches or fetched.code != KafkaErrorCode.NONE:
                done.add(fetched.tp)
        waiting = [position for position in waiting if position[0] not in done]


def _heads(records: bytes) -> Iterator[BatchHead]:
    """Yield the header of each whole batch of records."""
    start = 0
    while start + _HEADER.size <= len(records):
        base_offset, length, _, magic, _, attributes, last_delta, *_, count = _HEADER.unpack_from(records, start)
        end = start + _LENGTH_AT + length
        if magic != _FORMAT or length <= 0 or end > len(records):
            return
        codec = attributes & _CODEC
        if not attributes & _CONTROL and codec < len(CODEC_NAMES):
            yield BatchHead(CODEC_NAMES[codec], base_offset, base_offset + last_delta, count, end - start)
        start = end
