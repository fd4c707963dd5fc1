"""Copying one partition, in memory: a source's log, the target's rule of appends, and slots that come and go.

No Kafka is here. The target is a list with the broker's rule of producer ids and sequences (`kafka-wire.md` §0, §1), so
it shows that *our* side of the rule holds; that brokers keep theirs is for the tests against real ones."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.effects import CopyTrouble
from lockstep_data_plane.core.events import Acked, AllAnswered, Failed, Fetched, Leave, Received, Refused, Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import OWN
from lockstep_data_plane.core.target_log.target_tail import LastAppend, last_append_in
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress
from tests.support.reasons import reported
from tests.unit.data_plane.modelled_logs import (
    AHEAD,
    FROM_ELSEWHERE,
    FROM_THE_TARGET,
    INVALID_RECORD,
    NOT_ENOUGH_REPLICAS,
    OTHER,
    OUR_EPOCH,
    OURS,
    SourceLog,
    TargetLog,
)
from tests.unit.data_plane.partition_steps import launched


class Origins:
    """What is known of the origins of the source's batches, as it is decided by then."""

    async def look_up(self, producer_ids: Iterable[int]) -> None:
        return

    def copy_producer_id(self, batch: Batch) -> int | None:
        return {FROM_ELSEWHERE: OTHER, FROM_THE_TARGET: None}.get(batch.producer_id, OWN)

    async def claim(self, producer_id: int) -> None:
        return

    async def own_producer_ids(self) -> frozenset[int]:
        return frozenset({OTHER})


class Slot:
    """One slot's part in the copy: the partition's state, and what is between it and the two logs. Each method is one
    step, and does nothing where it cannot happen."""

    def __init__(
        self,
        source: SourceLog,
        target: TargetLog,
        row: PartitionProgress,
        limits: TargetLimits,
        runs: Iterable[OffsetRuns] = (),
    ) -> None:
        self.source, self.target = source, target
        self._runs = list(runs)
        self.partition = PartitionState("t", 0, "t", 100, limits=limits, provenance=Origins())
        self.fetched: deque[Fetched] = deque()
        self.socket: deque[InFlightBatch] = deque()
        """On its way to the broker."""
        self.answers: deque[tuple[InFlightBatch, int, int]] = deque()
        self.troubles: list[object] = []
        """What the judging of batches has reported."""
        self._resume(row)

    def _resume(self, row: PartitionProgress) -> None:
        last = LastAppend(row.sequence, row.downstream, others=row.others)
        end = last_append_in(last, self.target.tail(row.downstream + 1), OURS, OUR_EPOCH, {OTHER})
        self.partition.step(Resumed(row, end, self._runs))

    def fetch(self, count: int) -> None:
        p = self.partition
        if not p.reads or p.routing.bytes_held > 2000:
            return
        batches, aborted = self.source.fetch(p.fetch_from, count)
        if batches:
            p.step(Received(batches[-1].last_offset + 1, batches[-1].leader_epoch))
            aborts = AbortedTransactions(aborted)
            self.fetched.append(Fetched(p.incarnation, batches, aborts, self.source.end, size=0, now_ms=0))

    def deliver(self) -> None:
        if self.fetched:
            effects = self.partition.step(self.fetched.popleft())
            self.troubles += [effect.error for effect in effects if isinstance(effect, CopyTrouble)]
            self._settle()

    def send(self) -> None:
        batch = launched(self.partition, 0, AHEAD)
        if batch is not None:
            self.socket.append(batch)

    def broker(self) -> None:
        if self.socket:
            sent = self.socket.popleft()
            self.answers.append((sent, *self.target.append(bytes(sent.data))))

    def refuse(self) -> None:
        """The broker answers an error that passes; nothing is appended."""
        if self.socket:
            self.answers.append((self.socket.popleft(), NOT_ENOUGH_REPLICAS, -1))

    def refuse_for_good(self) -> None:
        """The broker answers an error that only somebody's decision can settle; nothing is appended."""
        if self.socket:
            self.answers.append((self.socket.popleft(), INVALID_RECORD, -1))

    def answer(self) -> None:
        if not self.answers:
            return
        sent, code, base_offset = self.answers.popleft()
        if code == 0:
            self.partition.step(Acked(sent, base_offset, now_ms=0))
        elif code == INVALID_RECORD:
            self.partition.step(Refused(reported("refused"), sent=sent))
        else:
            self.partition.step(Failed(sent=sent))
        self._settle()

    def cut(self) -> list[bytes]:
        """The connection ends. Returns what the broker may still take from its socket."""
        strays = [bytes(sent.data) for sent in self.socket]
        for sent in (*(f for f, _, _ in self.answers), *self.socket):
            self.partition.step(Failed(sent=sent))
        self.socket.clear()
        self.answers.clear()
        self.partition.step(Failed())
        self._settle()
        return strays

    def leave(self) -> None:
        self.partition.step(Leave(goes_on=True))
        self._settle()

    def rest(self) -> None:
        """Nobody goes on: it is released once its row says all that the target has."""
        self.partition.step(Leave())
        self._settle()

    def come_to_rest(self) -> None:
        """All that is still to come comes, until it is released."""
        self.rest()
        while self.partition.phase is not Phase.RELEASED:
            for what in (self.deliver, self.send, self.broker, self.answer):
                what()
            self.fetch(2)

    def _settle(self) -> None:
        p = self.partition
        if p.phase in (Phase.SETTLING, Phase.DRAINING) and p.drained:
            p.step(AllAnswered())
        if p.phase is Phase.RESUMING:
            self._resume(replace(p.row(), phase="copying", cause=NO_REASON))

    def all_done(self) -> bool:
        """Everything the source has is copied and acknowledged."""
        p = self.partition
        copied = p.phase is Phase.COPYING and not p.routing.records_held
        return copied and p.position >= self.source.end and not p.records_to_skip
