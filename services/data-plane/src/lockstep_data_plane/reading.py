"""Reading a stretch of a partition's log once, to find out where a copy stands. Nothing that is read here is copied."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lockstep_config.model import FetchSettings
from lockstep_data_plane.batches.judge import AbortedTransactions
from lockstep_data_plane.batches.layout import Batch, scan
from lockstep_data_plane.batches.rebuild import read
from lockstep_data_plane.cluster import Cluster, TopicPartition, kafka_error
from lockstep_data_plane.connection import BrokerUnreachable
from lockstep_data_plane.fetch_wire import fetch_request, read_answer

__all__ = ["log_between"]

AT_ONCE = FetchSettings(max_wait_ms=0, max_bytes=16 * 1024 * 1024, max_partition_bytes=4 * 1024 * 1024)


async def log_between(
    cluster: Cluster, tp: TopicPartition, offset: int, end: int, isolation: str = "read_uncommitted"
) -> AsyncIterator[tuple[list[Batch], AbortedTransactions]]:
    """The batches from the one that holds `offset` to the one before `end`, with the aborted transactions that each
    answer names; ends early where nothing more can be read (under read_committed at the last stable offset). Raises
    kafka_error and BrokerUnreachable."""
    while offset < end:
        leader = cluster.leader(tp)
        if leader is None:
            raise BrokerUnreachable(f"{tp[0]}-{tp[1]} has no leader", cluster.alias)
        connection = await cluster.connection(leader.broker, "tail")
        wanted = [(tp, leader, offset)]
        by_id = leader.topic_id is not None
        answer = await connection.call(fetch_request(connection, wanted, AT_ONCE, isolation=isolation, by_id=by_id))
        for fetched in read_answer(wanted, answer):
            if fetched.code != 0:
                raise kafka_error(fetched.code, f"cluster {cluster.alias}: reading {tp[0]}-{tp[1]} at {offset}")
            batches = list(scan(fetched.records))
            if not batches:
                return
            yield batches, AbortedTransactions(fetched.aborted)
            offset = _end_of(batches[-1])


def _end_of(batch: Batch) -> int:
    if batch.magic < 2:  # its header says nothing of the offsets inside
        return max((record.offset for record in read(batch)), default=batch.base_offset) + 1
    return batch.last_offset + 1
