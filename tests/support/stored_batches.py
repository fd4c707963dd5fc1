"""Record batches in a request to append, as a broker that is not like Kafka takes them."""

import struct
from collections.abc import Iterator

from google_crc32c import value as crc32c

CRC, COVERED, ATTRIBUTES, PRODUCER = 17, 21, 21, 43
CODEC, TRANSACTIONAL = 0x07, 0x10
NO_PRODUCER = struct.pack(">qhi", -1, -1, -1)
"""Producer id, epoch and base sequence of a batch without a producer."""


def codecs_of(records: bytes) -> list[int]:
    """Return the codec of each batch."""
    return [_attributes(records, start) & CODEC for start, _ in _batches(records)]


def without_producer(records: bytes, *, in_transactions: bool = False) -> bytes:
    """Return the batches without producer id, epoch and sequence. Those of transactions stay, or become plain ones."""
    changed = bytearray(records)
    for start, end in _batches(records):
        attributes = _attributes(records, start)
        if in_transactions or not attributes & TRANSACTIONAL:
            struct.pack_into(">H", changed, start + ATTRIBUTES, attributes & ~TRANSACTIONAL)
            changed[start + PRODUCER : start + PRODUCER + len(NO_PRODUCER)] = NO_PRODUCER
            struct.pack_into(">I", changed, start + CRC, crc32c(bytes(changed[start + COVERED : end])))
    return bytes(changed)


def with_wrong_crc(records: bytes) -> bytes:
    """Return the batches so that no broker takes them."""
    changed = bytearray(records)
    for start, _ in _batches(records):
        changed[start + CRC] ^= 0xFF
    return bytes(changed)


def _attributes(records: bytes, start: int) -> int:
    return int.from_bytes(records[start + ATTRIBUTES : start + ATTRIBUTES + 2])


def _batches(records: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each batch begins and ends."""
    start = 0
    while start < len(records):
        end = start + 12 + int.from_bytes(records[start + 8 : start + 12])
        yield start, end
        start = end
