"""One partition's life (no I/O, no clock).

It is always in one phase (`phases.py`). A partition in trouble never stops another: each has its own phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from lockstep_data_plane.core.acked_position import AckedPosition
from lockstep_data_plane.core.append_sequence import Ack, AppendSequence, InFlightBatch
from lockstep_data_plane.core.appended_skipper import AppendedSkipper
from lockstep_data_plane.core.phase_state import PhaseState
from lockstep_data_plane.core.phases import RESETS_APPENDS, PartitionEvent, Phase
from lockstep_data_plane.core.provenance import NO_PROVENANCE, Provenance, appended_since
from lockstep_data_plane.core.quarantine_entry import (
    RefusedRecords,
    refused_batch,
    refused_record,
    unread,
    wholly_skipped,
)
from lockstep_data_plane.core.target_partition import TargetPartition
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionStage, TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.outgoing_batch import as_outgoing
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge, rebuild
from lockstep_protocol.errors import NeedsDecision
from lockstep_protocol.rows.state_rows import OffsetRuns, PartitionProgress

__all__ = ["BatchRejected", "PartitionMachine"]


class BatchRejected(NeedsDecision):
    """A batch that must not be copied as it is and cannot be rebuilt; the message names its offsets and why. `refusal`
    is what could be quarantined of it."""

    def __init__(self, sentence: str, refusal: RefusedRecords | None = None) -> None:
        super().__init__(sentence)
        self.refusal = refusal


class PartitionMachine(PhaseState):
    """The partition `topic`-`number` of a flow, as one slot copies it."""

    in_one_log: ClassVar[bool] = True
    """What is copied goes into the partition of the same number, whose log tells how far the copy is."""

    def __init__(self, topic: str, number: int, target_topic: str, offset_lag_max: int) -> None:
        super().__init__()
        self.topic = topic
        self.number = number
        self.target_topic = target_topic
        self.tp = (topic, number)
        self.target_tp = (target_topic, number)
        self.target_partitions: tuple[TargetPartition, ...] = (TargetPartition(self, number),)
        self.refusal: RefusedRecords | None = None
        """What was refused and could be quarantined."""
        self.kept = 0
        """How many entries of `refusal` the quarantine topic has already."""
        self.misnumbered = False
        """Counting went wrong, so the records themselves have to tell where we are."""
        self.incarnation = 0
        """Grows with each resume; what was fetched for an earlier one is thrown away."""
        self.limits = TargetLimits()
        self.provenance: Provenance = NO_PROVENANCE
        """Where batches of the source originated, and what that makes of them."""
        self.acked = AckedPosition(topic, number, offset_lag_max)
        self.append_sequence = AppendSequence(-1, 0, -1, -1)
        self.transactions: TransactionState | None = None
        """None: what is appended counts when it is acknowledged."""
        self.ends_first = False
        """It failed on the source's side only: its open transaction is committed before the partition resumes."""
        self.position = 0
        """The next upstream offset to judge."""
        self.fetch_from = 0
        """The next upstream offset to fetch: ahead of `position` while fetched batches wait to be judged."""
        self.fetched_epoch = -1
        """Leader epoch of the record before `fetch_from`; -1: not fetched since the last resume, which checked it."""
        self._there = AppendedSkipper()
        self.fruitless = True
        """Nothing was acknowledged since the last resume; who fails then waits before the next one."""
        self.times_rewritten = False
        """The target puts its own time in place of the records', and that was said."""

    @property
    def name(self) -> str:
        """As people are told of it."""
        return f"{self.topic}-{self.number}"

    @property
    def target_name(self) -> str:
        """The same on the target."""
        return f"{self.target_topic}-{self.number}"

    @property
    def has_foreign_writers(self) -> bool:
        """Whether records that are not ours are expected in the target's log: its topic has the source's own name."""
        return self.topic == self.target_topic

    # -- phases --------------------------------------------------------------------------------------------------------

    def in_its_place(self) -> PartitionMachine:
        """The partition as it is copied to the one of the same number, where it was so before."""
        return self

    def spread_over(self, partitions: int) -> None:
        """The target has so many partitions. To be called before the partition resumes."""

    def fits(self, partitions: int) -> bool:
        """Whether the copy can go on as it is where the target has so many partitions now."""
        return True

    def on(self, event: PartitionEvent, reason: str = "") -> Phase:
        """Move on. Raises KeyError for what cannot happen in this phase."""
        phase = super().on(event, reason)
        if event is PartitionEvent.QUARANTINED:
            self.refusal = None
        if event in RESETS_APPENDS:
            self.append_sequence.reset()
        lost = self.append_sequence.broken or not self.ends_first
        if event is PartitionEvent.FAILED and self.transactions is not None and lost:
            self.transactions.held.clear()  # whoever resumes ends that transaction, and asks what became of it
        return phase

    @property
    def quiet(self) -> bool:
        """Nothing flies and nothing more will be sent in this phase."""
        return self.append_sequence.unanswered == 0 and (self.append_sequence.idle or self.append_sequence.broken)

    @property
    def sure(self) -> bool:
        """Once it is quiet: whether the target's log holds nothing of ours but what was acknowledged."""
        held = self.transactions is not None and bool(self.transactions.held)
        return self._sure and not (self.append_sequence.broken or self.records_to_skip or held)

    def chain_to(self, number: int) -> AppendSequence:
        """The appends into that partition of the target."""
        return self.append_sequence

    def may_append(self, number: int) -> bool:
        """Whether the transaction, where there is one, takes batches for that partition of the target now."""
        return self.transactions is None or self.transactions.stage is TransactionStage.OPEN

    @property
    def records_to_skip(self) -> int:
        """Records that the target's log has already: they are counted and not sent."""
        return self._there.left

    @property
    def caught_up(self) -> bool:
        """Nothing waits or flies, and the source has nothing more."""
        return self.append_sequence.idle and self.position >= self.acked.source_end

    def resumed(
        self,
        row: PartitionProgress,
        end: LastAppend,
        runs: Iterable[OffsetRuns] = (),
        transactions: TransactionState | None = None,
    ) -> None:
        """`end` is the end of our chain in the target's log, at or after the position of `row`. The source is judged
        again from the row on, and the records between the two are counted and not sent. Those that the log still has
        are compared with the counted ones. `runs` are the rows with its offset runs, used if this partition has none
        of its own. A partition that is paused or stopped goes no further than `end`."""
        self.acked.resumed(row, runs)
        self.transactions = transactions
        self.append_sequence = self._new_chain(row, end.sequence, end.downstream, end.others)
        self.position = self.fetch_from = row.upstream + 1
        self.fetched_epoch = -1
        there = appended_since(row, end.sequence, end.others)
        self._there = AppendedSkipper(
            there, end, alone=end.downstream - row.downstream == there, position=self.position, skips=row.skips
        )
        self.misnumbered = self.ends_first = False
        self.incarnation += 1
        self.fruitless = True
        self.on(PartitionEvent.FOUND if self.locates else PartitionEvent.RESUMED)

    def _new_chain(
        self, row: PartitionProgress, sequence: int, downstream: int, others: tuple[tuple[int, int], ...]
    ) -> AppendSequence:
        transactional = self.transactions is not None
        return AppendSequence(
            row.producer_id, row.producer_epoch, sequence, downstream, others, transactional=transactional
        )

    @property
    def state(self) -> tuple[object, ...]:
        """Differs from what it was before whenever `row`, or what its offset runs have to tell, would."""
        return (self.phase, self.reason, self.case, self.located, self.incarnation, *self.acked.state)

    def row(self) -> PartitionProgress:
        """Progress as it is to be written down: durable, and upstream, downstream and sequence belonging together."""
        return replace(
            self.acked.row(has_resumed=self.incarnation > 0),
            phase=self.word,
            reason=self.reason,
            case=self.case if self.halted else "",
            located=self.located,
        )

    # -- records in ----------------------------------------------------------------------------------------------------

    def admit(self, batches: Iterable[Batch], aborted: AbortedTransactions) -> None:
        """Judge what was fetched at `position` and queue what is to be sent. Raises BatchRejected; what came before the
        refused batch stays queued."""
        for batch in batches:
            if self._counted:
                return
            producer = self.provenance.producer_of(batch)
            action, why = classify(
                batch, self.position, self.limits, aborted=aborted.holds(batch), elsewhere=producer is None
            )
            if self._skips and self._passes_over(batch, action):
                continue
            if action is BatchAction.PASS and not self.records_to_skip:
                self.position = batch.last_offset + 1
                self.append_sequence.enqueue(as_outgoing(batch), -1 if producer is None else producer)
            elif action is BatchAction.SKIP:
                self._pass_over(batch.last_offset, batch.leader_epoch)
            elif action is BatchAction.REFUSE:
                raise BatchRejected(
                    f"offsets {batch.base_offset} to {batch.last_offset}: {why}", refused_batch(batch, why)
                )
            else:
                self._decode(batch)

    def _decode(self, batch: Batch) -> None:
        """The lane of batches whose records have to be looked at: rebuilt, or counted past, or both."""
        try:
            if self.records_to_skip and (self._skip_appended(batch) or self._counted):
                return
            pieces = rebuild(batch, self.position, self.limits, self._skips)
        except RecordTooLarge as exc:
            raise BatchRejected(str(exc), refused_record(exc.record, str(exc))) from exc
        except ValueError as exc:
            raise BatchRejected(f"offsets from {batch.base_offset}: {exc}", refused_batch(batch, str(exc))) from exc
        if not pieces:
            self._pass_over(batch.last_offset, batch.leader_epoch)
        producer = self.provenance.producer_of(batch)
        for piece in pieces:
            self.position = piece.covers + 1
            self.append_sequence.enqueue(piece, -1 if producer is None else producer)

    @property
    def _counted(self) -> bool:
        """It rests, and the record of the source is reached that was appended last."""
        return self.phase is Phase.LOCATING and not self.records_to_skip

    @property
    def _skips(self) -> tuple[tuple[int, int], ...]:
        return self.acked.written.skips

    def _passes_over(self, batch: Batch, action: BatchAction) -> bool:
        """Deal with a batch that holds quarantined offsets; False where it holds none."""
        if action is BatchAction.SKIP or not any(
            first <= batch.last_offset and batch.base_offset <= last for first, last in self._skips
        ):
            return False
        if wholly_skipped(batch, self.position, self._skips):
            self._pass_over(batch.last_offset, batch.leader_epoch)
            return True
        if action is BatchAction.REFUSE:
            return False
        self._decode(batch)
        return True

    def _skip_appended(self, batch: Batch) -> bool:
        """Count past records that the target has; True when the whole batch is behind us. Where our chain ends inside
        the batch (it was split then, or began elsewhere) the position moves to the first record that is still to be
        sent."""
        records = unread(batch, self.position, self._skips)
        past = self._there.count_past(records)
        upstream = records[past - 1].offset if past else -1
        whole = past == len(records)
        if whole:
            upstream = max(batch.last_offset, upstream)
        self.position = upstream + 1 if whole else records[past].offset
        if not self.records_to_skip:
            self.acked.numbered(upstream, batch.leader_epoch, self.append_sequence, self._there.places())
        return whole

    def _pass_over(self, offset: int, leader_epoch: int) -> None:
        self.position = max(self.position, offset + 1)
        if self.records_to_skip or self.append_sequence.extend_last(offset, leader_epoch):
            return
        if self.transactions is not None and self.transactions.pass_over(offset, leader_epoch):
            return
        self.acked.reached(offset, leader_epoch)

    # -- answers -------------------------------------------------------------------------------------------------------

    def acknowledged(self, flight: InFlightBatch, base_offset: int) -> list[Ack]:
        """The target has a flight. Returns the receipts that became certain. In a transaction nothing counts before
        `committed`."""
        acks = self.append_sequence.on_ack(flight, base_offset)
        if self.transactions is not None:
            self.transactions.hold(acks)
        else:
            self._account(acks)
        return acks

    def joining(self) -> set[int]:
        """The target's partitions that the open transaction is still to be told of, before anything goes there."""
        return {self.number} - (self.transactions.joined if self.transactions is not None else set())

    @property
    def all_sent(self) -> bool:
        """Nothing more is to be appended in the transaction that is ending."""
        return self.append_sequence.unanswered == 0

    @property
    def ends_whole(self) -> bool:
        """What the transaction holds may be committed."""
        return True

    @property
    def progress(self) -> int:
        """The upstream offset up to which everything is decided once the open transaction has ended."""
        return -1 if self.transactions is None else self.transactions.progress

    def committed(self) -> list[Ack]:
        """The open transaction has ended: what it held counts. As `acknowledged`."""
        if self.transactions is None:
            return []
        acks = self.transactions.committed()
        self.append_sequence.marked()
        self._account(acks)
        return acks

    def _account(self, acks: Sequence[Ack]) -> None:
        if acks:
            self.fruitless = False
        self.acked.appended(acks, self.append_sequence)

    def lost(self, flight: InFlightBatch) -> None:
        """A flight failed. The caller then lets FAILED or REFUSED happen."""
        self.append_sequence.on_failure(flight)

    def lag_ms(self, now_ms: int) -> int:
        """Age of the oldest record not yet acknowledged, as far as one was seen; 0 when there is no lag."""
        if self.acked.lag == 0:
            return 0
        oldest = self.append_sequence.oldest
        since = oldest.base_timestamp if oldest is not None else self.acked.last_timestamp
        return max(0, now_ms - since) if since >= 0 else 0
