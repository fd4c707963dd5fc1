"""The records of both logs behind a row, where counting does not say where the copy ends."""

import time

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch, ContentMatch, MatchedPosition
from lockstep_data_plane.core.target_log.surviving_appends import SurvivingAppends
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.target_log.transformed_match import TransformedComparison, TransformedMatch
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.resume.copied_records import copied_records
from lockstep_kafka.wire.cluster import EARLIEST, ClusterClient
from lockstep_state.rows.state_rows import PartitionProgress

MOST = 200_000
"""The most records of ours beyond the last progress that are compared: far more than a slot appends between two rows.
"""


async def match_logs(
    source: ClusterClient,
    target: ClusterClient,
    partition: PartitionState,
    row: PartitionProgress,
    chain_end: LastAppend,
    *,
    isolation: str,
) -> MatchedPosition:
    """Return where the source's log goes on behind our records beyond `row` that the target holds.

    These records end at `chain_end`.

    Raises:
        AmbiguousMatch: The records do not show it.
        RetriableError: A cluster does not answer or refuses a request.
    """
    beyond = appended_since(row, chain_end.sequence, chain_end.others)
    surviving, start = await _surviving(target, partition, row, chain_end, beyond)
    compacted = start <= row.downstream + 1 and not surviving.strangers
    # A record cannot have been copied before it was written. Half of the time is left for clocks that are ahead.
    since = round(time.time() * 1000) - partition.limits.tombstones_kept_ms // 2 if compacted else None
    match = ContentMatch(surviving.records, surviving.gone_before, beyond, since)
    end = await source.end_offset(partition.tp)
    remaining = MOST
    reached = max(row.upstream + 1, await source.end_offset(partition.tp, timestamp=EARLIEST))
    async for copied, behind in copied_records(source, partition, row, reached, end, isolation):
        records = surviving.as_stamped(copied)
        if match.next is None and not match.compare(records):
            reached = behind
            continue
        if match.next is None or match.next >= row.upstream + 1 + beyond or remaining <= 0:
            break
        # So few offsets cannot hold so many records: the log is another one, or that record was not to be copied.
        match.require_parted(record for record in records if record.offset > match.next)
        remaining -= len(records)
    if match.next is None:
        match.ends()
    if match.next is None:
        return MatchedPosition(match.upstream, reached, at_end=True)
    return MatchedPosition(match.upstream, match.next)


async def match_transformed(
    source: ClusterClient,
    target: ClusterClient,
    partition: PartitionState,
    row: PartitionProgress,
    chain_end: LastAppend,
    *,
    isolation: str,
) -> TransformedMatch:
    """Return where a copy whose row names a transform ends, by each of our records behind the row.

    They are compared with what the partition's transform leaves of the source. That transform may have another version
    than the row names. Then equal records show that it makes the same of them.

    Raises:
        AmbiguousMatch: The records do not show it.
        RetriableError: A cluster does not answer or refuses a request, or the transform is not evaluated now.
        NeedsDecision: The transform cannot be evaluated.
    """
    beyond = appended_since(row, chain_end.sequence, chain_end.others)
    surviving, _ = await _surviving(target, partition, row, chain_end, beyond)
    if surviving.gone_before >= 0 or len(surviving.records) != beyond:
        raise AmbiguousMatch("the target has lost some of them, so they cannot be compared with what the source gives")
    comparison = TransformedComparison(surviving.records)
    end = await source.end_offset(partition.tp)
    start = max(row.upstream + 1, await source.end_offset(partition.tp, timestamp=EARLIEST))
    async for copied, _ in copied_records(source, partition, row, start, end, isolation):
        if comparison.compare(surviving.as_stamped(copied)):
            break
    return comparison.result()


async def _surviving(
    target: ClusterClient, partition: PartitionState, row: PartitionProgress, chain_end: LastAppend, beyond: int
) -> tuple[SurvivingAppends, int]:
    """Return those of our `beyond` records behind the row that the target's log still holds, and where it began.

    The start of the log is that of before the reading.

    Raises:
        AmbiguousMatch: They are too many to compare.
        RetriableError: The target does not answer or refuses a request.
    """
    if beyond > MOST:
        raise AmbiguousMatch(
            f"the target holds {beyond} records of ours beyond the last progress written, more than {MOST}"
        )
    surviving = SurvivingAppends(row, chain_end)
    end = await target.end_offset(partition.target_tp)
    start = await target.end_offset(partition.target_tp, timestamp=EARLIEST)
    async for batches, _ in log_between(target, partition.target_tp, max(row.downstream + 1, start), end):
        for batch in batches:
            surviving.add_batch(batch)
    surviving.ends()
    return surviving, start
