"""Where our chain of appends ends in a partition of the target, read from the target itself (`kafka-wire.md` §2, lines
2 to 5).

Progress is written down after the fact, so the log may be further on than the row says. The producer id, epoch and
sequence of each batch stay in the log for ever, and DescribeProducers knows the last sequence even beyond the high
watermark: together they say exactly how many records of ours the log holds more than the row says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Set
from datetime import timedelta

from lockstep_data_plane.core.target_tail import (
    SEARCHED,
    InDoubt,
    LastAppend,
    LaterEpoch,
    TargetShort,
    TargetTail,
    Unaccounted,
)
from lockstep_data_plane.record_batch.stamp import SEQUENCES
from lockstep_data_plane.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_data_plane.wire.connection import message
from lockstep_data_plane.wire.log_reader import log_between
from lockstep_protocol.errors import RetriableError
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = ["NotReplicated", "committed_end", "find_last_append", "remembered_by"]

SETTLE = timedelta(seconds=30)
"""How long we wait for what the leader has appended to become visible (replicated) before saying that it does not."""


class NotReplicated(RetriableError):
    """The target's leader has appended more of ours than its replicas have; going on would be a guess."""


async def find_last_append(
    target: ClusterClient,
    tp: TopicPartition,
    row: PartitionProgress,
    ours: Callable[[], Awaitable[frozenset[int]]],
    *,
    shared: bool = False,
) -> LastAppend:
    """Where the chain that `row` describes ends now in `tp` of the target. `ours`: the producer ids other than the
    row's that may be ours, as of now. `shared`: others append there as well, so that what is gone need not have been
    ours, and the row's offset may be that of a record of theirs.

    Raises InDoubt (somebody has to decide), NotReplicated (try again later), KafkaProtocolError and BrokerUnreachable
    (likewise)."""
    deadline = asyncio.get_running_loop().time() + SETTLE.total_seconds()
    others = await ours()
    while True:
        end = await _end(target, tp, row)
        remembered = await remembered_by(target, tp, {row.producer_id, *others})
        found = LastAppend(row.sequence, row.downstream, others=row.others, read_to=end - 1)
        if not _leader_confirms(remembered, found, row, others):
            appended_to = await target.log_end(tp)
            tail = await _read_tail(target, tp, row, others, from_last=not shared)
            if tail.removed >= 0 and row.producer_id not in remembered and not shared:
                raise InDoubt(
                    f"the target's log of {tp[0]}-{tp[1]} holds nothing any more at offset {tail.removed}, behind our "
                    f"last record known at {tail.end.downstream}, and its leader has forgotten our producer "
                    f"{row.producer_id}: what was removed there may have been ours"
                )
            all_read = tail.end.read_to + 1 >= appended_to  # of what the leader remembers
            gone = tail.removed >= 0 and all_read
            ends = {p: sequence for p, (epoch, sequence) in remembered.items() if epoch == row.producer_epoch}
            found = tail.remembered(ends) if gone else tail.end
            if all_read and not row.begun:
                _require_new_producer(tp, row, found, ends)
        since = await ours()
        if not since <= others:
            others |= since  # another slot has got itself one meanwhile, and may have used it
            continue
        late = asyncio.get_running_loop().time() > deadline
        if all(_agrees(tp, target, row, found, p, *remembered[p], late=late) for p in sorted(remembered)):
            return found
        await asyncio.sleep(0.05)


def _leader_confirms(
    remembered: Mapping[int, tuple[int, int]], found: LastAppend, row: PartitionProgress, others: Set[int]
) -> bool:
    """Whether the leader itself says that nothing of ours was appended since: then the log need not be read."""
    return row.sequence >= 0 and all(
        remembered.get(p) == (row.producer_epoch, found.sequence_under(p, row.producer_id))
        for p in {row.producer_id, *others}
    )


def _require_new_producer(
    tp: TopicPartition, row: PartitionProgress, found: LastAppend, ends: Mapping[int, int]
) -> None:
    """Raises Unaccounted where the leader remembers something of the row's chain, and nothing of it lies behind the
    row."""
    for producer_id, sequence in sorted(ends.items()):
        if found.sequence_under(producer_id, row.producer_id) < 0:
            raise Unaccounted(
                f"the leader of {tp[0]}-{tp[1]} remembers our sequence {sequence} of producer {producer_id} in epoch "
                f"{row.producer_epoch}, of which our row does not tell",
                row.producer_epoch,
            )


def _agrees(
    tp: TopicPartition,
    target: ClusterClient,
    row: PartitionProgress,
    found: LastAppend,
    producer_id: int,
    epoch: int,
    sequence: int,
    *,
    late: bool,
) -> bool:
    """Whether what the leader remembers of a producer id is what was read; False: look again. Raises InDoubt, and
    NotReplicated."""
    ends = found.sequence_under(producer_id, row.producer_id)
    if epoch > row.producer_epoch:
        raise LaterEpoch(
            f"the target knows epoch {epoch} of our producer {producer_id}, our row knows {row.producer_epoch}", epoch
        )
    if epoch < row.producer_epoch or sequence == ends:
        return True
    if (sequence - ends) % SEQUENCES > SEQUENCES // 2:
        # Appended between the two questions, by a slot that still holds the partition: ask again.
        if late:
            raise TargetShort(
                f"the target's log of {tp[0]}-{tp[1]} ends at our sequence {sequence}, but up to {ends} "
                "was appended: it was truncated"
            )
    elif late:
        raise NotReplicated(
            f"the leader of {tp[0]}-{tp[1]} on cluster {target.alias} holds our sequence {sequence}, "
            f"what is replicated ends at {ends}"
        )
    return False


async def committed_end(target: ClusterClient, tp: TopicPartition, row: PartitionProgress) -> LastAppend:
    """Where the next transaction of a row that tells of transactions begins: at the log's end, for what is there is
    decided. Raises TargetShort, KafkaProtocolError and BrokerUnreachable."""
    end = await target.end_offset(tp)
    if end <= row.downstream:
        raise TargetShort(_short(tp, end, row))
    return LastAppend(row.sequence, end - 1)


def _short(tp: TopicPartition, end: int, row: PartitionProgress) -> str:
    return (
        f"the target's log of {tp[0]}-{tp[1]} ends at {end}, but our row says that {row.downstream} was appended: "
        "it was truncated"
    )


async def remembered_by(
    target: ClusterClient, tp: TopicPartition, producer_ids: Set[int]
) -> Mapping[int, tuple[int, int]]:
    """(epoch, last sequence) of those producers that the leader remembers at its log's end, be that replicated or not.
    Raises KafkaProtocolError and BrokerUnreachable."""
    leader = target.leader_of(tp)
    connection = await target.connection(leader.broker, "ask")
    m = message("describe_producers", connection.version("describe_producers"), "request")
    topic = m.TopicRequest(name=tp[0], partition_indexes=(tp[1],))
    answer = await connection.call(m.DescribeProducersRequest(topics=(topic,)))
    partition = answer.topics[0].partitions[0]
    if partition.error_code != KafkaErrorCode.NONE:
        about = f"cluster {target.alias}: producers of {tp[0]}-{tp[1]}"
        raise KafkaProtocolError(int(partition.error_code), about, target.alias, ("topic", tp[0], "Read"))
    return {
        int(p.producer_id): (int(p.producer_epoch), int(p.last_sequence))
        for p in partition.active_producers
        if p.producer_id in producer_ids and p.last_sequence >= 0
    }


async def _end(target: ClusterClient, tp: TopicPartition, row: PartitionProgress) -> int:
    """The log's end. Raises TargetShort where that lies before what was appended."""
    end = await target.end_offset(tp)
    if end < row.downstream + 1:
        raise TargetShort(_short(tp, end, row))
    return end


async def _read_tail(
    target: ClusterClient, tp: TopicPartition, row: PartitionProgress, others: Set[int], *, from_last: bool
) -> TargetTail:
    end = await _end(target, tp, row)
    tail = TargetTail(row, others)
    begin = row.downstream + 1
    if not row.begun:
        begin -= SEARCHED  # for what may lie in front of a chain that begins
    elif from_last:
        begin -= 1
    offset = max(begin, await target.end_offset(tp, timestamp=-2))
    async for batches, _ in log_between(target, tp, offset, end):
        tail.add(batches)
    tail.ends(end)
    return tail
