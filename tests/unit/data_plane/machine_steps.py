"""Steps of a partition's machine that many tests take."""

from dataclasses import replace

from lockstep_data_plane.common.in_flight_limits import WINDOW
from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.events import (
    Acked,
    ConnectionReady,
    Fetched,
    Ready,
    Received,
    Resumed,
    TransactionJoined,
    TransactionJoining,
    TransactionOpened,
)
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch
from lockstep_state.rows.state_rows import PartitionProgress

ROW = PartitionProgress(topic="t", partition=3, producer_id=4000, producer_epoch=1)


def resumed(
    row: PartitionProgress = ROW,
    end: LastAppend | None = None,
    limits: TargetLimits | None = None,
    transactions: TransactionState | None = None,
) -> PartitionMachine:
    """A partition that has resumed from the row; `end` None: the target has no more than it says."""
    p = PartitionMachine(row.topic, row.partition, "a.t", 100, limits=limits)
    p.step(Resumed(row, end or LastAppend(row.sequence, row.downstream), transactions=transactions))
    return p


def admit(p: PartitionMachine, *batches: Batch, source_end: int | None = None, now_ms: int = 0) -> Ready:
    """The source's next batches. `source_end` None: the source ends where it did."""
    if batches:
        p.step(Received(batches[-1].last_offset + 1, batches[-1].leader_epoch))
    end = p.row().source_end if source_end is None else source_end
    return p.step(Fetched(p.incarnation, batches, AbortedTransactions(), end, size=0, now_ms=now_ms))


def launch(p: PartitionMachine) -> InFlightBatch:
    """The next batch goes out to the partition of the same number."""
    batch = p.step(ConnectionReady(p.number, WINDOW)).batch
    assert batch is not None
    return batch


def waits(p: PartitionMachine) -> bool:
    """Whether a batch may go out."""
    return any(p.may_launch(number, WINDOW) for number in p.numbers)


def append(p: PartitionMachine, base_offset: int) -> Ready:
    """The next batch goes out and is acknowledged there."""
    return p.step(Acked(launch(p), base_offset, now_ms=0))


def open_transaction(p: PartitionMachine, at_s: float = 0.0) -> None:
    """The coordinator knows the transaction and all its partitions."""
    p.step(TransactionJoined(p.step(TransactionJoining()).joins))
    p.step(TransactionOpened(at_s))


def partition(upstream: int = -1, limits: TargetLimits | None = None) -> PartitionMachine:
    """One that copies, with nothing of ours in the target yet."""
    return resumed(replace(ROW, upstream=upstream), LastAppend(-1, -1), limits)


def copied(p: PartitionMachine) -> list[OutgoingBatch]:
    """What the partition appends, each batch acknowledged at once."""
    found = []
    while waits(p):
        sent = launch(p)
        found.append(sent.outgoing)
        p.step(Acked(sent, len(found) * 1000, now_ms=0))
    return found
