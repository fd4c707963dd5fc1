"""The state of one partition, and the only way to change it: `step(event) -> effects` (no I/O, no clock).

`SlotLoop` (`slot/slot_loop.py`) calls `step` when something happens, and carries out the effects (`effects.py`).
A partition is always in one phase (`phases.py`). A partition in trouble never stops another: each has its own phase.
Other modules only read the public attributes; `step` alone changes them. `HANDLERS`, at the end, names the handler of
each event.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lockstep_data_plane.core import events
from lockstep_data_plane.core.acked_position import AckedPosition
from lockstep_data_plane.core.append_sequence import Ack, IdentityRouting
from lockstep_data_plane.core.batch_admission import BatchAdmission
from lockstep_data_plane.core.effects import (
    FETCHED,
    OFFERS,
    PERSIST,
    PERSISTS,
    STOP_FETCHING,
    Append,
    CopyTrouble,
    Effects,
    Fetch,
    ForeignRecords,
    Halted,
    JoinTransaction,
    Persist,
    Recovered,
    Report,
    TimesReplaced,
)
from lockstep_data_plane.core.events import PartitionEvent
from lockstep_data_plane.core.keyed_routing import Routing
from lockstep_data_plane.core.phases import READS, RESETS_APPENDS, SENDS, TRANSITIONS, Phase, PhaseEvent
from lockstep_data_plane.core.provenance import NO_PROVENANCE, Provenance
from lockstep_data_plane.core.quarantine_entry import BatchRejected, RefusedRecords, refuse_records
from lockstep_data_plane.core.record_transform import TopicTransform
from lockstep_data_plane.core.resume_deduplicator import RecordMismatch
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionStage, TransactionState
from lockstep_data_plane.record_batch.classify import NO_LIMIT, TargetLimits
from lockstep_data_plane.record_batch.layout import LARGEST_OFFSET
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import PartitionProgress

AGREES = (PhaseEvent.DRAINED, PhaseEvent.LOCATED)
"""The events after which the row of a partition at rest agrees with the target's log."""


class PartitionState:
    """The partition `topic`-`number` of a flow, as one slot copies it.

    Its parts have states of their own. `acked` says how far the copy is, and `routing` what waits and what is in
    flight. It is an `IdentityRouting`, or a `KeyedRouting` where the key of each record chooses the partition of the
    target. `BatchAdmission` has what is being judged, and `TransactionState` the transactions.
    """

    def __init__(
        self,
        topic: str,
        number: int,
        target_topic: str,
        offset_lag_max: int,
        *,
        routing: Routing | None = None,
        limits: TargetLimits | None = None,
        provenance: Provenance = NO_PROVENANCE,
        has_foreign_writers: bool | None = None,
        transform: TopicTransform | None = None,
        is_evaluated: bool = False,
    ) -> None:
        """Begin in the phase `resuming`, with nothing known of the target's log.

        Args:
            topic: The topic on the source.
            number: The number of the partition.
            target_topic: The topic on the target.
            offset_lag_max: `offset.lag.max`, for the offset runs.
            routing: The partitions of the target that records go to; None: the one of the same number.
            limits: The limits of the target's topic.
            provenance: The origins of the source's batches, which decide whether they are copied.
            has_foreign_writers: Records of other writers are expected in the target's log, as its topic's name does not
                show where they came from. None: it is so if both topics have one name.
            transform: The transform of the topic. None: its records are copied as they are.
            is_evaluated: The transform is asked about records before they are judged. No batch passes as it was.
        """
        self.topic = topic
        self.number = number
        self.target_topic = target_topic
        self.tp = (topic, number)
        self.target_tp = (target_topic, number)
        self.provenance = provenance
        self.transform = transform
        self.name = f"{topic}-{number}"
        self.target_name = f"{target_topic}-{number}"
        self.has_foreign_writers = topic == target_topic if has_foreign_writers is None else has_foreign_writers
        self.is_evaluated = is_evaluated
        self._offset_lag_max = offset_lag_max
        self.phase = Phase.RESUMING
        self.reads = self.sends = False
        """The source's records are judged (`reads`), and batches are appended (`sends`), in the present phase."""
        self.cause = NO_REASON
        """The reason for which the partition halted."""
        self._case = ""
        """The kind of that reason (`PartitionProgress.case`)."""
        self.leaving = False
        """The partition is to leave this slot."""
        self.resolves_end = False
        """No run goes on after the partition has left, so its row has to agree with the target's log."""
        self._located = False
        """The target's log holds nothing of ours behind the partition's row."""
        self._beyond = 0
        """The number of records of ours behind the row that only the source can identify."""
        self._rest_word = ""
        """The phase that the row gets once the partition leaves, if an operator wants it to rest
        (`PartitionProgress.phase`).
        """
        self._nothing_failed = False
        """Nothing has failed since the last resume, so every append is accounted for once all answers have come."""
        self.acked = AckedPosition(topic, number, offset_lag_max)
        self.limits = limits or TargetLimits()
        """The limits of what the target takes."""
        self.routing: Routing = routing or IdentityRouting(number)
        self._transactions: TransactionState | None = None
        row, end = self.acked.written, LastAppend(-1, -1)
        self._admission = BatchAdmission(self.acked, provenance, self.routing, row, end)
        self.incarnation = 0
        """The number of resumes so far. Batches that were fetched for an earlier incarnation are thrown away."""
        self.fetch_from, self.fetched_epoch = 0, -1
        """The next upstream offset to fetch, and the leader epoch of the record before it. The offset is ahead of
        `position` while fetched batches wait to be judged. The epoch is -1 if nothing was fetched since the last
        resume, which checked the log.
        """
        self.refusal: RefusedRecords | None = None
        """The records that were refused and could be quarantined."""
        self.quarantined_entries = 0
        """The number of entries of `refusal` that the quarantine topic has already."""
        self.counting_failed = False
        """Counting has failed, so the records themselves have to say where the copy is."""
        self._ends_first = False
        """Only the source failed, so the open transaction is committed before the partition resumes."""
        self.no_progress_since_resume = True
        """Nothing was acknowledged since the last resume, so the partition waits before the next one."""
        self._times_replaced = False

    def step(self, event: PartitionEvent) -> Effects:
        """Change the state by an event, and return the effects that are to be carried out now.

        A failure that comes late, when the partition is past copying, changes nothing.

        Raises:
            KeyError: The event cannot happen in this phase.
        """
        read = self.reads
        effects = HANDLERS[type(event)](self, event)
        if self.reads is not read:
            return (*effects, Fetch(self.fetch_from) if self.reads else STOP_FETCHING)
        return effects

    def with_identity_routing(self) -> "PartitionState":
        """Return the partition as it is copied to the one of the same number; itself if that is so already."""
        if self.routing.in_one_log:
            return self
        names = self.topic, self.number, self.target_topic, self._offset_lag_max
        return PartitionState(
            *names,
            limits=self.limits,
            provenance=self.provenance,
            has_foreign_writers=self.has_foreign_writers,
            transform=self.transform,
            is_evaluated=self.is_evaluated,
        )

    @property
    def transform_version(self) -> str:
        """Return the version of the transform of what is copied next, as `PartitionProgress.transform`."""
        return "" if self.transform is None else self.transform.version

    # -- what others read ----------------------------------------------------------------------------------------------

    def can(self, event: PhaseEvent) -> bool:
        """Return whether the event can happen in the present phase."""
        return event in TRANSITIONS[self.phase]

    @property
    def halted(self) -> bool:
        """Return whether an operator has to decide.

        That is also so if the partition was to rest, and its position is not known.
        """
        unknown = self.phase is Phase.RELEASED and self.resolves_end and not self._located
        return self.phase is Phase.HALTED or (unknown and self._case != "")

    @property
    def has_row(self) -> bool:
        """Return whether `row` can be written. It says nothing before the written row is known.

        A partition that halts before its copy has begun keeps `begins`: the copy begins as it would without a row.
        """
        return self.acked.is_loaded or (self.halted and self.acked.written.begins != "")

    @property
    def drained(self) -> bool:
        """Return whether nothing is in flight and nothing more will be sent in this phase."""
        return self.routing.unanswered == 0 and (self.routing.idle or self.routing.broken)

    @property
    def all_appends_accounted(self) -> bool:
        """Return whether the target's log, once `drained`, holds nothing of ours but what was acknowledged."""
        held = self._transactions is not None and bool(self._transactions.held)
        return self._nothing_failed and not (self.routing.broken or self.records_to_skip or held)

    def awaits(self, incarnation: int) -> bool:
        """Return whether batches that were fetched for this incarnation are still to be judged."""
        return incarnation == self.incarnation and self.reads

    @property
    def position(self) -> int:
        """Return the next upstream offset to judge."""
        return self._admission.position

    @property
    def records_to_skip(self) -> int:
        """Return how many of the source's next records the target's log has already: they are counted and not sent."""
        return self._admission.records_to_skip

    @property
    def skips(self) -> Sequence[tuple[int, int]]:
        """Return the source's offsets (first, last) that are quarantined and passed over."""
        return self._admission.skips

    @property
    def caught_up(self) -> bool:
        """Return whether nothing waits or is in flight, and the source has nothing more."""
        return self.routing.idle and self.position >= self.acked.source_end

    def may_launch(self, number: int, window: int, room: int = NO_LIMIT) -> bool:
        """Return whether a batch of at most `room` bytes may go to partition `number` of the target now.

        At most `window` batches may be in flight there.
        """
        accepted = self._transactions is None or self._accepts(number)
        return accepted and self.routing.appends_to(number).may_launch(window, room)

    def _accepts(self, number: int) -> bool:
        """Return whether the transaction takes batches for that partition of the target now."""
        transactions = self._transaction
        ending = transactions.stage is TransactionStage.ENDING and self.routing.sends_at_end
        return (ending or transactions.stage is TransactionStage.OPEN) and number in transactions.joined

    @property
    def needs_source(self) -> bool:
        """Return whether only the source can say more about where the copy ends (`PartitionProgress.beyond`)."""
        return self._beyond > 0

    def row(self, **fields: Any) -> PartitionProgress:
        """Return the progress as it is to be written, with these further fields of the row.

        It is durable, and its upstream offset, downstream offset and sequence belong together.
        """
        released = self.phase is Phase.RELEASED
        return self.acked.row(
            has_resumed=self.incarnation > 0,
            phase="halted" if self.halted else self._rest_word if released and self._rest_word else "copying",
            cause=self.cause,
            case=self._case if self.halted else "",
            located=self._located,
            beyond=self._beyond,
            uncounted=0 if self._beyond else self.records_to_skip,
            **fields,
        )

    # -- what others read of transactions ------------------------------------------------------------------------------

    @property
    def transactional_id(self) -> str | None:
        """Return the partition's transactional id; None: an append counts as soon as it is acknowledged."""
        return None if self._transactions is None else self._transactions.transactional_id

    @property
    def wants_transaction(self) -> bool:
        """Return whether batches wait for a transaction that is to be opened."""
        closed = self._transactions is not None and self._transactions.stage is TransactionStage.CLOSED
        return closed and self.sends and self.routing.sendable

    @property
    def ends_transaction_first(self) -> bool:
        """Return whether the transaction under way is to end before anything else is done with the partition."""
        return self.phase is Phase.DRAINING or (self.phase is Phase.SETTLING and self._ends_first)

    @property
    def _transaction(self) -> TransactionState:
        if self._transactions is None:
            raise KeyError(f"{self.name} does not copy in transactions")
        return self._transactions

    def is_in_transaction(self, incarnation: int) -> bool:
        """Return whether the transaction that this incarnation opened goes on."""
        goes_on = self.sends or (self.phase is Phase.SETTLING and self._ends_first)
        return incarnation == self.incarnation and goes_on and self.routing.ends_whole

    def transaction_due_in(self, now_s: float) -> float | None:
        """Return the seconds until the transaction is due, as `TransactionState.due_in`, by the loop's clock."""
        leaving = self.phase is not Phase.COPYING
        return self._transaction.due_in(now_s, idle=self.drained, caught_up=self.caught_up, leaving=leaving)

    @property
    def transaction_is_spent(self) -> bool:
        """Return whether the open transaction holds nothing, and will hold nothing."""
        return self.phase is not Phase.COPYING and self.drained and not self._transaction.held

    @property
    def progress(self) -> tuple[int, int]:
        """Return the upstream offset that the open transaction's progress record names, and that record's sequence.

        Everything up to that offset is decided once the transaction has ended.
        """
        return self.routing.decided_up_to(self._transaction.held)[0], self._transaction.progress_sequence

    @property
    def appended_to(self) -> Mapping[int, int]:
        """Return the offset of the open transaction's last record in each partition of the target's topic."""
        ends = {}
        for outgoing, downstream, *_ in self._transaction.held:
            number = self.number if self.routing.in_one_log else outgoing.target_partition
            ends[number] = downstream + outgoing.count - 1
        return ends

    # -- phases --------------------------------------------------------------------------------------------------------

    def _move(self, event: PhaseEvent) -> None:
        """Change the phase. Nothing else changes it."""
        self.phase = TRANSITIONS[self.phase][event]
        self.reads, self.sends = self.phase in READS, self.phase in SENDS
        if event in (PhaseEvent.LEAVE, PhaseEvent.REST):
            self.leaving, self.resolves_end = True, event is PhaseEvent.REST
        elif event in (PhaseEvent.RESUMED, PhaseEvent.FOUND):
            self._nothing_failed = True
        elif event in (PhaseEvent.FAILED, PhaseEvent.ROUND_REFUSED, PhaseEvent.QUARANTINED_LEAVING):
            self._nothing_failed = False
        self._located = self.phase is Phase.RELEASED and self.resolves_end and event in AGREES
        if event in RESETS_APPENDS:
            self.routing.reset()

    # -- every batch ---------------------------------------------------------------------------------------------------

    def _on_received(self, event: events.Received) -> Effects:
        if event.fetch_from <= LARGEST_OFFSET:  # what is beyond is refused when it is judged
            self.fetch_from = max(self.fetch_from, event.fetch_from)
        self.fetched_epoch = event.leader_epoch
        return ()

    def _on_fetched(self, event: events.Fetched) -> Effects:
        if not self.awaits(event.incarnation):
            return ()
        self.acked.note_source_end(event.source_end, event.now_ms)
        self.acked.stats.count_fetched(event.batches, event.size, event.now_ms)
        reports: tuple[Report, ...] = ()
        if event.batches or event.decided:
            sends = self.phase is Phase.COPYING
            try:
                self._admit(event, sends=sends)
            except RecordMismatch as exc:
                reports = self._miscount(str(exc))
            except BatchRejected as exc:
                cause = refuse_records(str(exc), exc.refusal)
                reports = self._refuse(cause, None if self.records_to_skip else exc.refusal)
            if self.reads and self.records_to_skip and self.position >= event.source_end >= 0:
                held = f"the target holds {self.records_to_skip} more records of ours"
                reports = self._miscount(f"{held} than the source has up to {self.position}")
        if self.phase is Phase.LOCATING and not self.records_to_skip:
            self._move(PhaseEvent.LOCATED)
        effects = FETCHED if event.batches or event.decided else PERSISTS
        return (*effects, *reports) if reports else effects

    def _admit(self, event: events.Fetched, *, sends: bool) -> None:
        """Judge what was fetched, or what a transform made of it.

        Raises:
            BatchRejected: As `BatchAdmission.admit`. Or batches of an evaluated partition came as they were fetched.
            RecordMismatch: As `BatchAdmission.admit`.
        """
        if event.decided is not None:
            self._admission.admit_decided(event.decided, self.limits, sends=sends, source_end=event.source_end)
        elif self.is_evaluated:
            raise BatchRejected("batches that no transform has seen are not copied, and this is a mistake of Lockstep")
        else:
            self._admission.admit(event.batches, event.aborted, self.limits, sends=sends, source_end=event.source_end)

    def _on_connection_ready(self, event: events.ConnectionReady) -> Effects:
        appends = self.routing.appends_to(event.target_partition)
        accepted = self._transactions is None or self._accepts(event.target_partition)
        if self.sends and accepted and appends.may_launch(event.window):
            return (Append(appends.launch(self.limits), appends.may_launch(event.window)),)
        return ()

    def _on_acked(self, event: events.Acked) -> Effects:
        sent, base_offset, now_ms, times_replaced = event
        in_turn = self.reads and self.sends and self._transactions is None and not times_replaced  # copying
        if in_turn and self.routing.appends_to(sent.outgoing.target_partition).defer_count(sent, base_offset, now_ms):
            return PERSISTS  # counted with those that follow, or when progress is about to be written
        if self.routing.appends_to(sent.outgoing.target_partition).is_misplaced(base_offset):
            return self._on_failed(events.Failed(sent=sent))  # the target's log shows what is before it
        return self._acknowledged(self.routing.on_ack(sent, base_offset), now_ms, times_replaced)

    def _on_acks_due(self, event: events.AcksDue) -> Effects:
        acks = self.routing.count_acked()
        return self._acknowledged(acks, event.now_ms) if acks else ()

    def _acknowledged(self, acks: Sequence[Ack], now_ms: int, times_replaced: bool = False) -> Effects:
        reports: tuple[Report, ...] = ()
        for ack in acks:
            if ack.foreign and not self.has_foreign_writers:
                reports += (ForeignRecords(ack),)
        if times_replaced and acks and not self._times_replaced:
            self._times_replaced = True
            reports += (TimesReplaced(self.acked.downstream),)
        if self._transactions is None:
            return (self._count(acks, now_ms), *reports)
        self._transactions.hold(acks)
        return reports

    def _count(self, acks: Sequence[Ack], now_ms: int) -> Persist:
        """Count batches that are durable, and visible to readers of committed records."""
        if acks:
            self.no_progress_since_resume = False
            if isinstance(self.routing, IdentityRouting):
                self.acked.count_appended(acks, self.routing)
            self.acked.stats.count_acknowledged(acks, now_ms)
        return Persist(acks)

    # -- failures and refusals -----------------------------------------------------------------------------------------

    def _on_failed(self, event: events.Failed) -> Effects:
        if event.sent is not None:
            self.routing.on_failure(event.sent)
        if event.split_above is not None:
            largest = min(self.limits.split_above, max(1, event.split_above))
            self.limits = replace(self.limits, split_above=largest)
        if event.refused_codecs:
            refused = self.limits.refused_codecs | event.refused_codecs
            self.limits = replace(self.limits, refused_codecs=refused)
        return (PERSIST, *self._fail(event.error, source_failed=event.source_failed))

    def _on_refused(self, event: events.Refused) -> Effects:
        if event.sent is not None:
            self.routing.on_failure(event.sent)
        return (PERSIST, *self._refuse(event.cause, event.refusal, event.case))

    def _miscount(self, sentence: str) -> tuple[Report, ...]:
        """Fail because counting does not say where the copy is; the records themselves are to say it."""
        self.counting_failed = True
        return self._fail(sentence)

    def _fail(
        self, error: str | Exception, *, source_failed: bool = False, event: PhaseEvent = PhaseEvent.FAILED
    ) -> tuple[Report, ...]:
        if not self.can(event):
            return ()
        was_reading = self.reads
        self._ends_first = source_failed and (was_reading or self._ends_first)
        self.routing.on_failed()
        self._move(event)
        if self._transactions is not None and (self.routing.broken or not self._ends_first):
            self._transactions.held.clear()  # the resume ends that transaction, and finds out whether it was committed
        return (CopyTrouble(error),) if was_reading and error else ()

    def _refuse(self, cause: Reason, refusal: RefusedRecords | None, case: str = "") -> tuple[Report, ...]:
        if self.can(PhaseEvent.ROUND_REFUSED) and self.routing.breaks_round(refusal):
            return self._fail("", event=PhaseEvent.ROUND_REFUSED)
        event = PhaseEvent.REFUSED_AT_REST if self.resolves_end else PhaseEvent.REFUSED
        if not self.can(event):
            return ()
        self._move(event)
        if refusal is not None and not self._names_new(refusal):
            refusal = None  # to quarantine the same once more would lead here again
        self.refusal, self.quarantined_entries = refusal, 0
        self.cause, self._case = cause, case or self._case or "refused"
        return self._halts()

    def _names_new(self, refusal: RefusedRecords) -> bool:
        """Return whether some of the refused offsets are not passed over yet."""
        return any(
            not any(begin <= first and last <= end for begin, end in self.skips) for first, last in refusal.ranges
        )

    def _halts(self) -> tuple[Report, ...]:
        return (Halted(self.cause, self.acked.upstream),) if self.halted else ()

    # -- where the copy goes on, and where it ends ---------------------------------------------------------------------

    def _on_row_loaded(self, event: events.RowLoaded) -> Effects:
        if event.at_rest and not self.incarnation:
            self.acked.progress_before = event.row.upstream
        self.acked.load(event.row)
        return PERSISTS

    def _on_target_sized(self, event: events.TargetSized) -> Effects:
        if not self.routing.fits_partitions(event.partitions):
            self.routing = self.routing.spread_over(event.partitions)
        return ()

    def _on_resumed(self, event: events.Resumed) -> Effects:
        """Judge the source again behind the row.

        A partition that is paused or stopped is judged only up to the end of its appends.
        """
        row, end, self._transactions = event.row, event.end, event.transactions
        self.acked.resume_from(row, event.runs, end.compared_runs)
        self.routing = self.routing.after_resume(row, end, transactional=self._transactions is not None)
        self._admission = BatchAdmission(self.acked, self.provenance, self.routing, row, end, self._transactions)
        self.fetch_from, self.fetched_epoch = self.position, -1
        self.counting_failed = self._ends_first = False
        self.incarnation += 1
        self.no_progress_since_resume = True
        self._move(PhaseEvent.FOUND if self.resolves_end else PhaseEvent.RESUMED)
        if self.records_to_skip:
            return (PERSIST, Recovered(self.records_to_skip, row.upstream))
        if self.phase is Phase.LOCATING:
            self._move(PhaseEvent.LOCATED)
        if end.compared_runs:
            count = sum(run.length for run in end.compared_runs)
            return (PERSIST, Recovered(count, end.compared_runs[0].upstream - 1))
        return PERSISTS

    def _on_nothing_copied(self, event: events.NothingCopied) -> Effects:
        self._move(PhaseEvent.FOUND)
        self._move(PhaseEvent.LOCATED)
        return PERSISTS

    def _on_unplaced(self, event: events.Unplaced) -> Effects:
        self._beyond = event.beyond
        self._move(PhaseEvent.UNPLACED)
        return PERSISTS

    def _on_topic_changed(self, event: events.TopicChanged) -> Effects:
        self.limits, row = event.limits, self.acked.written
        reports: tuple[Report, ...] = ()
        if self.phase is Phase.COPYING:
            former_ids = row.source_topic_id, row.target_topic_id
            present_ids = event.source_topic_id, event.target_topic_id
            if former_ids != present_ids:
                pairs = zip(former_ids, present_ids, strict=True)
                is_other = any(former and present and former != present for former, present in pairs)
                reports = self._fail("its topic was re-created" if is_other else "its topic has an id now, or none")
            elif not self.routing.fits_partitions(event.target_partitions):
                reports = self._fail(f"{self.target_topic} has {event.target_partitions} partitions now")
        return (PERSIST, *reports)

    def _on_leave(self, event: events.Leave) -> Effects:
        self._rest_word = event.word
        kind = PhaseEvent.LEAVE if event.goes_on else PhaseEvent.REST
        if self.can(kind) and (not self.leaving or (event.goes_on and self.resolves_end)):
            self._move(kind)
            self._nothing_failed = self._nothing_failed and not event.in_doubt
        return PERSISTS

    def _on_all_answered(self, event: events.AllAnswered) -> Effects:
        if self.phase is Phase.SETTLING:
            self._move(PhaseEvent.SETTLED)
        elif self.resolves_end and not self.all_appends_accounted:
            self._move(PhaseEvent.UNSURE)
        else:
            self._move(PhaseEvent.DRAINED if self.leaving else PhaseEvent.DRAINED_REFUSED)
        return (PERSIST, *(self._halts() if self.phase is Phase.HALTED else ()))

    def _on_entry_quarantined(self, event: events.EntryQuarantined) -> Effects:
        self.quarantined_entries += 1
        return ()

    def _on_quarantined(self, event: events.Quarantined) -> Effects:
        if event.row is not None:
            self.acked.load(event.row)
        self._move(PhaseEvent.QUARANTINED_LEAVING if self.leaving else PhaseEvent.QUARANTINED)
        self.refusal, self.cause, self._case = None, NO_REASON, ""
        return PERSISTS

    # -- transactions --------------------------------------------------------------------------------------------------

    def _on_transaction_joining(self, event: events.TransactionJoining) -> Effects:
        if self._transaction.stage is TransactionStage.CLOSED:
            self._transaction.mark_opening()
        joins = self.routing.join_transaction() - self._transaction.joined
        return (JoinTransaction(joins),) if joins else ()

    def _on_transaction_joined(self, event: events.TransactionJoined) -> Effects:
        self._transaction.joined |= event.partitions
        return OFFERS

    def _on_transaction_opened(self, event: events.TransactionOpened) -> Effects:
        self._transaction.mark_opened(event.at_s)
        return OFFERS

    def _on_transaction_ending(self, event: events.TransactionEnding) -> Effects:
        self._transaction.mark_ending(event.at_s)
        return ()

    def _on_transaction_committed(self, event: events.TransactionCommitted) -> Effects:
        self.acked.advance_to(*self.routing.decided_up_to(self._transaction.held))
        self.routing.skip_marker()
        return (self._count(self._transaction.take_committed(), event.now_ms),)

    # -- what is written -----------------------------------------------------------------------------------------------

    def _on_runs_written(self, event: events.RunsWritten) -> Effects:
        self.acked.runs.mark_written(event.rows)
        return ()


HANDLERS: Mapping[type[PartitionEvent], Callable[[PartitionState, Any], Effects]] = {
    events.Received: PartitionState._on_received,
    events.Fetched: PartitionState._on_fetched,
    events.ConnectionReady: PartitionState._on_connection_ready,
    events.Acked: PartitionState._on_acked,
    events.AcksDue: PartitionState._on_acks_due,
    events.Failed: PartitionState._on_failed,
    events.Refused: PartitionState._on_refused,
    events.RowLoaded: PartitionState._on_row_loaded,
    events.TargetSized: PartitionState._on_target_sized,
    events.Resumed: PartitionState._on_resumed,
    events.NothingCopied: PartitionState._on_nothing_copied,
    events.Unplaced: PartitionState._on_unplaced,
    events.TopicChanged: PartitionState._on_topic_changed,
    events.Leave: PartitionState._on_leave,
    events.AllAnswered: PartitionState._on_all_answered,
    events.EntryQuarantined: PartitionState._on_entry_quarantined,
    events.Quarantined: PartitionState._on_quarantined,
    events.TransactionJoining: PartitionState._on_transaction_joining,
    events.TransactionJoined: PartitionState._on_transaction_joined,
    events.TransactionOpened: PartitionState._on_transaction_opened,
    events.TransactionEnding: PartitionState._on_transaction_ending,
    events.TransactionCommitted: PartitionState._on_transaction_committed,
    events.RunsWritten: PartitionState._on_runs_written,
}
