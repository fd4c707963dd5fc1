"""A transform as the slot, a resume and a verification see it (decision 0097).

A transform is a pure function of one record at one version: the record is left as it is, changed, dropped, or it
cannot be evaluated. To all that lies behind it the transformed log is a source log that a cleaner has been through: a
dropped record is an offset that is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lockstep_data_plane.core.quarantine_entry import read_unread_records, skipped
from lockstep_data_plane.record_batch.gapped_batch import read_outgoing
from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_rules.record_rules import RecordRules
from lockstep_state.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class RecordFailure:
    """A record that a transform could not evaluate. Nothing in it is from the record but its source offset."""

    offset: int
    condition: str
    """Spark's condition, such as CAST_INVALID_INPUT, one of ours, such as JSON_MALFORMED, or the class of an error."""
    fragment: str = ""
    """The part of the transform that failed; "": it is not known."""


@dataclass(frozen=True, slots=True)
class TransformedRecords:
    """The result of a transform for a stretch of source records.

    Every source offset from the request's start to `covers` is decided: it is in `outgoing`, in `failures`, or dropped.
    """

    outgoing: OutgoingBatch | None
    """The records that are left, with their source offsets, which have gaps; None: no record is left."""
    covers: int
    """The last source offset that is decided."""
    is_whole: bool = True
    """Every batch of the request is decided. Otherwise the rest is asked for, from `covers` + 1 on."""
    failures: tuple[RecordFailure, ...] = ()

    def records(self) -> list[PlainRecord]:
        """Return the records that are left, decoded, each with its source offset.

        Raises:
            CorruptRecordError: The transform made something that is no batch.
        """
        return [] if self.outgoing is None else read_outgoing(self.outgoing)


class RecordTransform(Protocol):
    """A transform at one version."""

    @property
    def version(self) -> str:
        """Return the version: two transforms with one version make the same of every record."""

    async def transform(self, batches: Sequence[Batch], start: int, tp: TopicPartition) -> TransformedRecords:
        """Return what becomes of the records of these batches from offset `start` on.

        The same records at the same version always become the same, in any process. Control batches are passed over.

        Args:
            batches: Whole batches of one partition, in order. All of them are to be copied.
            start: The first source offset that is not decided.
            tp: The partition on the source.

        Raises:
            RetriableError: It was not evaluated, and may be evaluated later.
            NeedsDecision: It cannot be evaluated.
        """


@dataclass(frozen=True, slots=True)
class RuleTransform:
    """The transform that header rules are, for a resume and a verification. A slot rebuilds batches by these rules."""

    rules: RecordRules

    @property
    def version(self) -> str:
        """Return the version of the rules."""
        return self.rules.version


TopicTransform: TypeAlias = RecordTransform | RuleTransform
"""The transform of a topic, as a resume and a verification ask it."""


async def transformed_records(
    transform: TopicTransform, batch: Batch, start: int, tp: TopicPartition, skips: Sequence[tuple[int, int]] = ()
) -> tuple[list[PlainRecord], int | None]:
    """Return what a transform leaves of a batch, with source offsets, and the offset of the first failed record.

    Records behind a failed one are left out. The offset is None if there is no failed one.

    Args:
        transform: The transform.
        batch: A batch that is to be copied.
        start: The first source offset that counts.
        tp: The partition on the source.
        skips: The offsets (first, last) that are passed over. It does not matter whether they can be evaluated.

    Raises:
        RetriableError: It was not evaluated, and may be evaluated later.
        NeedsDecision: It cannot be evaluated.
        ValueError: The transform decides nothing more, or made something that is no batch.
    """
    if isinstance(transform, RuleTransform):
        return read_unread_records(batch, start, skips, rules=transform.rules), None
    records: list[PlainRecord] = []
    while True:
        answer = await transform.transform([batch], start, tp)
        failed = next((failure.offset for failure in answer.failures if not skipped(failure.offset, skips)), None)
        records += [
            record
            for record in answer.records()
            if not skipped(record.offset, skips) and (failed is None or record.offset < failed)
        ]
        if failed is not None or answer.is_whole:
            return records, failed
        if answer.covers < start:
            raise ValueError(f"the transform of {tp[0]} decides nothing from offset {start} on")
        start = answer.covers + 1
