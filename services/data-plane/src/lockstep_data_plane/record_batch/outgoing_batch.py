"""Outgoing batches and their stamp: producer id, epoch, sequence and a new CRC (`architecture.md` §5: "Stamp")."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    COVERED,
    CRC_FROM,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    UNCOVERED,
    Batch,
)
from lockstep_state.offsets import SEQUENCES

EPOCHS = 32_767
"""The largest producer epoch (int16)."""

ATTRIBUTES_AT = 22
"""The index of the lower byte of a batch's attributes."""

KEPT_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME
"""The attributes that a copy keeps: codec and timestamp type.

With the source's delete horizon (0x40), the target's cleaner would drop tombstones before its consumers saw them. The
broker keeps unknown bits (`kafka-wire.md` §1.1, 1.2).
"""


@dataclass(slots=True)
class OutgoingBatch:
    """A batch as it is appended, with the upstream offsets that it covers.

    `data` is one magic-2 batch whose offsets have no gaps from its base. Record i came from upstream offset
    `offsets[i]`. When the batch is durable on the target, every upstream offset up to `covers` is decided.
    """

    data: bytes | memoryview
    count: int
    offsets: Sequence[int]
    covers: int
    base_timestamp: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int = -1
    """The producer id of the flow for this batch, set when it is queued."""
    to: int = -1
    """The target's partition, if records are spread over several; -1: the one of the same number."""
    batches: int = 1
    """The number of batches in `data`. More than one are a group, which is merged before it is sent."""

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def codec(self) -> int:
        """Return the codec of the records, from the header's attributes."""
        return self.data[ATTRIBUTES_AT] & CODEC_MASK


def as_outgoing(batch: Batch) -> OutgoingBatch:
    """Return a batch that passes unchanged, or a group, as an outgoing batch."""
    first, count = batch.base_offset, batch.record_count
    return OutgoingBatch(
        batch.data,
        count,
        range(first, first + count),
        first + batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.leader_epoch,
        batches=batch.batches,
    )


def add_sequence(sequence: int, count: int) -> int:
    """Return the sequence `count` records further on. Sequences wrap around."""
    return (sequence + count) % SEQUENCES


class StampedBatch:
    """A batch as it is produced: its 61 bytes of new header, and the records in the fetch response's own memory.

    At hundreds of megabytes a second each copy of the records counts.
    """

    __slots__ = ("parts",)

    def __init__(self, header: bytes, records: memoryview) -> None:
        self.parts = header, records

    def __len__(self) -> int:
        return HEADER_SIZE + len(self.parts[1])

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


def expected_crc(batch: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C that the batch should have."""
    return int(crc32c(memoryview(batch)[CRC_FROM:]))


def header_with_crc(length: int, leader_epoch: int, covered: bytes, records: bytes | memoryview) -> bytes:
    """Return the header of a batch that begins at offset 0, with the CRC of its covered part and the records."""
    return UNCOVERED.pack(0, length, leader_epoch, 2, crc32c(records, crc32c(covered))) + covered


def stamp(
    batch: bytes | memoryview, producer_id: int, producer_epoch: int, base_sequence: int, *, transactional: bool = False
) -> StampedBatch:
    """Return the batch as it is produced, with a new header.

    It has base offset 0, this producer, the kept attributes and, in a transaction, the transactional bit. The CRC of
    the batch must be right, because compiled code computes the new one without reading the records.
    """
    compiled = find_compiled()
    make_header = stamped_header if compiled is None else compiled.stamp
    header = make_header(batch, producer_id, producer_epoch, base_sequence, transactional)
    return StampedBatch(header, memoryview(batch)[HEADER_SIZE:])


def stamped_header(
    batch: bytes | memoryview, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool
) -> bytes:
    """Return the new header, in plain Python."""
    _, length, leader_epoch, _, _, kept, last, first_ms, largest_ms, _, _, _, count = HEADER.unpack_from(batch)
    kept &= KEPT_ATTRIBUTES
    if transactional:
        kept |= TRANSACTIONAL
    covered = COVERED.pack(kept, last, first_ms, largest_ms, producer_id, producer_epoch, base_sequence, count)
    return header_with_crc(length, leader_epoch, covered, memoryview(batch)[HEADER_SIZE:])
