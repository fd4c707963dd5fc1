"""Reading both logs for `align.py`: what the target holds of ours beyond a row, and what the source has left of it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from lockstep_data_plane.align import Alignment, Ambiguous
from lockstep_data_plane.batches.judge import Limits, Verdict, judge
from lockstep_data_plane.batches.layout import LOG_APPEND_TIME
from lockstep_data_plane.batches.rebuild import Record, read
from lockstep_data_plane.cluster import Cluster, TopicPartition
from lockstep_data_plane.provenance import Traces, bearing_records
from lockstep_data_plane.reading import end_of, log_between
from lockstep_protocol.state import PartitionProgress

__all__ = ["Aligned", "align_logs"]

MOST = 200_000
"""Records of ours beyond the last progress that are compared at most: far more than a slot appends between two rows."""

NO_LIMITS = Limits(max_bytes=2**31 - 1)


@dataclass(frozen=True, slots=True)
class Aligned:
    """`upstream`: the last upstream offset the target has, -1: none of what the source still has; `next`: the first one
    that it does not have."""

    upstream: int
    next: int


async def align_logs(
    source: Cluster,
    target: Cluster,
    tp: TopicPartition,
    target_tp: TopicPartition,
    row: PartitionProgress,
    beyond: int,
    *,
    isolation: str,
    traces: Traces,
    ours: Set[int],
) -> Aligned:
    """Where the source's log goes on behind the `beyond` records of ours that the target holds beyond `row`; `ours` are
    the producer ids that they bear. Raises Ambiguous, and what passes: kafka_error, BrokerUnreachable."""
    if beyond > MOST:
        raise Ambiguous(f"the target holds {beyond} records of ours beyond the last progress written, more than {MOST}")
    tail: list[Record] = []
    stamped_there = False
    end = await target.end_offset(target_tp)
    async for batches, _ in log_between(target, target_tp, row.downstream + 1, end):
        for batch in batches:
            if batch.producer_id in ours and batch.producer_epoch == row.producer_epoch:
                stamped_there = stamped_there or bool(batch.attributes & LOG_APPEND_TIME)
                tail.extend(read(batch))
    alignment = Alignment(_timeless(tail) if stamped_there else tail)
    end = await source.end_offset(tp)
    position = reached = max(row.upstream + 1, await source.end_offset(tp, timestamp=-2))
    async for batches, aborted in log_between(source, tp, position, end, isolation):
        await traces.learn(bearing_records(batches))
        for batch in batches:
            elsewhere = traces.producer_of(batch) is None
            verdict, _ = judge(batch, position, NO_LIMITS, aborted=aborted.holds(batch), elsewhere=elsewhere)
            if verdict in (Verdict.SKIP, Verdict.REFUSE):
                continue
            records = [r for r in read(batch) if r.offset >= position]
            if alignment.take(_timeless(records) if stamped_there else records) and alignment.next is not None:
                return Aligned(alignment.upstream, alignment.next)
        reached = end_of(batches[-1])
    return Aligned(alignment.upstream, reached)


def _timeless(records: list[Record]) -> list[Record]:
    """The target gave them times of its own, so times say nothing."""
    return [record._replace(timestamp=-1) for record in records]
