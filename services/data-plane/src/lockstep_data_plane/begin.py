"""Where a partition begins that has no row of ours yet: at MM2's progress, else where `auto.offset.reset` says."""

from __future__ import annotations

from lockstep_config import FlowSettings
from lockstep_data_plane.cluster import Cluster, TopicPartition
from lockstep_protocol.state import PartitionProgress

__all__ = ["first_row"]

EARLIEST, LATEST = -2, -1


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
