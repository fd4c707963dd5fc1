"""What happens to a partition (no I/O, no clock): the events that `PartitionState.step` takes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress

# -- of every batch ----------------------------------------------------------------------------------------------------


class Received(NamedTuple):
    """An answer of the source brought batches up to `fetch_from`, in this leader epoch. They may be judged later."""

    fetch_from: int
    leader_epoch: int


class Fetched(NamedTuple):
    """Batches of the source, `size` bytes together, fetched for this incarnation of the partition. `source_end` is the
    end of its log, or of what is committed there."""

    incarnation: int
    batches: Sequence[Batch]
    aborted: AbortedTransactions
    source_end: int
    size: int
    now_ms: int


class ConnectionReady(NamedTuple):
    """The connection to partition `to` of the target takes a batch, with at most `window` in flight there."""

    to: int
    window: int


class Acked(NamedTuple):
    """The target has a batch. `times_replaced`: it put its own time in place of the records'.

    A small batch may be counted later, with those that follow."""

    sent: InFlightBatch
    base_offset: int
    now_ms: int
    times_replaced: bool = False


class AcksDue(NamedTuple):
    """What is acknowledged is to be counted now: progress is about to be written, or something has failed."""

    now_ms: int


# -- what goes wrong ---------------------------------------------------------------------------------------------------


class Failed(NamedTuple):
    """Something failed that the target's log settles. `why` is reported once; "": resuming will say what it is."""

    why: str | Exception = ""
    sent: InFlightBatch | None = None
    """It was not appended, or its outcome is unknown."""
    split_above: int | None = None
    """Batches of several records are to be no larger from now on."""
    refused_codecs: frozenset[int] = frozenset()
    """Batches are compressed otherwise from now on."""
    source_failed: bool = False
    """The target has no part in it, so an open transaction is committed first."""


class Refused(NamedTuple):
    """Only a decision settles it. `refusal`: the records, where they are known; `case`: as `PartitionProgress.case`."""

    cause: Reason
    refusal: RefusedRecords | None = None
    case: str = ""
    sent: InFlightBatch | None = None
    """The target does not take it as it is."""


# -- where the copy goes on --------------------------------------------------------------------------------------------


class RowLoaded(NamedTuple):
    """What is written down about the partition. `at_rest`: it is read only to find out where the copy ends."""

    row: PartitionProgress
    at_rest: bool = False


class TargetSized(NamedTuple):
    """The target's topic has so many partitions."""

    partitions: int


class Resumed(NamedTuple):
    """`end` is the end of our appends in the target's log, at or behind `row`. `runs` are the rows with the partition's
    offset runs. `transactions` None: what is appended counts when it is acknowledged."""

    row: PartitionProgress
    end: LastAppend
    runs: Iterable[OffsetRuns] = ()
    transactions: TransactionState | None = None


class NothingCopied(NamedTuple):
    """The partition is to rest, and nothing was ever copied, or an operator has said where the copy begins."""


class Unplaced(NamedTuple):
    """The partition is to rest. The target's log holds `beyond` records of ours behind the row that was loaded. The
    source alone knows which records these are, and does not answer."""

    beyond: int


class TopicChanged(NamedTuple):
    """The topic's row came in: its limits, and the ids and the number of partitions that its topics have now."""

    limits: TargetLimits
    source_topic_id: str
    target_topic_id: str
    target_partitions: int


# -- where it ends -----------------------------------------------------------------------------------------------------


class Leave(NamedTuple):
    """The partition is to leave this slot. `goes_on`: another run copies it at once. `word`: why it is not copied
    otherwise (as `PartitionProgress.phase`). `in_doubt`: a run that was cut off may have appended meanwhile."""

    word: str = ""
    goes_on: bool = False
    in_doubt: bool = False


class AllAnswered(NamedTuple):
    """Every answer is in, and no transaction is open any more."""


class EntryQuarantined(NamedTuple):
    """The quarantine topic has one more entry of what was refused."""


class Quarantined(NamedTuple):
    """The quarantine topic has all of it, and `row` passes over it. None: the target's log has to be read first."""

    row: PartitionProgress | None


# -- transactions ------------------------------------------------------------------------------------------------------


class TransactionJoining(NamedTuple):
    """A transaction begins, or the open one takes in what waits. The effect `JoinTransaction` has the partitions of
    the target that its coordinator has to know first."""


class TransactionJoined(NamedTuple):
    """The coordinator knows these partitions of the target."""

    partitions: frozenset[int]


class TransactionOpened(NamedTuple):
    """Batches may be appended, from this moment of the loop's clock on."""

    at_s: float


class TransactionEnding(NamedTuple):
    """The transaction is due at this moment of the loop's clock."""

    at_s: float


class TransactionCommitted(NamedTuple):
    """What it held is visible."""

    now_ms: int


# -- what is written down ----------------------------------------------------------------------------------------------


class RunsWritten(NamedTuple):
    """The state topic has these rows of offset runs."""

    rows: Sequence[OffsetRuns]


PartitionEvent = (
    Received
    | Fetched
    | ConnectionReady
    | Acked
    | AcksDue
    | Failed
    | Refused
    | RowLoaded
    | TargetSized
    | Resumed
    | NothingCopied
    | Unplaced
    | TopicChanged
    | Leave
    | AllAnswered
    | EntryQuarantined
    | Quarantined
    | TransactionJoining
    | TransactionJoined
    | TransactionOpened
    | TransactionEnding
    | TransactionCommitted
    | RunsWritten
)
"""Something that happened to a partition. One is made for each batch, so that all are tuples: cheap, and frozen."""
