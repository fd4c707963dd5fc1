"""Batches whose records keep the offsets that they had, with gaps, as a log cleaner leaves them.

What a transform made has to be read record by record at times: at a resume, around quarantined records, or if the
target takes smaller batches. Then it is such a batch, which everything behind knows from compacted topics.
"""

from collections.abc import Sequence

from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, NONE, compress
from lockstep_data_plane.record_batch.layout import (
    COVERED,
    HEADER_SIZE,
    PREFIX,
    Batch,
    CorruptRecordError,
    OutgoingBatch,
    header_with_crc,
    scan,
)
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord, encode_at_offsets
from lockstep_data_plane.record_batch.rebuild import read_records


def gapped_batch(records: Sequence[PlainRecord], last_offset: int, leader_epoch: int, codec: int = NONE) -> Batch:
    """Return the records, at least one, as a batch of format 2 without a producer.

    `last_offset` is that of the batch. It may be behind that of its last record.
    """
    body = encode_at_offsets(records)
    if codec != NONE:
        body = compress(body, codec, JAVAS_LEVELS)
    first, base = records[0].offset, records[0].timestamp
    newest = max(record.timestamp for record in records)
    covered = COVERED.pack(codec, last_offset - first, base, newest, -1, -1, -1, len(records))
    length = HEADER_SIZE - PREFIX.size + len(body)
    header = header_with_crc(length, leader_epoch, covered, body)
    (batch,) = scan(PREFIX.pack(first, length) + header[PREFIX.size :] + body)
    return batch


def read_outgoing(outgoing: OutgoingBatch) -> list[PlainRecord]:
    """Return the records of an outgoing batch, each with its source offset.

    Raises:
        CorruptRecordError: It cannot be read.
    """
    decoded = [record for batch in scan(outgoing.data) for record in read_records(batch)]
    if len(decoded) != len(outgoing.offsets):
        raise CorruptRecordError(f"{len(decoded)} records have {len(outgoing.offsets)} offsets")
    return [record._replace(offset=offset) for offset, record in zip(outgoing.offsets, decoded, strict=True)]


def as_gapped_batch(outgoing: OutgoingBatch, covers: int, leader_epoch: int) -> Batch:
    """Return an outgoing batch as one that has its records at their source offsets, up to `covers`.

    Raises:
        CorruptRecordError: It cannot be read.
    """
    return gapped_batch(read_outgoing(outgoing), covers, leader_epoch, outgoing.codec)


def in_format_2(batch: Batch, at_most: int) -> Batch | None:
    """Return a batch of an old format in the present one, with the offsets that it had; None: it has no record.

    Raises:
        CorruptRecordError: It cannot be read, or takes more than `at_most` bytes uncompressed.
    """
    if batch.magic >= 2:
        return batch
    records = list(read_records(batch, at_most))
    return gapped_batch(records, records[-1].offset, batch.leader_epoch) if records else None
