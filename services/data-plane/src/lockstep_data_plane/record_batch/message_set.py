"""Message sets of format 0 and 1, as segments from before Kafka 0.11 still hold them (KIP-31, KIP-32).

A compressed set is one message, the wrapper, whose value holds the others. The wrapper bears the offset of the last one
inside; inside, format 0 counts from the beginning of the log and format 1 from the beginning of the set."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import cramjam
from aiokafka.errors import CorruptRecordException
from aiokafka.record.legacy_records import LegacyRecordBatch

from lockstep_data_plane.record_batch.codecs import LZ4
from lockstep_data_plane.record_batch.layout import CODEC_MASK, Batch, scan

LZ4_FRAME = 0x184D2204
CONTENT_SIZE, BLOCK_CHECKSUMS = 0x08, 0x10
STORED = 0x80000000
MOST_IN_A_BLOCK = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}


def messages(batch: Batch) -> Iterator[Any]:
    """The messages of a set, as aiokafka's records: `offset`, `timestamp` (None in format 0), `key`, `value`, no
    `headers`. Raises CorruptRecordException for a wrong CRC, ValueError and AssertionError for bytes that are no
    messages, and what the codecs raise."""
    data = bytes(batch.data)
    if struct.unpack_from(">I", data, 12)[0] != crc32(data[16:]):
        raise CorruptRecordException("its CRC does not match its bytes")
    if batch.magic == 0 and batch.attributes & CODEC_MASK == LZ4:
        # aiokafka does not read it; once out of its frame, each message is a set of its own.
        for inner in scan(_old_lz4(_value(data))):
            yield from LegacyRecordBatch(bytes(inner.data), 0)
        return
    yield from LegacyRecordBatch(data, batch.magic)


def _value(data: bytes) -> bytes:
    """The value of a format 0 message."""
    (key_size,) = struct.unpack_from(">i", data, 18)
    at = 22 + max(0, key_size)
    (size,) = struct.unpack_from(">i", data, at)
    return data[at + 4 : at + 4 + size]


def _old_lz4(frame: bytes) -> bytes:
    """What an lz4 frame of format 0 holds. Its header bears a checksum that is wrong in every such frame (KAFKA-3160),
    so no decoder of frames takes it: its blocks are taken out here. They never refer to each other."""
    magic, flags, block_size = struct.unpack_from("<IBB", frame)
    if magic != LZ4_FRAME:
        raise ValueError("its value is no lz4 frame")
    room = bytearray(MOST_IN_A_BLOCK.get(block_size >> 4 & 7, 0))
    at = 7 + (8 if flags & CONTENT_SIZE else 0)
    out = bytearray()
    while True:
        (size,) = struct.unpack_from("<I", frame, at)
        at += 4
        if size == 0:
            return bytes(out)
        stored, size = size & STORED, size & ~STORED
        block = frame[at : at + size]
        if stored:
            out += block
        else:
            out += room[: cramjam.lz4.decompress_block_into(block, room, output_len=len(room))]
        at += size + (4 if flags & BLOCK_CHECKSUMS else 0)
