"""The reading of both logs of a copy whose records carry no producer id, until the records show where the copy is.

`core/target_log/log_read_back.py` decides.
"""

import asyncio

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.locate import LogEnds
from lockstep_data_plane.core.target_log.log_read_back import ComparedCopy, CopyComparison, ReadBackTail, last_pair
from lockstep_data_plane.core.target_log.target_tail import LogContradiction
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.resume.copied_records import copied_records
from lockstep_kafka.wire.cluster import DEBUGGING, EARLIEST, ClusterClient
from lockstep_state.rows.state_rows import PartitionProgress

ON_ITS_WAY_S = 2.0
"""The time, in seconds, within which a batch is appended whose connection has ended."""

REPLICATED_WITHIN_S = 30.0
"""The longest wait, in seconds, for replicas to have what the leader has."""

AGAIN_AFTER_S = 0.05

SEARCHED = 10_000
"""The number of the source's offsets that are searched for a record that the target seems to have twice. So many are
searched directly before the row, and so many from the record's own timestamp on.
"""


async def read_back(target: ClusterClient, partition: PartitionState, row: PartitionProgress) -> ReadBackTail:
    """Return what the target holds behind the row, once that is replicated or the wait for it is over.

    Raises KafkaProtocolError and BrokerUnreachable.
    """
    await asyncio.sleep(ON_ITS_WAY_S)
    tp, deadline = partition.target_tp, asyncio.get_running_loop().time() + REPLICATED_WITHIN_S
    appended_to = await target.end_offset(tp, replica_id=DEBUGGING)
    while True:
        end = await target.end_offset(tp)
        tail = ReadBackTail(row, log_end=end, name=partition.target_name, alias=target.alias)
        if not tail.is_short:
            await _read(target, partition, tail, appended_to)
        if tail.is_settled or asyncio.get_running_loop().time() > deadline:
            return tail
        await asyncio.sleep(AGAIN_AFTER_S)


async def _read(target: ClusterClient, partition: PartitionState, tail: ReadBackTail, appended_to: int) -> None:
    tp = partition.target_tp
    start = max(tail.reads_from, await target.end_offset(tp, timestamp=EARLIEST))
    try:
        async for batches, _ in log_between(target, tp, start, tail.log_end):
            tail.add_batches(batches)
        tail.replicated(appended_to)
    except LogContradiction as found:
        tail.contradiction = found


async def compare_logs(
    source: ClusterClient,
    partition: PartitionState,
    row: PartitionProgress,
    tail: ReadBackTail,
    ends: LogEnds,
    *,
    isolation: str,
) -> ComparedCopy:
    """Return where the copy is.

    Raises:
        LogContradiction: The records do not show it.
        RetriableError: The source does not answer or refuses a request.
    """
    if row.transform and row.transform != partition.transform_version:
        if tail.records:
            raise LogContradiction(
                f"the target's log of {partition.target_name} holds {len(tail.records)} records behind our last known "
                "one that another version of the transform has made, and the target keeps no producer ids"
            )
        return ComparedCopy(row.upstream + 1, row.upstream + 1)
    comparison = CopyComparison(row, tail)
    pair = last_pair(row)
    if pair is not None and ends.start <= pair[0] < ends.end:
        comparison.require_run(await _record_at(source, partition, row, pair[0], isolation))
    if comparison.is_open:
        begin = max(row.upstream + 1, ends.start)
        async for records, _ in copied_records(source, partition, row, begin, ends.end, isolation):
            if comparison.compare(records):
                break
    comparison.ends(ends.end)
    if comparison.strangers:
        await _search(source, partition, row, comparison, ends, isolation)
    return comparison.result()


async def _search(
    source: ClusterClient,
    partition: PartitionState,
    row: PartitionProgress,
    comparison: CopyComparison,
    ends: LogEnds,
    isolation: str,
) -> None:
    """Search the source before the row for records that were appended again."""
    copied = min(row.upstream + 1, ends.end)
    begins = [copied - SEARCHED]
    times = [record.timestamp for record in comparison.strangers if record.timestamp >= 0]
    if times:
        begins.append(await source.end_offset(partition.tp, timestamp=min(times)))
    for begin in begins:
        start = max(begin, ends.start)
        end = min(start + SEARCHED, copied)
        async for records, _ in copied_records(source, partition, row, start, end, isolation):
            comparison.search(records)


async def _record_at(
    source: ClusterClient, partition: PartitionState, row: PartitionProgress, offset: int, isolation: str
) -> PlainRecord | None:
    async for records, _ in copied_records(source, partition, row, offset, offset + 1, isolation):
        return next((record for record in records if record.offset == offset), None)
    return None
