"""Where a partition begins that has no row of ours yet: at MM2's progress, else where `lockstep.start.timestamp` says,
else where `auto.offset.reset` does."""

from __future__ import annotations

from lockstep_config import FlowSettings
from lockstep_data_plane.wire.cluster import ClusterClient
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = ["first_row"]

EARLIEST, LATEST = -2, -1


async def first_row(
    source: ClusterClient, settings: FlowSettings, tp: TopicPartition, progress: int | None, downstream: int
) -> PartitionProgress:
    """The row with which a partition begins: nothing of ours appended yet behind `downstream`. Raises
    KafkaProtocolError, BrokerUnreachable."""
    if progress is not None:
        begin = progress + 1
    else:
        begin = await _first_offset(source, settings, tp)
    return PartitionProgress(topic=tp[0], partition=tp[1], upstream=begin - 1, downstream=downstream)


async def _first_offset(source: ClusterClient, settings: FlowSettings, tp: TopicPartition) -> int:
    plane = settings.data_plane
    moment = plane.start_timestamp.for_topic(tp[0])
    if moment is None:
        return await source.end_offset(tp, timestamp=EARLIEST if plane.auto_offset_reset == "earliest" else LATEST)
    # The end first: a record of that time that comes between the two questions is copied.
    end = await source.end_offset(tp, timestamp=LATEST)
    found = await source.end_offset(tp, timestamp=moment)
    return end if found < 0 else found
