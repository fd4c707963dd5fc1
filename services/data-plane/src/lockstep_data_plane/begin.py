"""Where a partition begins that has no row of ours yet: at MM2's progress, else where `auto.offset.reset` says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from lockstep_config import FlowSettings
from lockstep_config import clients as client_settings
from lockstep_data_plane.cluster import Cluster, TopicPartition
from lockstep_protocol.codec import MalformedRecord, decode_source_progress
from lockstep_protocol.state import PartitionProgress
from lockstep_runtime.errors import TopicMissing
from lockstep_runtime.follow import Record, follow

__all__ = ["first_row", "fold_progress", "read_progress"]

EARLIEST, LATEST = -2, -1


def fold_progress(known: dict[TopicPartition, int], records: Sequence[Record], source: str) -> None:
    """Last replicated upstream offset of each partition, as MM2's source connector keeps it (`mm2.md` §1.7); a null
    value is a reset. Records of other clusters and connectors do not matter."""
    for record in records:
        try:
            found = decode_source_progress(record.key or b"", record.value)
        except MalformedRecord:
            continue  # a shared Connect cluster keeps other connectors' offsets here too, in whatever form
        if found is None or found.cluster != source:
            continue
        tp = (found.topic, found.partition)
        if found.offset is None:
            known.pop(tp, None)
        else:
            known[tp] = found.offset


async def read_progress(settings: FlowSettings) -> Mapping[TopicPartition, int]:
    """MM2's progress of the flow, read once from the beginning to the end. Empty where the topic does not exist."""
    known: dict[TopicPartition, int] = {}
    conf = client_settings.target_consumer(settings, "progress-consumer")
    follower = follow(
        conf,
        settings.control.offset_storage_topic,
        on_records=lambda records: fold_progress(known, records, settings.flow.source),
        alias=settings.flow.target,
    )
    try:
        async with asyncio.timeout(60), follower:
            await follower.caught_up()
    except TopicMissing:
        return {}
    return known


async def first_row(
    source: Cluster,
    target: Cluster,
    settings: FlowSettings,
    tp: TopicPartition,
    target_topic: str,
    progress: int | None,
) -> PartitionProgress:
    """The row with which a partition begins: nothing of ours appended yet. Raises kafka_error, BrokerUnreachable."""
    if progress is not None:
        begin = progress + 1
    else:
        reset = EARLIEST if settings.data_plane.auto_offset_reset == "earliest" else LATEST
        begin = await source.end_offset(tp, timestamp=reset)
    end = await target.end_offset((target_topic, tp[1]))
    return PartitionProgress(topic=tp[0], partition=tp[1], upstream=begin - 1, downstream=end - 1)
