"""A transform as the slot, a resume and a verification see it (decision 0097).

A transform is a pure function of one record at one version: the record is left as it is, changed, dropped, or it
cannot be evaluated. To all that lies behind it the transformed log is a source log that a cleaner has been through: a
dropped record is an offset that is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_state.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class RecordFailure:
    """A record that a transform could not evaluate. Nothing in it is from the record but its source offset."""

    offset: int
    condition: str
    """The condition, such as CAST_INVALID_INPUT."""
    fragment: str = ""
    """The part of the transform that failed; "": it is not known."""


@dataclass(frozen=True, slots=True)
class TransformedRecords:
    """What a transform made of a stretch of source records.

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
        if self.outgoing is None:
            return []
        offsets = self.outgoing.offsets
        decoded = (record for batch in scan(self.outgoing.data) for record in read_records(batch))
        return [record._replace(offset=offset) for offset, record in zip(offsets, decoded, strict=True)]


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
