"""The state of one partition and the only door to it (no I/O, no clock): `step(event) -> Ready`.

A partition is always in one phase (`phases.py`). A partition in trouble never stops another: each has its own phase.
All that is public here but `step` reads."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from lockstep_data_plane.core import events
from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.core.appended_skipper import RecordMismatch
from lockstep_data_plane.core.batch_admission import BatchAdmission
from lockstep_data_plane.core.events import PartitionEvent, Ready, Report
from lockstep_data_plane.core.partition_view import PartitionView
from lockstep_data_plane.core.phases import READS, RESETS_APPENDS, SENDS, TRANSITIONS, Phase, PhaseEvent
from lockstep_data_plane.core.quarantine_entry import BatchRejected, RefusedRecords, refuse_records
from lockstep_data_plane.core.routing import IdentityRouting
from lockstep_data_plane.core.transaction_state import TransactionStage
from lockstep_data_plane.record_batch.layout import LARGEST_OFFSET
from lockstep_state.reasons.reason import NO_REASON, Reason

GATHERS = Ready(Phase.COPYING, gathers=True)
"""Of nearly every acknowledgement; making it anew costs as much as the rest of that step."""

AGREES = (PhaseEvent.DRAINED, PhaseEvent.LOCATED)
"""After these the row of a partition at rest agrees with the target's log."""


class PartitionMachine(PartitionView):
    """Changes the state of one partition."""

    def step(self, event: PartitionEvent) -> Ready:
        """What happened, and what is to be done now. Raises KeyError for what cannot happen in this phase. A failure
        that comes late, for a partition that is past copying, changes nothing."""
        return _HANDLERS[type(event)](self, event)

    def in_its_place(self) -> "PartitionMachine":
        """The partition as it is copied to the one of the same number, where it was so before."""
        if self.in_one_log:
            return self
        given = self.topic, self.number, self.target_topic, self._offset_lag_max
        return PartitionMachine(*given, limits=self._limits, provenance=self.provenance)

    def _ready(self, *report: Report, appends: bool = False, persist: bool = True) -> Ready:
        fetch_from = self._fetch_from if self.reads else None
        return Ready(self._phase, fetch_from, appends=appends, report=report, persist=persist)

    def _move(self, event: PhaseEvent) -> None:
        """The only place that changes the phase."""
        self._phase = TRANSITIONS[self._phase][event]
        self._reads, self._sends = self._phase in READS, self._phase in SENDS
        if event in (PhaseEvent.LEAVE, PhaseEvent.REST):
            self._leaving, self._locates = True, event is PhaseEvent.REST
        elif event in (PhaseEvent.RESUMED, PhaseEvent.FOUND):
            self._sure = True
        elif event in (PhaseEvent.FAILED, PhaseEvent.ROUND_REFUSED, PhaseEvent.QUARANTINED_LEAVING):
            self._sure = False
        self._located = self._phase is Phase.RELEASED and self._locates and event in AGREES
        if event in RESETS_APPENDS:
            self._routing.reset()

    # -- of every batch ------------------------------------------------------------------------------------------------

    def _on_received(self, event: events.Received) -> Ready:
        if event.fetch_from <= LARGEST_OFFSET:  # what is beyond is refused when it is judged
            self._fetch_from = max(self._fetch_from, event.fetch_from)
        self._fetched_epoch = event.leader_epoch
        return Ready(self._phase, self._fetch_from)

    def _on_fetched(self, event: events.Fetched) -> Ready:
        if not self.awaits(event.incarnation):
            return Ready(self._phase)
        self._acked.saw_end(event.source_end, event.now_ms)
        self._acked.stats.fetched(event.batches, event.size, event.now_ms)
        report: tuple[Report, ...] = ()
        if event.batches:
            sends = self._phase is Phase.COPYING
            try:
                self._admission.admit(
                    event.batches, event.aborted, self._limits, sends=sends, source_end=event.source_end
                )
            except RecordMismatch as exc:
                report = self._miscount(str(exc))
            except BatchRejected as exc:
                cause = refuse_records(str(exc), exc.refusal)
                report = self._refuse(cause, None if self.records_to_skip else exc.refusal)
            if self._reads and self.records_to_skip and self.position >= event.source_end >= 0:
                held = f"the target holds {self.records_to_skip} more records of ours"
                report = self._miscount(f"{held} than the source has up to {self.position}")
        if self._phase is Phase.LOCATING and not self.records_to_skip:
            self._move(PhaseEvent.LOCATED)
        fetch_from = self._fetch_from if self._reads else None
        return Ready(self._phase, fetch_from, None, bool(event.batches), (), report, True)

    def _on_connection_ready(self, event: events.ConnectionReady) -> Ready:
        appends, batch, more = self._routing.appends_to(event.to), None, False
        accepted = self._transactions is None or self._accepts(event.to)
        if self._sends and accepted and appends.may_launch(event.window):
            batch = appends.launch(self._limits)
            more = appends.may_launch(event.window)
        return Ready(self._phase, self._fetch_from if self._reads else None, batch, more)

    def _on_acked(self, event: events.Acked) -> Ready:
        sent, base_offset, now_ms, times_replaced = event
        in_turn = self._reads and self._sends and self._transactions is None and not times_replaced  # copying
        if in_turn and self._routing.appends_to(sent.outgoing.to).gather(sent, base_offset, now_ms):
            return GATHERS
        if self._routing.appends_to(sent.outgoing.to).is_misplaced(base_offset):
            return self._on_failed(events.Failed(sent=sent))  # the target's log shows what is before it
        return self._acknowledged(self._routing.on_ack(sent, base_offset), now_ms, times_replaced)

    def _on_acks_due(self, event: events.AcksDue) -> Ready:
        return self._acknowledged(self._routing.count_acked(), event.now_ms)

    def _acknowledged(self, acks: Sequence[Ack], now_ms: int, times_replaced: bool = False) -> Ready:
        report: tuple[Report, ...] = ()
        for ack in acks:
            if ack.foreign and not self.has_foreign_writers:
                report += (events.ForeignRecords(ack),)
        if times_replaced and acks and not self._times_replaced:
            self._times_replaced = True
            report += (events.TimesReplaced(self._acked.downstream),)
        if self._transactions is None:
            return self._count(acks, now_ms, report)
        self._transactions.hold(acks)
        return self._ready(*report, persist=False)

    def _count(self, acks: Sequence[Ack], now_ms: int, report: tuple[Report, ...] = ()) -> Ready:
        """These are durable, and visible to readers of committed records."""
        if acks:
            self._fruitless = False
            if isinstance(self._routing, IdentityRouting):
                self._acked.appended(acks, self._routing)
            self._acked.stats.acknowledged(acks, now_ms)
        return Ready(self._phase, self._fetch_from if self._reads else None, None, False, acks, report, True)

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def _on_failed(self, event: events.Failed) -> Ready:
        if event.sent is not None:
            self._routing.on_failure(event.sent)
        if event.split_above is not None:
            largest = min(self._limits.split_above, max(1, event.split_above))
            self._limits = replace(self._limits, split_above=largest)
        if event.refused_codecs:
            refused = self._limits.refused_codecs | event.refused_codecs
            self._limits = replace(self._limits, refused_codecs=refused)
        return self._ready(*self._fail(event.why, source_failed=event.source_failed))

    def _on_refused(self, event: events.Refused) -> Ready:
        if event.sent is not None:
            self._routing.on_failure(event.sent)
        return self._ready(*self._refuse(event.cause, event.refusal, event.case))

    def _miscount(self, why: str) -> tuple[Report, ...]:
        """Counting does not say where the copy is: the records themselves are to say it."""
        self._misnumbered = True
        return self._fail(why)

    def _fail(
        self, why: str | Exception, *, source_failed: bool = False, event: PhaseEvent = PhaseEvent.FAILED
    ) -> tuple[Report, ...]:
        if not self.can(event):
            return ()
        first = self.reads
        self._ends_first = source_failed and (first or self._ends_first)
        self._routing.on_failed()
        self._move(event)
        if self._transactions is not None and (self._routing.broken or not self._ends_first):
            self._transactions.held.clear()  # the resume ends that transaction, and asks what became of it
        return (events.CopyTrouble(why),) if first and why else ()

    def _refuse(self, cause: Reason, refusal: RefusedRecords | None, case: str = "") -> tuple[Report, ...]:
        if self.can(PhaseEvent.ROUND_REFUSED) and self._routing.breaks_round(refusal):
            return self._fail("", event=PhaseEvent.ROUND_REFUSED)
        event = PhaseEvent.REFUSED_AT_REST if self._locates else PhaseEvent.REFUSED
        if not self.can(event):
            return ()
        self._move(event)
        self._refusal, self._kept = refusal, 0
        self._cause, self._case = cause, case or self._case or "refused"
        return self._halts()

    def _halts(self) -> tuple[Report, ...]:
        return (events.Halted(self._cause, self._acked.upstream),) if self.halted else ()

    # -- where the copy goes on, and where it ends ---------------------------------------------------------------------

    def _on_row_loaded(self, event: events.RowLoaded) -> Ready:
        if event.at_rest and not self._incarnation:
            self._acked.progress_before = event.row.upstream
        self._acked.load(event.row)
        return self._ready()

    def _on_target_sized(self, event: events.TargetSized) -> Ready:
        if not self.fits(event.partitions):
            self._routing = self._routing.spread_over(event.partitions)
        return self._ready(persist=False)

    def _on_resumed(self, event: events.Resumed) -> Ready:
        """The source is judged again from the row on. A partition that is paused or stopped goes no further than the
        end of its appends."""
        row, end, self._transactions = event.row, event.end, event.transactions
        self._acked.resumed(row, event.runs, end.places)
        self._routing = self._routing.begun(row, end, transactional=self._transactions is not None)
        self._admission = BatchAdmission(self._acked, self.provenance, self._routing, row, end, self._transactions)
        self._fetch_from, self._fetched_epoch = self.position, -1
        self._misnumbered = self._ends_first = False
        self._incarnation += 1
        self._fruitless = True
        self._move(PhaseEvent.FOUND if self._locates else PhaseEvent.RESUMED)
        if self.records_to_skip:
            return self._ready(events.Recovered(self.records_to_skip, row.upstream))
        if self._phase is Phase.LOCATING:
            self._move(PhaseEvent.LOCATED)
        if end.places:
            count = sum(place[2] for place in end.places)
            return self._ready(events.Recovered(count, end.places[0][0] - 1))
        return self._ready()

    def _on_nothing_copied(self, event: events.NothingCopied) -> Ready:
        self._move(PhaseEvent.FOUND)
        self._move(PhaseEvent.LOCATED)
        return self._ready()

    def _on_unplaced(self, event: events.Unplaced) -> Ready:
        self._beyond = event.beyond
        self._move(PhaseEvent.UNPLACED)
        return self._ready()

    def _on_topic_changed(self, event: events.TopicChanged) -> Ready:
        self._limits, row = event.limits, self._acked.written
        report: tuple[Report, ...] = ()
        if self._phase is Phase.COPYING:
            ids = row.source_topic_id, row.target_topic_id
            now = event.source_topic_id, event.target_topic_id
            if ids != now:
                is_other = any(old and new and old != new for old, new in zip(ids, now, strict=True))
                report = self._fail("its topic was re-created" if is_other else "its topic has an id now, or none")
            elif not self.fits(event.target_partitions):
                report = self._fail(f"{self.target_topic} has {event.target_partitions} partitions now")
        return self._ready(*report)

    def _on_leave(self, event: events.Leave) -> Ready:
        self._rest_word = event.word
        kind = PhaseEvent.LEAVE if event.goes_on else PhaseEvent.REST
        if self.can(kind) and (not self._leaving or (event.goes_on and self._locates)):
            self._move(kind)
            self._sure = self._sure and not event.in_doubt
        return self._ready()

    def _on_all_answered(self, event: events.AllAnswered) -> Ready:
        if self._phase is Phase.SETTLING:
            self._move(PhaseEvent.SETTLED)
        elif self._locates and not self.sure:
            self._move(PhaseEvent.UNSURE)
        else:
            self._move(PhaseEvent.DRAINED if self._leaving else PhaseEvent.DRAINED_REFUSED)
        return self._ready(*(self._halts() if self._phase is Phase.HALTED else ()))

    def _on_entry_quarantined(self, event: events.EntryQuarantined) -> Ready:
        self._kept += 1
        return self._ready(persist=False)

    def _on_quarantined(self, event: events.Quarantined) -> Ready:
        if event.row is not None:
            self._acked.load(event.row)
        self._move(PhaseEvent.QUARANTINED_LEAVING if self._leaving else PhaseEvent.QUARANTINED)
        self._refusal, self._cause, self._case = None, NO_REASON, ""
        return self._ready()

    # -- transactions --------------------------------------------------------------------------------------------------

    def _on_transaction_joining(self, event: events.TransactionJoining) -> Ready:
        if self._transaction.stage is TransactionStage.CLOSED:
            self._transaction.opening()
        return self._ready(persist=False)._replace(joins=self._routing.joining() - self._transaction.joined)

    def _on_transaction_joined(self, event: events.TransactionJoined) -> Ready:
        self._transaction.joined |= event.partitions
        return self._ready(appends=True, persist=False)

    def _on_transaction_opened(self, event: events.TransactionOpened) -> Ready:
        self._transaction.opened(event.at_s)
        return self._ready(appends=True, persist=False)

    def _on_transaction_ending(self, event: events.TransactionEnding) -> Ready:
        self._transaction.ending(event.at_s)
        return self._ready(persist=False)

    def _on_transaction_committed(self, event: events.TransactionCommitted) -> Ready:
        self._acked.reached(*self._routing.decided(self._transaction.held))
        self._routing.marked()
        return self._count(self._transaction.committed(), event.now_ms)

    # -- what is written down ------------------------------------------------------------------------------------------

    def _on_runs_written(self, event: events.RunsWritten) -> Ready:
        self._acked.runs.written(event.rows)
        return self._ready(persist=False)


_HANDLERS: Mapping[type[PartitionEvent], Callable[[PartitionMachine, Any], Ready]] = {
    event: getattr(PartitionMachine, "_on" + re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), event.__name__))
    for event in get_args(PartitionEvent)
}
"""`Fetched` goes to `_on_fetched`, and so on."""
