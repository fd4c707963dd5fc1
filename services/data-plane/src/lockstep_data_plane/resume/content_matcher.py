"""Reading both logs for `content_match.py`: what the target holds of ours beyond a row, and what the source has left of
it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lockstep_data_plane.core.content_match import AmbiguousMatch, ContentMatch
from lockstep_data_plane.core.provenance import Provenance, appended_since, batches_with_records
from lockstep_data_plane.core.target_remnant import TargetRemnant
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_data_plane.wire.cluster import ClusterClient
from lockstep_data_plane.wire.log_reader import log_between, next_offset
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = ["MatchedPosition", "match_logs"]

MOST = 200_000
"""Records of ours beyond the last progress that are compared at most: far more than a slot appends between two rows."""

NO_LIMITS = TargetLimits(max_bytes=2**31 - 1)


@dataclass(frozen=True, slots=True)
class MatchedPosition:
    """`upstream`: the last upstream offset the target has, -1: none of what the source still has; `next`: the first one
    that it does not have."""

    upstream: int
    next: int


async def match_logs(
    source: ClusterClient,
    target: ClusterClient,
    tp: TopicPartition,
    target_tp: TopicPartition,
    row: PartitionProgress,
    append_sequence: LastAppend,
    *,
    isolation: str,
    traces: Provenance,
    tombstones_kept_ms: int = 0,
) -> MatchedPosition:
    """Where the source's log goes on behind the records of ours that were appended to the target beyond `row`, up to
    the chain's end. `tombstones_kept_ms`: the target topic's `delete.retention.ms`. Raises AmbiguousMatch,
    RetriableError."""
    beyond = appended_since(row, append_sequence.sequence, append_sequence.others)
    if beyond > MOST:
        raise AmbiguousMatch(
            f"the target holds {beyond} records of ours beyond the last progress written, more than {MOST}"
        )
    there = TargetRemnant(row, append_sequence)
    end = await target.end_offset(target_tp)
    first = await target.end_offset(target_tp, timestamp=-2)
    begin = max(row.downstream + 1, first)
    async for batches, _ in log_between(target, target_tp, begin, end):
        for batch in batches:
            there.add(batch)
    there.ends()
    compacted = first <= row.downstream + 1 and not there.strangers
    # A record cannot have been copied before it was written. Half of the time is left for clocks that are ahead.
    since = round(time.time() * 1000) - tombstones_kept_ms // 2 if compacted else None
    alignment = ContentMatch(there.records, there.gone_before, beyond, since)
    end = await source.end_offset(tp)
    position = reached = max(row.upstream + 1, await source.end_offset(tp, timestamp=-2))
    async for batches, aborted in log_between(source, tp, position, end, isolation):
        await traces.learn(batches_with_records(batches))
        for batch in batches:
            elsewhere = traces.producer_of(batch) is None
            action, _ = classify(batch, position, NO_LIMITS, aborted=aborted.holds(batch), elsewhere=elsewhere)
            if action in (BatchAction.SKIP, BatchAction.REFUSE):
                continue
            records = [r for r in read_records(batch) if r.offset >= position]
            if alignment.add(there.as_stamped(records)) and alignment.next is not None:
                return MatchedPosition(alignment.upstream, alignment.next)
        reached = next_offset(batches[-1])
    alignment.ends()
    return MatchedPosition(alignment.upstream, reached if alignment.next is None else alignment.next)
