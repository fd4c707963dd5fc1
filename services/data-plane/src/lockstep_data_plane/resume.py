"""Where our chain of appends ends in a partition of the target, read from the target itself (`wire.md` §2, lines 2 to
5).

Progress is written down after the fact, so the log may be further on than the row says. The producer id, epoch and
sequence of each batch stay in the log for ever, and DescribeProducers knows the last sequence even beyond the high
watermark: together they say exactly how many records of ours the log holds more than the row says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from lockstep_data_plane.batches.layout import CONTROL, Batch
from lockstep_data_plane.batches.stamp import SEQUENCES, add_sequence
from lockstep_data_plane.cluster import Cluster, TopicPartition, kafka_error
from lockstep_data_plane.connection import BrokerUnreachable, message
from lockstep_data_plane.reading import log_between
from lockstep_protocol.state import PartitionProgress

__all__ = [
    "ChainEnd",
    "InDoubt",
    "LaterEpoch",
    "NotReplicated",
    "TargetShort",
    "chain_end",
    "committed_end",
    "end_from_log",
]

SETTLE = timedelta(seconds=30)
"""How long we wait for what the leader has appended to become visible (replicated) before saying that it does not."""


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The last record of our chain: its sequence and its offset downstream; and the batch it lies in, where that was
    read."""

    sequence: int
    downstream: int
    last: Batch | None = field(default=None, compare=False)


class InDoubt(RuntimeError):
    """The target's log does not continue what our row says; the message says how. Somebody has to decide."""


class LaterEpoch(InDoubt):
    """The log holds batches of a later epoch of ours than the row knows: a decision was taken whose row we have not
    seen, or that was lost."""

    def __init__(self, sentence: str, epoch: int) -> None:
        super().__init__(sentence)
        self.epoch = epoch


class TargetShort(InDoubt):
    """The target's log ends before what was appended and acknowledged: it was truncated."""


class NotReplicated(RuntimeError):
    """The target's leader has appended more of ours than its replicas have; going on would be a guess."""


def end_from_log(found: ChainEnd, batches: list[Batch], producer_id: int, epoch: int) -> ChainEnd:
    """Follow the chain through some batches of the target's log; batches of others, and markers, do not matter.

    Raises LaterEpoch when the log holds batches of a later epoch of ours."""
    for batch in batches:
        if batch.producer_id != producer_id or batch.attributes & CONTROL:
            continue
        if batch.producer_epoch > epoch:
            raise LaterEpoch(
                f"the target's log holds epoch {batch.producer_epoch} of our producer {producer_id} at offset "
                f"{batch.base_offset}, our row knows epoch {epoch} only",
                batch.producer_epoch,
            )
        if batch.producer_epoch == epoch:
            found = ChainEnd(add_sequence(batch.base_sequence, batch.last_offset_delta), batch.last_offset, batch)
    return found


async def chain_end(target: Cluster, tp: TopicPartition, row: PartitionProgress) -> ChainEnd:
    """Where the chain that `row` describes ends now in `tp` of the target.

    Raises InDoubt (somebody has to decide), NotReplicated (try again later), kafka_error and BrokerUnreachable
    (likewise)."""
    deadline = asyncio.get_running_loop().time() + SETTLE.total_seconds()
    while True:
        remembered = await _remembered(target, tp, row.producer_id)
        found = await _read_tail(target, tp, row)
        if remembered is None or remembered[0] < row.producer_epoch:
            return found
        epoch, sequence = remembered
        if epoch > row.producer_epoch:
            raise LaterEpoch(
                f"the target knows epoch {epoch} of our producer {row.producer_id}, our row knows {row.producer_epoch}",
                epoch,
            )
        if sequence == found.sequence:
            return found
        late = asyncio.get_running_loop().time() > deadline
        if (sequence - found.sequence) % SEQUENCES > SEQUENCES // 2:
            # Appended between the two questions, by a slot that still holds the partition: ask again.
            if late:
                raise TargetShort(
                    f"the target's log of {tp[0]}-{tp[1]} ends at our sequence {sequence}, but up to {row.sequence} "
                    "was appended: it was truncated"
                )
        elif late:
            raise NotReplicated(
                f"the leader of {tp[0]}-{tp[1]} on cluster {target.alias} holds our sequence {sequence}, "
                f"what is replicated ends at {found.sequence}"
            )
        await asyncio.sleep(0.05)


async def committed_end(target: Cluster, tp: TopicPartition, row: PartitionProgress) -> ChainEnd:
    """Where the next transaction of a row that tells of transactions begins: at the log's end, for what is there is
    decided. Raises TargetShort, kafka_error and BrokerUnreachable."""
    end = await target.end_offset(tp)
    if end <= row.downstream:
        raise TargetShort(_short(tp, end, row))
    return ChainEnd(row.sequence, end - 1)


def _short(tp: TopicPartition, end: int, row: PartitionProgress) -> str:
    return (
        f"the target's log of {tp[0]}-{tp[1]} ends at {end}, but our row says that {row.downstream} was appended: "
        "it was truncated"
    )


async def _remembered(target: Cluster, tp: TopicPartition, producer_id: int) -> tuple[int, int] | None:
    """(epoch, last sequence) of our producer as the leader remembers it at its log's end, or None when it does not."""
    leader = target.leader(tp)
    if leader is None:
        raise BrokerUnreachable(f"{tp[0]}-{tp[1]} has no leader", target.alias)
    connection = await target.connection(leader.broker, "ask")
    m = message("describe_producers", connection.version("describe_producers"), "request")
    topic = m.TopicRequest(name=tp[0], partition_indexes=(tp[1],))
    answer = await connection.call(m.DescribeProducersRequest(topics=(topic,)))
    partition = answer.topics[0].partitions[0]
    if partition.error_code != 0:
        raise kafka_error(int(partition.error_code), f"cluster {target.alias}: producers of {tp[0]}-{tp[1]}")
    for producer in partition.active_producers:
        if producer.producer_id == producer_id and producer.last_sequence >= 0:
            return int(producer.producer_epoch), int(producer.last_sequence)
    return None


async def _read_tail(target: Cluster, tp: TopicPartition, row: PartitionProgress) -> ChainEnd:
    found = ChainEnd(row.sequence, row.downstream)
    offset = row.downstream + 1
    start = await target.end_offset(tp, timestamp=-2)
    end = await target.end_offset(tp)
    if end < offset:
        raise TargetShort(_short(tp, end, row))
    offset = max(offset, start)
    async for batches, _ in log_between(target, tp, offset, end):
        found = end_from_log(found, batches, row.producer_id, row.producer_epoch)
    return found
