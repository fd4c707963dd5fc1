"""The events of a partition that `PartitionState.step` takes (no I/O, no clock)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.evaluation import DecidedRecords
from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress

# -- of every batch ----------------------------------------------------------------------------------------------------


class Received(NamedTuple):
    """An answer of the source has brought batches up to `fetch_from`, in this leader epoch.

    The batches may be judged later.
    """

    fetch_from: int
    leader_epoch: int


class Fetched(NamedTuple):
    """Batches of the source that were fetched for this incarnation of the partition.

    `size` is their bytes together. `source_end` is the end of the source's log, or of its committed part.
    `decided` is what became of them in a partition whose records are evaluated first; None in any other.
    """

    incarnation: int
    batches: Sequence[Batch]
    aborted: AbortedTransactions
    source_end: int
    size: int
    now_ms: int
    decided: Sequence[DecidedRecords] | None = None


class ConnectionReady(NamedTuple):
    """The connection to a partition of the target can take a batch, with at most `window` in flight."""

    target_partition: int
    window: int


class Acked(NamedTuple):
    """The target has acknowledged a batch.

    `times_replaced` says that the target has replaced the records' timestamps by its own time. A small batch may be
    counted later, with those that follow it.
    """

    sent: InFlightBatch
    base_offset: int
    now_ms: int
    times_replaced: bool = False


class AcksDue(NamedTuple):
    """The acknowledged batches are to be counted now: progress is about to be written, or something has failed."""

    now_ms: int


# -- what goes wrong ---------------------------------------------------------------------------------------------------


class Failed(NamedTuple):
    """A failure after which the target's log says how far the copy is.

    `why` is reported once; "": the resume will say what the failure is.
    """

    error: str | Exception = ""
    sent: InFlightBatch | None = None
    """The batch that was not appended, or whose outcome is unknown."""
    split_above: int | None = None
    """The most records that a batch may have from now on, if it has more than one."""
    refused_codecs: frozenset[int] = frozenset()
    """The compression codecs that the target refuses. From now on, batches are compressed with another codec."""
    source_failed: bool = False
    """Only the source failed, so an open transaction is committed first."""


class Refused(NamedTuple):
    """A refusal or a gap that only a decision settles.

    `refusal` has the refused records, where they are known. `case` is as in `PartitionProgress.case`.
    """

    cause: Reason
    refusal: RefusedRecords | None = None
    case: str = ""
    sent: InFlightBatch | None = None
    """The batch that the target does not take as it is."""


# -- where the copy goes on --------------------------------------------------------------------------------------------


class RowLoaded(NamedTuple):
    """The written row of the partition is known.

    If `at_rest`, it is read only to find where the copy ends.
    """

    row: PartitionProgress
    at_rest: bool = False


class TargetSized(NamedTuple):
    """The target's topic has this number of partitions."""

    partitions: int


class Resumed(NamedTuple):
    """The partition has resumed: the row and both logs say where the copy goes on.

    `end` is the end of our appends in the target's log, at or behind `row`. `runs` are the rows with the partition's
    offset runs. If `transactions` is None, an append counts as soon as it is acknowledged.
    """

    row: PartitionProgress
    end: LastAppend
    runs: Iterable[OffsetRuns] = ()
    transactions: TransactionState | None = None


class NothingCopied(NamedTuple):
    """The partition is to rest, and has no end of a copy to find.

    Nothing was ever copied, or an operator has set where the copy begins.
    """


class Unplaced(NamedTuple):
    """The partition is to rest, and the position of its last appends on the source stays unknown.

    The target's log holds `beyond` records of ours behind the loaded row. Only the source knows which records these
    are, and it does not answer.
    """

    beyond: int


class TopicChanged(NamedTuple):
    """The topic's row was written: its limits, its topic ids on both clusters, and the target's partition count."""

    limits: TargetLimits
    source_topic_id: str
    target_topic_id: str
    target_partitions: int


# -- where it ends -----------------------------------------------------------------------------------------------------


class Leave(NamedTuple):
    """The partition is to leave this slot.

    If `goes_on`, another run copies it at once. Otherwise `word` says why it is not copied (as
    `PartitionProgress.phase`). If `in_doubt`, a run that was cut off may have appended meanwhile.
    """

    word: str = ""
    goes_on: bool = False
    in_doubt: bool = False


class AllAnswered(NamedTuple):
    """Every batch in flight has its answer, and no transaction is open any more."""


class EntryQuarantined(NamedTuple):
    """The quarantine topic has one more entry of the refused records."""


class Quarantined(NamedTuple):
    """The quarantine topic has all refused records, and `row` passes over them.

    If `row` is None, the target's log has to be read first.
    """

    row: PartitionProgress | None


# -- transactions ------------------------------------------------------------------------------------------------------


class TransactionJoining(NamedTuple):
    """A transaction begins, or the open one takes in the batches that wait.

    The effect `JoinTransaction` has the partitions of the target that the coordinator has to know first.
    """


class TransactionJoined(NamedTuple):
    """The transaction coordinator knows these partitions of the target."""

    partitions: frozenset[int]


class TransactionOpened(NamedTuple):
    """The transaction is open: batches may be appended from this time of the loop's clock on."""

    at_s: float


class TransactionEnding(NamedTuple):
    """The transaction is to end at this time of the loop's clock."""

    at_s: float


class TransactionCommitted(NamedTuple):
    """The transaction is committed, and its records are visible."""

    now_ms: int


# -- what is written ---------------------------------------------------------------------------------------------------


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
"""An event of a partition. Events are tuples because one is made for each batch: tuples are cheap and cannot change."""
