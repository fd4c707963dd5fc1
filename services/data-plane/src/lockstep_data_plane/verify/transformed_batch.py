"""The records that a transform leaves of a batch of the source, for the comparison with the target."""

from collections.abc import Sequence
from typing import NamedTuple

from lockstep_data_plane.core.record_transform import TopicTransform, transformed_records
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, expected_crc
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.offsets import TopicPartition


class TransformedBatch(NamedTuple):
    """The records that a transform leaves of a batch, with their source offsets.

    `failed` are the offsets of records that it cannot evaluate. Those behind which the copy went on are in quarantine.
    """

    base_offset: int
    last_offset: int
    records: Sequence[PlainRecord]
    failed: Sequence[int] = ()


async def transform_batch(transform: TopicTransform, batch: Batch, tp: TopicPartition) -> TransformedBatch:
    """Return what a transform leaves of a batch that is copied.

    Raises:
        RetriableError: It was not evaluated, and may be evaluated later.
        NeedsDecision: It cannot be evaluated.
        ValueError: The bytes of the batch are no records.
    """
    if batch.magic == 2 and expected_crc(batch.data) != batch.crc:
        raise CorruptRecordError("its CRC does not match its bytes")
    end = batch.last_offset + 1  # in an old format too: a message around others has the offset of the last of them
    records: list[PlainRecord] = []
    failures: list[int] = []
    position = 0 if batch.magic < 2 else batch.base_offset  # the header of an old format does not say where it begins
    while position < end:
        left, failed = await transformed_records(transform, batch, position, tp)
        records += left
        if failed is None:
            break
        failures.append(failed)
        position = failed + 1
    return TransformedBatch(batch.base_offset, end - 1, tuple(records), tuple(failures))
