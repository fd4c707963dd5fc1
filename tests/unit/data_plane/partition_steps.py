"""Steps of a partition's state that many tests take, and what they read of their effects."""

from dataclasses import replace

from lockstep_data_plane.core.append_sequence import WINDOW, Ack, InFlightBatch
from lockstep_data_plane.core.effects import (
    Append,
    Effects,
    Fetch,
    JoinTransaction,
    OfferAppends,
    Persist,
    Report,
    StopFetching,
)
from lockstep_data_plane.core.events import (
    Acked,
    ConnectionReady,
    Fetched,
    PartitionEvent,
    Received,
    Resumed,
    TransactionJoined,
    TransactionJoining,
    TransactionOpened,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch
from lockstep_state.rows.state_rows import PartitionProgress

ROW = PartitionProgress(topic="t", partition=3, producer_id=4000, producer_epoch=1)


def resumed(
    row: PartitionProgress = ROW,
    end: LastAppend | None = None,
    limits: TargetLimits | None = None,
    transactions: TransactionState | None = None,
) -> PartitionState:
    """A partition that has resumed from the row; `end` None: the target has no more than it says."""
    p = PartitionState(row.topic, row.partition, "a.t", 100, limits=limits)
    p.step(Resumed(row, end or LastAppend(row.sequence, row.downstream), transactions=transactions))
    return p


def admit(p: PartitionState, *batches: Batch, source_end: int | None = None, now_ms: int = 0) -> Effects:
    """The source's next batches. `source_end` None: the source ends where it did."""
    if batches:
        p.step(Received(batches[-1].last_offset + 1, batches[-1].leader_epoch))
    end = p.row().source_end if source_end is None else source_end
    return p.step(Fetched(p.incarnation, batches, AbortedTransactions(), end, size=0, now_ms=now_ms))


def launch(p: PartitionState) -> InFlightBatch:
    """The next batch goes out to the partition of the same number."""
    batch = launched(p, p.number)
    assert batch is not None
    return batch


def launched(p: PartitionState, number: int, window: int = WINDOW) -> InFlightBatch | None:
    """The batch that goes out to that partition of the target, if one may."""
    return next((e.batch for e in p.step(ConnectionReady(number, window)) if isinstance(e, Append)), None)


def phase_after(p: PartitionState, event: PartitionEvent) -> Phase:
    """The phase once the event has happened."""
    p.step(event)
    return p.phase


def reports(effects: Effects) -> list[Report]:
    """What operators are told."""
    return [effect for effect in effects if isinstance(effect, Report)]


def counted(effects: Effects) -> list[Ack]:
    """What is durable now."""
    return [ack for effect in effects if isinstance(effect, Persist) for ack in effect.acks]


def fetches_from(effects: Effects) -> int | None:
    """Where fetching begins, if it does."""
    return next((effect.offset for effect in effects if isinstance(effect, Fetch)), None)


def stops_fetching(effects: Effects) -> bool:
    """Whether the source is not to be fetched any more."""
    return any(isinstance(effect, StopFetching) for effect in effects)


def offers(effects: Effects) -> bool:
    """Whether batches wait for a connection."""
    return any(isinstance(effect, OfferAppends) for effect in effects)


def joins(p: PartitionState) -> frozenset[int]:
    """The partitions of the target that a transaction begins with, or takes in."""
    joined = (e.partitions for e in p.step(TransactionJoining()) if isinstance(e, JoinTransaction))
    return next(joined, frozenset())


def waits(p: PartitionState) -> bool:
    """Whether a batch may go out."""
    return any(p.may_launch(number, WINDOW) for number in p.routing.numbers)


def append(p: PartitionState, base_offset: int) -> Effects:
    """The next batch goes out and is acknowledged there."""
    return p.step(Acked(launch(p), base_offset, now_ms=0))


def open_transaction(p: PartitionState, at_s: float = 0.0) -> None:
    """The coordinator knows the transaction and all its partitions."""
    p.step(TransactionJoined(joins(p)))
    p.step(TransactionOpened(at_s))


def partition(upstream: int = -1, limits: TargetLimits | None = None) -> PartitionState:
    """One that copies, with nothing of ours in the target yet."""
    return resumed(replace(ROW, upstream=upstream), LastAppend(-1, -1), limits)


def copied(p: PartitionState) -> list[OutgoingBatch]:
    """What the partition appends, each batch acknowledged at once."""
    appended = []
    while waits(p):
        sent = launch(p)
        appended.append(sent.outgoing)
        p.step(Acked(sent, len(appended) * 1000, now_ms=0))
    return appended
