"""One partition of the source whose records are spread over those of the target by their keys (no I/O, no clock;
`lockstep.legacy.partitioning=key`, `docs/decisions/0034-partitions-chosen-by-key.md`).

It always copies in transactions, under its own transactional id: the target's logs hold what several partitions of the
source have appended, so none of them tells how far one copy is, and only committed progress does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence
from lockstep_data_plane.core.key_partitioner import KeyPartitioner, StickyPartition
from lockstep_data_plane.core.keyed_append_sequences import KeyedAppendSequences
from lockstep_data_plane.core.machine import BatchRejected, PartitionMachine
from lockstep_data_plane.core.phases import PartitionEvent, Phase
from lockstep_data_plane.core.quarantine_entry import (
    RefusedRecords,
    refused_batch,
    refused_record,
    skipped,
    unread,
    wholly_skipped,
)
from lockstep_data_plane.core.target_partition import TargetPartition
from lockstep_data_plane.core.transaction_state import TransactionStage
from lockstep_data_plane.record_batch.classify import AbortedTransactions, BatchAction, classify
from lockstep_data_plane.record_batch.layout import CODEC_MASK, Batch
from lockstep_data_plane.record_batch.rebuild import PlainRecord, RecordTooLarge
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = ["KeyedMirrorPartition"]

GROUP_BYTES = 1024 * 1024
"""Where a group of records ends, in bytes of keys and values: one batch for each partition of the target is made of
it, as a whole."""


class KeyedMirrorPartition(PartitionMachine):
    """The partition `topic`-`number` of a flow, as one slot spreads it."""

    in_one_log = False

    def __init__(self, topic: str, number: int, target_topic: str, offset_lag_max: int) -> None:
        super().__init__(topic, number, target_topic, offset_lag_max)
        self._offset_lag_max = offset_lag_max
        self.target_partitions = ()
        self._keyed = KeyedAppendSequences(-1, 0, 0)
        self._sticky = StickyPartition(number)
        self._barrier: tuple[str, RefusedRecords] | None = None
        """What the target refused, and why: it is reached again, and what lies before it is committed first."""

    def in_its_place(self) -> PartitionMachine:
        there = PartitionMachine(self.topic, self.number, self.target_topic, self._offset_lag_max)
        there.provenance = self.provenance
        return there

    # -- where to ------------------------------------------------------------------------------------------------------

    def spread_over(self, partitions: int) -> None:
        if partitions != len(self.target_partitions):
            self.target_partitions = tuple(TargetPartition(self, number) for number in range(partitions))

    def fits(self, partitions: int) -> bool:
        return len(self.target_partitions) in (0, partitions)

    def chain_to(self, number: int) -> AppendSequence:
        return self._keyed.links[number]

    def may_append(self, number: int) -> bool:
        """A round is appended to its end, also while its transaction is ending."""
        transactions = self.transactions
        stages = (TransactionStage.OPEN, TransactionStage.ENDING)
        return transactions is not None and transactions.stage in stages and number in transactions.joined

    def joining(self) -> set[int]:
        return self._keyed.join_round() - (self.transactions.joined if self.transactions is not None else set())

    @property
    def ends_whole(self) -> bool:
        """A part of a round must not be committed: the rest would be doubled by whoever goes on."""
        return not self._keyed.broken

    @property
    def all_sent(self) -> bool:
        return self._keyed.round_sent

    @property
    def progress(self) -> int:
        return self._keyed.round_covers[0]

    # -- phases --------------------------------------------------------------------------------------------------------

    def on(self, happening: PartitionEvent, reason: str = "") -> Phase:
        """As ever; but what the target refuses in the middle of a round breaks the round, which is begun again and then
        ends in front of it."""
        in_a_round = self._keyed.broken and self.phase in (Phase.COPYING, Phase.SETTLING)
        if happening is PartitionEvent.REFUSED and in_a_round and self.refusal is not None:
            if self._barrier is None or self.refusal.ranges < self._barrier[1].ranges:
                self._barrier = reason, self.refusal
            self.refusal, happening, reason = None, PartitionEvent.FAILED, ""
        if happening is PartitionEvent.FAILED:
            self._keyed.break_off()
        return super().on(happening, reason)

    def _new_chain(
        self, row: PartitionProgress, sequence: int, downstream: int, others: tuple[tuple[int, int], ...]
    ) -> AppendSequence:
        self._keyed = KeyedAppendSequences(row.producer_id, row.producer_epoch, len(self.target_partitions))
        return self._keyed

    # -- records in ----------------------------------------------------------------------------------------------------

    def admit(self, batches: Iterable[Batch], aborted: AbortedTransactions) -> None:
        gathering = KeyPartitioner(self.position - 1)
        for batch in batches:
            try:
                self._gather(batch, gathering, in_aborted=aborted.holds(batch))
            except BatchRejected:
                self._queue(gathering)
                raise
            if gathering.size >= GROUP_BYTES:
                self._queue(gathering)
                gathering = KeyPartitioner(self.position - 1)
        self._queue(gathering)

    def _gather(self, batch: Batch, gathering: KeyPartitioner, *, in_aborted: bool) -> None:
        position = gathering.covers + 1
        elsewhere = self.provenance.producer_of(batch) is None
        action, why = classify(batch, position, self.limits, aborted=in_aborted, elsewhere=elsewhere)
        if action is BatchAction.SKIP or wholly_skipped(batch, position, self._skips):
            gathering.cover(batch.last_offset, batch.leader_epoch)
            return
        if action is BatchAction.REFUSE:
            raise BatchRejected(f"offsets {batch.base_offset} to {batch.last_offset}: {why}", refused_batch(batch, why))
        records = self._records(batch, position)
        self._stop_at_barrier(records, batch, gathering)
        codec = self.limits.codec_of(batch.attributes & CODEC_MASK)
        gathering.add(records, codec, len(self.target_partitions), self._sticky)
        gathering.cover(max([batch.last_offset, *(r.offset for r in records[-1:])]), batch.leader_epoch)

    def _records(self, batch: Batch, position: int) -> list[PlainRecord]:
        try:
            return unread(batch, position, self._skips)
        except ValueError as exc:
            raise BatchRejected(f"offsets from {batch.base_offset}: {exc}", refused_batch(batch, str(exc))) from exc

    def _stop_at_barrier(self, records: Sequence[PlainRecord], batch: Batch, gathering: KeyPartitioner) -> None:
        """Where the target has refused a record of the batch, let what lies before it go and raise BatchRejected."""
        if self._barrier is None:
            return
        why, refusal = self._barrier
        at = next((i for i, r in enumerate(records) if skipped(r.offset, refusal.ranges)), None)
        if at is None:
            return
        self._barrier = None
        codec = self.limits.codec_of(batch.attributes & CODEC_MASK)
        gathering.add(records[:at], codec, len(self.target_partitions), self._sticky)
        gathering.cover(records[at].offset - 1, batch.leader_epoch)
        raise BatchRejected(why, refusal)

    def _queue(self, gathering: KeyPartitioner) -> None:
        """Raises BatchRejected for a record that no batch can hold, after what lies before it was queued."""
        refused: BatchRejected | None = None
        while True:
            try:
                group = gathering.group(self.limits)
                break
            except RecordTooLarge as exc:
                refused = BatchRejected(str(exc), refused_record(exc.record, str(exc)))
                gathering.cut(exc.record.offset)
        if group.pieces:
            self._keyed.queue(group)
            self.position = group.covers + 1
        elif group.covers >= self.position:
            self._pass_over(group.covers, group.leader_epoch)
        if refused is not None:
            raise refused

    def _pass_over(self, offset: int, leader_epoch: int) -> None:
        self.position = max(self.position, offset + 1)
        if not self._keyed.extend_last(offset, leader_epoch):
            self.acked.reached(offset, leader_epoch)

    # -- answers -------------------------------------------------------------------------------------------------------

    def committed(self) -> list[Ack]:
        self.acked.reached(*self._keyed.round_covers)
        return super().committed()

    def _account(self, acks: Sequence[Ack]) -> None:
        """Nothing says where the records are in the target's logs: there are neither offset runs nor offset syncs."""
        for ack in acks:
            self.acked.count(ack.piece, ack.size)
            self.acked.last_timestamp = max(self.acked.last_timestamp, ack.piece.max_timestamp)
            self.fruitless = False
