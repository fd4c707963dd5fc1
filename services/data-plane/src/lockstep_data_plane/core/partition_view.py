"""What there is to know about one partition (no I/O, no clock). Everything here reads: `machine.py` alone writes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lockstep_data_plane.core.acked_position import AckedPosition
from lockstep_data_plane.core.batch_admission import BatchAdmission
from lockstep_data_plane.core.phases import TRANSITIONS, Phase, PhaseEvent
from lockstep_data_plane.core.provenance import NO_PROVENANCE, Provenance
from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.core.routing import IdentityRouting, Routing
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionStage, TransactionState
from lockstep_data_plane.record_batch.classify import NO_LIMIT, TargetLimits
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress


class PartitionView:
    """The partition `topic`-`number` of a flow, as one slot copies it."""

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
    ) -> None:
        """`routing` None: into the partition of the same number. `limits`: those of the target's topic. `provenance`:
        where batches of the source originated, and what becomes of them for that."""
        self.topic = topic
        self.number = number
        self.target_topic = target_topic
        self.tp = (topic, number)
        self.target_tp = (target_topic, number)
        self.provenance = provenance
        self.name = f"{topic}-{number}"
        self.target_name = f"{target_topic}-{number}"
        self.has_foreign_writers = topic == target_topic
        """Records that are not ours are expected in the target's log: its topic has the source's own name."""
        self._offset_lag_max = offset_lag_max
        self._phase = Phase.RESUMING
        self._reads = self._sends = False
        self._cause = NO_REASON
        self._case = ""
        """The word for why it halted (`PartitionProgress.case`)."""
        self._leaving = False
        self._locates = False
        self._located = False
        """The target's log holds nothing of ours behind its row."""
        self._beyond = 0
        """Records of ours behind the row, of which only the source knows which they are."""
        self._rest_word = ""
        """Why an operator wants it to rest (`PartitionProgress.phase`), once it leaves for that."""
        self._sure = False
        """Nothing failed since it resumed last, so that every append is accounted for once all answers are in."""
        self._acked = AckedPosition(topic, number, offset_lag_max)
        self._limits = limits or TargetLimits()
        self._routing: Routing = routing or IdentityRouting(number)
        self._transactions: TransactionState | None = None
        row, end = self._acked.written, LastAppend(-1, -1)
        self._admission = BatchAdmission(self._acked, provenance, self._routing, row, end)
        self._incarnation = 0
        self._fetch_from, self._fetched_epoch = 0, -1
        self._refusal: RefusedRecords | None = None
        self._kept = 0
        self._misnumbered = False
        self._ends_first = False
        """It failed on the source's side only: its open transaction is committed before the partition resumes."""
        self._fruitless = True
        self._times_replaced = False

    def can(self, event: PhaseEvent) -> bool:
        """Whether it can happen in this phase."""
        return event in TRANSITIONS[self._phase]

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def cause(self) -> Reason:
        """Return why it halted."""
        return self._cause

    @property
    def leaving(self) -> bool:
        """Whether it is to leave this slot."""
        return self._leaving

    @property
    def locates(self) -> bool:
        """No run goes on where it leaves, so that its row has to say what the target's log says."""
        return self._locates

    @property
    def reads(self) -> bool:
        """Whether the source's records are judged in this phase."""
        return self._reads

    @property
    def sends(self) -> bool:
        """Whether batches are appended in this phase."""
        return self._sends

    @property
    def halted(self) -> bool:
        """Whether an operator has to decide; also where it was to rest, and its position is not known."""
        unknown = self._phase is Phase.RELEASED and self._locates and not self._located
        return self._phase is Phase.HALTED or (unknown and self._case != "")

    @property
    def quiet(self) -> bool:
        """Nothing is in flight and nothing more will be sent in this phase."""
        return self._routing.unanswered == 0 and (self._routing.idle or self._routing.broken)

    @property
    def sure(self) -> bool:
        """Once it is quiet: whether the target's log holds nothing of ours but what was acknowledged."""
        held = self._transactions is not None and bool(self._transactions.held)
        return self._sure and not (self._routing.broken or self.records_to_skip or held)

    @property
    def fruitless(self) -> bool:
        """Nothing was acknowledged since the last resume: it waits before the next one."""
        return self._fruitless

    @property
    def refusal(self) -> RefusedRecords | None:
        """What was refused and could be quarantined."""
        return self._refusal

    @property
    def kept(self) -> int:
        """How many entries of `refusal` the quarantine topic has already."""
        return self._kept

    # -- source --------------------------------------------------------------------------------------------------------

    @property
    def incarnation(self) -> int:
        """Grows with each resume; what was fetched for an earlier one is thrown away."""
        return self._incarnation

    def awaits(self, incarnation: int) -> bool:
        """Whether what was fetched for this incarnation is still to be judged."""
        return incarnation == self._incarnation and self._reads

    @property
    def fetch_from(self) -> int:
        """The next upstream offset to fetch: ahead of `position` while fetched batches wait to be judged."""
        return self._fetch_from

    @property
    def fetched_epoch(self) -> int:
        """Leader epoch of the record before `fetch_from`; -1: not fetched since the last resume, which checked it."""
        return self._fetched_epoch

    @property
    def position(self) -> int:
        """The next upstream offset to judge."""
        return self._admission.position

    @property
    def records_to_skip(self) -> int:
        """Records that the target's log has already: they are counted and not sent."""
        return self._admission.records_to_skip

    @property
    def misnumbered(self) -> bool:
        """Counting went wrong, so the records themselves have to say where we are."""
        return self._misnumbered

    @property
    def caught_up(self) -> bool:
        """Nothing waits or is in flight, and the source has nothing more."""
        return self._routing.idle and self.position >= self._acked.source_end

    # -- target --------------------------------------------------------------------------------------------------------

    @property
    def limits(self) -> TargetLimits:
        """What the target takes."""
        return self._limits

    @property
    def in_one_log(self) -> bool:
        """What is copied goes into one partition of the target, whose log says how far the copy is."""
        return self._routing.in_one_log

    @property
    def numbers(self) -> Sequence[int]:
        """The partitions of the target that records go to."""
        return self._routing.numbers

    def fits(self, partitions: int) -> bool:
        """Whether the copy can go on as it is where the target has so many partitions now."""
        return self._routing.fits(partitions)

    def may_launch(self, number: int, window: int, room: int = NO_LIMIT) -> bool:
        """Return whether a batch of at most `room` bytes may go there now, with at most so many in flight there."""
        accepted = self._transactions is None or self._accepts(number)
        return accepted and self._routing.appends_to(number).may_launch(window, room)

    def _accepts(self, number: int) -> bool:
        """Whether the transaction takes batches for that partition of the target now."""
        transactions = self._transaction
        ending = transactions.stage is TransactionStage.ENDING and self._routing.sends_at_end
        return (ending or transactions.stage is TransactionStage.OPEN) and number in transactions.joined

    def unanswered_by(self, number: int) -> int:
        """Batches in flight to that partition of the target."""
        return self._routing.appends_to(number).unanswered

    @property
    def bytes_held(self) -> int:
        """Bytes that wait or are in flight."""
        return self._routing.bytes_held

    @property
    def records_held(self) -> int:
        """Records that wait or are in flight."""
        return self._routing.records_held

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch of its appends."""
        return self._routing.producer_id, self._routing.epoch

    # -- transactions --------------------------------------------------------------------------------------------------

    @property
    def transactional_id(self) -> str | None:
        """None: what is appended counts when it is acknowledged."""
        return None if self._transactions is None else self._transactions.transactional_id

    @property
    def wants_transaction(self) -> bool:
        """Whether something waits for a transaction that is to be opened."""
        closed = self._transactions is not None and self._transactions.stage is TransactionStage.CLOSED
        return closed and self.sends and self._routing.sendable

    @property
    def ends_transaction_first(self) -> bool:
        """Whether the transaction under way is to end before anything else is done with the partition."""
        return self._phase is Phase.DRAINING or (self._phase is Phase.SETTLING and self._ends_first)

    @property
    def ends_whole(self) -> bool:
        """What the transaction holds may be committed."""
        return self._routing.ends_whole

    @property
    def all_sent(self) -> bool:
        """Nothing more is to be appended in the transaction that is ending."""
        return self._routing.all_sent

    @property
    def _transaction(self) -> TransactionState:
        if self._transactions is None:
            raise KeyError(f"{self.name} does not copy in transactions")
        return self._transactions

    def is_in_transaction(self, incarnation: int) -> bool:
        """Whether the transaction that this incarnation opened goes on."""
        goes_on = self.sends or (self._phase is Phase.SETTLING and self._ends_first)
        return incarnation == self._incarnation and goes_on and self._routing.ends_whole

    def transaction_due_in(self, now_s: float) -> float | None:
        """As `TransactionState.due_in`, by the loop's clock."""
        leaving = self._phase is not Phase.COPYING
        return self._transaction.due_in(now_s, idle=self.quiet, caught_up=self.caught_up, leaving=leaving)

    @property
    def transaction_is_spent(self) -> bool:
        """Whether the open transaction holds nothing, and will hold nothing."""
        return self._phase is not Phase.COPYING and self.quiet and not self._transaction.held

    @property
    def progress(self) -> tuple[int, int]:
        """The upstream offset up to which everything is decided once the open transaction has ended, and the sequence
        of the progress record with it."""
        return self._routing.decided(self._transaction.held)[0], self._transaction.progress_sequence

    # -- what there is to write down -----------------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether there is progress to write down."""
        return self._acked.is_loaded

    @property
    def needs_source(self) -> bool:
        """Return whether the source alone can say more about where the copy ends, as `PartitionProgress`."""
        return self._beyond > 0

    @property
    def written(self) -> PartitionProgress:
        """The row that was loaded last."""
        return self._acked.written

    @property
    def lag(self) -> int:
        """Records of the source not yet durable downstream, as far as its end is known."""
        return self._acked.lag

    @property
    def counts(self) -> Mapping[str, int]:
        """As `CopyStats.counts`."""
        return self._acked.stats.counts

    def with_counts(self, row: PartitionProgress) -> PartitionProgress:
        """As `CopyStats.in_row`."""
        return self._acked.stats.in_row(row)

    @property
    def progress_before(self) -> int | None:
        """As `AckedPosition.progress_before`."""
        return self._acked.progress_before

    def due_runs(self) -> list[OffsetRuns]:
        """Rows of offset runs that are to be written."""
        return self._acked.runs.due()

    @property
    def state(self) -> tuple[object, ...]:
        """Differs from what it was before whenever `row`, or what its offset runs have to say, would."""
        where = self._located, self._beyond, self.records_to_skip, self._incarnation, *self._acked.state
        return (self._phase, self._cause, self._case, *where)

    def row(self) -> PartitionProgress:
        """Progress as it is to be written down: durable, and upstream, downstream and sequence belonging together."""
        released = self._phase is Phase.RELEASED
        return replace(
            self._acked.row(has_resumed=self._incarnation > 0),
            phase="halted" if self.halted else self._rest_word if released and self._rest_word else "copying",
            cause=self._cause,
            case=self._case if self.halted else "",
            located=self._located,
            beyond=self._beyond,
            uncounted=0 if self._beyond else self.records_to_skip,
        )

    def lag_ms(self, now_ms: int) -> int:
        """Return what `AckedPosition.lag_ms` returns."""
        return self._acked.lag_ms(now_ms)
