"""Spreading one partition's records over several of the target, in memory: the target's rule of appends in each of its
partitions, transactions that are committed or aborted as a whole, and slots that come and go.

No Kafka is here; that brokers keep their side is for the tests against real ones."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from lockstep_data_plane.core.append_sequence import WINDOW, InFlightBatch
from lockstep_data_plane.core.events import (
    Acked,
    AllAnswered,
    Failed,
    Fetched,
    Refused,
    Resumed,
    TargetSized,
    TransactionCommitted,
    TransactionEnding,
    TransactionJoined,
    TransactionOpened,
)
from lockstep_data_plane.core.keyed_routing import KeyedRouting
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.quarantine_entry import refused_outgoing
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionStage, TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import TRANSACTIONAL, crc_is_right
from tests.support.reasons import reported
from tests.unit.data_plane.modelled_logs import SourceLog
from tests.unit.data_plane.partition_steps import joins, launched

PRODUCER = 77
KEYS = (b"a", b"b", b"c", b"d", b"e", None, b"")


class KeyedLog(SourceLog):
    """A source's log of all kinds of batches, with several keys and some records without one."""

    def _record(self, offset: int, *, large: bool) -> PlainRecord:
        return super()._record(offset, large=large)._replace(key=KEYS[offset * 5 % len(KEYS)])


class Target:
    """A topic of several partitions, and the progress that was committed with its records."""

    def __init__(self, partitions: int) -> None:
        self.committed: list[list[PlainRecord]] = [[] for _ in range(partitions)]
        """By partition what a reader of committed records sees."""
        self.progress = -1
        self.refuses: frozenset[bytes] = frozenset()
        """Values of records that it does not take."""
        self.epoch = -1
        self._open: list[list[PlainRecord]] = []
        self._next: list[int] = []
        self.fence()

    def fence(self) -> int:
        """What was open ends uncommitted, and nobody of an earlier epoch appends any more."""
        self.epoch += 1
        self._open = [[] for _ in self.committed]
        self._next = [0 for _ in self.committed]
        return self.epoch

    def append(self, to: int, data: bytes) -> int | None:
        """The base offset; None: refused."""
        (batch,) = scan(data)
        assert crc_is_right(data)
        assert batch.attributes & TRANSACTIONAL
        assert (batch.producer_id, batch.producer_epoch) == (PRODUCER, self.epoch)
        records = list(read_records(batch))
        if any(r.value in self.refuses for r in records):
            return None
        assert batch.base_sequence == self._next[to], "45 OUT_OF_ORDER_SEQUENCE_NUMBER"
        self._next[to] += batch.record_count
        base = len(self.committed[to]) + len(self._open[to])
        self._open[to] += records
        return base

    def commit(self, progress: int) -> None:
        for appended, added in zip(self.committed, self._open, strict=True):
            appended += added
        self._open = [[] for _ in self.committed]
        self.progress = progress


class KeyedSlot:
    """One slot's part: the partition's state, and what is between it and both clusters. Each method is one step,
    and does nothing where it cannot happen."""

    def __init__(
        self, source: SourceLog, target: Target, limits: TargetLimits, skips: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.source, self.target = source, target
        self.partition = PartitionState("t", 3, "t", 100, routing=KeyedRouting(3), limits=limits)
        self.partition.step(TargetSized(len(target.committed)))
        self.wire: deque[tuple[int, InFlightBatch]] = deque()
        self.answers: deque[tuple[InFlightBatch, int | None]] = deque()
        row = PartitionProgress(topic="t", partition=3, upstream=target.progress, skips=tuple(skips))
        self._resume(row)

    def _resume(self, row: PartitionProgress) -> None:
        row = replace(row, producer_id=PRODUCER, producer_epoch=self.target.fence(), upstream=self.target.progress)
        self.transactions = TransactionState("id")
        self.partition.step(Resumed(row, LastAppend(-1, -1), transactions=self.transactions))

    def fetch(self, count: int) -> None:
        p = self.partition
        batches, aborted = self.source.fetch(p.position, count + 1)
        if p.reads and batches:
            aborts = AbortedTransactions(aborted)
            p.step(Fetched(p.incarnation, batches, aborts, self.source.end, size=0, now_ms=0))

    def open(self, _: int = 0) -> None:
        """A transaction begins, or takes in what waits."""
        p, stage = self.partition, self.transactions.stage
        opens = p.wants_transaction
        if p.is_in_transaction(p.incarnation) and (opens or stage is TransactionStage.OPEN):
            p.step(TransactionJoined(joins(p)))
            if opens:
                p.step(TransactionOpened(0.0))

    def send(self, choice: int) -> None:
        p = self.partition
        ready = [number for number in p.routing.numbers if p.may_launch(number, WINDOW)]
        if ready:
            number = ready[choice % len(ready)]
            batch = launched(p, number, WINDOW)
            if batch is not None:
                self.wire.append((number, batch))

    def broker(self, _: int = 0) -> None:
        if self.wire:
            number, sent = self.wire.popleft()
            self.answers.append((sent, self.target.append(number, bytes(sent.data))))

    def answer(self, _: int = 0) -> None:
        if not self.answers:
            return
        sent, base = self.answers.popleft()
        if base is not None:
            self.partition.step(Acked(sent, base, now_ms=0))
        else:
            (batch,) = scan(sent.outgoing.data)
            named = [i for i, r in enumerate(read_records(batch)) if r.value in self.target.refuses]
            self.partition.step(Refused(reported("no"), refused_outgoing(sent.outgoing, named, "no"), sent=sent))
        self._settle()

    def end(self, _: int = 0) -> None:
        p = self.partition
        if not p.is_in_transaction(p.incarnation):
            return
        if self.transactions.stage is TransactionStage.OPEN and not p.transaction_is_spent and p.progress[0] >= 0:
            p.step(TransactionEnding(0.0))
        if self.transactions.stage is TransactionStage.ENDING and p.routing.all_sent:
            self.target.commit(p.progress[0])
            p.step(TransactionCommitted(now_ms=0))
            assert p.row().upstream == self.target.progress

    def cut(self, choice: int) -> None:
        """The connection ends; what is on it may still be taken, or not."""
        for _ in range(choice):
            self.broker()
        for sent in (*(f for f, _ in self.answers), *(f for _, f in self.wire)):
            self.partition.step(Failed(sent=sent))
        self.wire.clear()
        self.answers.clear()
        self.partition.step(Failed())
        self._settle()

    def _settle(self) -> None:
        p = self.partition
        if p.phase is Phase.SETTLING and p.drained:
            p.step(AllAnswered())
            self._resume(p.row())

    def finish(self) -> None:
        """Go on until nothing moves any more."""
        for _ in range(2 * len(self.source.batches) + 10):
            self.fetch(3)
            self.open()
            for _ in range(40):
                for choice in range(len(self.target.committed)):
                    self.send(choice)
                self.broker()
                self.answer()
            self.end()
