"""The requests to a partition's transform, and its decisions (no I/O, no clock).

A slot has the records of some topics evaluated before it judges them. Batches that are never copied are passed over
before: markers, aborted transactions, and what came from elsewhere. What cannot be read is refused before.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockstep_data_plane.core.provenance import OWN, Provenance
from lockstep_data_plane.core.quarantine_entry import QuarantineEntry, RefusedRecords, skipped, wholly_skipped
from lockstep_data_plane.core.record_transform import RecordFailure, TransformedRecords
from lockstep_data_plane.record_batch.classify import AbortedTransactions, BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.gapped_batch import as_gapped_batch, in_format_2
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, OutgoingBatch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_rules.statement_outline import COLUMNS
from lockstep_state.errors import NeedsDecision
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode

REQUEST_BYTES = 1_000_000
"""The size of batches, compressed, from which on no further batch joins a request. A larger one goes alone."""


@dataclass(frozen=True, slots=True)
class DecidedRecords:
    """A stretch of source offsets that a transform has decided, up to `covers`."""

    outgoing: OutgoingBatch | None
    """The records that are left, with their source offsets; None: no record is left."""
    covers: int
    leader_epoch: int
    """The source's leader epoch of the record at `covers`."""
    producer_id: int = OWN
    """The producer id of the copy."""

    def as_batch(self) -> Batch:
        """Return the records that are left as a log cleaner would have left them. Raises CorruptRecordError."""
        if self.outgoing is None:
            raise ValueError("no record is left")
        return as_gapped_batch(self.outgoing, self.covers, self.leader_epoch)


class EvaluationRequest(NamedTuple):
    """Batches that are evaluated together. They have one leader epoch, and their copy one producer id."""

    batches: tuple[Batch, ...]
    producer_id: int

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset

    @property
    def leader_epoch(self) -> int:
        return self.batches[-1].leader_epoch


class PassedOver(NamedTuple):
    """A batch that is never copied."""

    batch: Batch


class RejectedBatch(NamedTuple):
    """A batch that cannot be read."""

    batch: Batch
    reason: str


def evaluation_requests(
    batches: Sequence[Batch],
    position: int,
    aborted: AbortedTransactions,
    provenance: Provenance,
    limits: TargetLimits,
    skips: Sequence[tuple[int, int]] = (),
) -> Iterator[EvaluationRequest | PassedOver | RejectedBatch]:
    """Yield what becomes of the batches of one fetch, in their order.

    Args:
        batches: The batches, or groups of small ones.
        position: The first source offset that is not decided.
        aborted: The aborted transactions among them.
        provenance: The origins of the source's batches.
        limits: The limits of the target's topic.
        skips: The offsets (first, last) that are in quarantine. A batch of such offsets alone is passed over unread.
    """
    if skips:  # a batch of a group may be one of these
        batches = [single for batch in batches for single in (scan(batch.data) if batch.batches > 1 else (batch,))]
    gathered: list[Batch] = []
    gathered_producer = OWN
    for batch in batches:
        producer = provenance.copy_producer_id(batch)
        of_aborted = aborted.any and aborted.holds(batch)
        action, reason = classify(batch, position, limits, aborted=of_aborted, elsewhere=producer is None)
        if wholly_skipped(batch, position, skips):
            action = BatchAction.SKIP
        readable: Batch | None = None
        if action in (BatchAction.PASS, BatchAction.REBUILD):
            try:
                readable = in_format_2(batch, limits.unpacked_at_most)
            except CorruptRecordError as exc:
                action, reason = BatchAction.REFUSE, str(exc)
        joins = (
            readable is not None
            and producer == gathered_producer
            and all(last.leader_epoch == readable.leader_epoch for last in gathered[-1:])
            and sum(len(batch.data) for batch in gathered) + len(readable.data) <= REQUEST_BYTES
        )
        if gathered and not joins:
            yield EvaluationRequest(tuple(gathered), gathered_producer)
            gathered = []
        if action is BatchAction.REFUSE:
            yield RejectedBatch(batch, reason)
            return
        if readable is None or producer is None:
            yield PassedOver(batch)
        else:
            gathered += (readable,) if readable.batches == 1 else scan(readable.data)
            gathered_producer = producer
    if gathered:
        yield EvaluationRequest(tuple(gathered), gathered_producer)


def decide(
    request: EvaluationRequest, start: int, made: TransformedRecords, skips: Sequence[tuple[int, int]]
) -> tuple[DecidedRecords | None, RecordFailure | None]:
    """Return what is decided of a request from offset `start` on, and the first failure that counts.

    Nothing behind that failure is decided. Failures at offsets in `skips` (first, last) do not count, because these
    records are in quarantine.

    Raises:
        ValueError: The answer decides nothing, or goes on behind a failure.
    """
    failure = next((failure for failure in made.failures if not skipped(failure.offset, skips)), None)
    covers = request.last_offset if made.is_whole else made.covers
    if failure is not None:
        covers = failure.offset - 1
    if covers < start:
        if failure is not None and failure.offset == start and made.outgoing is None:
            return None, failure
        raise ValueError(f"nothing is decided from offset {start} on")
    if made.outgoing is not None and made.outgoing.offsets[-1] > covers:
        raise ValueError(f"records are decided behind offset {covers}")
    return _decided(request, made.outgoing, covers), failure


def _decided(request: EvaluationRequest, outgoing: OutgoingBatch | None, covers: int) -> DecidedRecords:
    if outgoing is not None:
        outgoing = replace(outgoing, covers=covers, leader_epoch=request.leader_epoch)
    return DecidedRecords(outgoing, covers, request.leader_epoch, request.producer_id)


def _find_record(request: EvaluationRequest, offset: int) -> PlainRecord | None:
    """Return a record of the request by its source offset; None: it has none there, or it cannot be read."""
    try:
        for batch in request.batches:
            for single in scan(batch.data):
                if single.base_offset <= offset <= single.last_offset:
                    return next((record for record in read_records(single) if record.offset == offset), None)
    except CorruptRecordError:
        return None
    return None


def refuse_failed(
    request: EvaluationRequest,
    failure: RecordFailure,
    reason: str,
    policy: str,
    made_columns: Collection[str] = COLUMNS,
) -> RefusedRecords:
    """Return the refusal of a record that failed, for the quarantine. Its value is in no entry.

    `policy` is `quarantine`, with the record's key, headers and timestamp, or `quarantine-metadata`, with its timestamp
    only. A key or headers that the transform makes anew (`made_columns`) are left out too: it may mask them.
    """
    record = _find_record(request, failure.offset)
    timestamp = -1 if record is None else record.timestamp
    entry = QuarantineEntry(failure.offset, failure.offset, None, None, (), timestamp)
    if record is not None and policy == "quarantine":
        entry = replace(
            entry,
            key=None if "key" in made_columns else record.key,
            headers=() if "headers" in made_columns else record.headers,
        )
    return RefusedRecords(reason, (entry,), is_decided=True)


def without_content(refusal: RefusedRecords | None) -> RefusedRecords | None:
    """Return a refusal with offsets and timestamps only, for records that no transform and no rule has seen."""
    if refusal is None:
        return None
    entries = tuple(replace(entry, key=None, value=None, headers=()) for entry in refusal.entries)
    return replace(refusal, entries=entries)


TRANSFORM_CASE = "transform"
"""The case (`PartitionProgress.case`) of a partition whose records cannot be evaluated."""


class TransformUnavailable(NeedsDecision):
    """Nothing evaluates a transform. Its partitions halt for this cause, and are never copied as they are."""

    def __init__(self, cause: Reason) -> None:
        super().__init__(cause.code)
        self.cause = cause


def unavailable(name: str, text: str) -> TransformUnavailable:
    """Return the error of a transform that cannot be evaluated. `text` says why."""
    cause = ReasonCode.TRANSFORM_UNAVAILABLE.to_reason(transform=name, text=text, case=TRANSFORM_CASE)
    return TransformUnavailable(cause)


@dataclass(frozen=True, slots=True)
class RefusedTransform:
    """The `RecordTransform` of topics whose transform cannot be evaluated here: it evaluates nothing."""

    name: str
    reason: str

    @property
    def version(self) -> str:
        """Return a version that no transform has."""
        return "unavailable"

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        """Raise TransformUnavailable."""
        raise unavailable(self.name, self.reason)
