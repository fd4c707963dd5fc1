"""The messages inside a compressed message set of format 0 or 1, which segments from before Kafka 0.11 still hold.

A compressed set is one message, the wrapper, whose value holds the others. The wrapper has the offset of the last one
inside. Inside, format 0 counts from the beginning of the log and format 1 from the beginning of the set (KIP-31)."""

import struct
import zlib

import cramjam

from lockstep_data_plane.record_batch.layout import Batch

LZ4_FRAME = 0x184D2204
CONTENT_SIZE, BLOCK_CHECKSUMS = 0x08, 0x10
STORED = 0x80000000
MOST_IN_A_BLOCK = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}

_SIZE = struct.Struct(">i")
_CRC = struct.Struct(">I")
_KEY_AT = {0: 18, 1: 26}
_TIMESTAMP = struct.Struct(">q")
_TIMESTAMP_AT = 18


def is_intact(batch: Batch) -> bool:
    """Whether the CRC of the message, or of the wrapper, is right."""
    return bool(_CRC.unpack_from(batch.data, 12)[0] == zlib.crc32(batch.data[16:]))


def wrapped_value(batch: Batch) -> memoryview:
    """The value of the wrapper: the compressed messages. Raises struct.error where the message ends too early."""
    begin, end = _value_bounds(batch)
    return batch.data[begin:end]


def has_whole_value(batch: Batch) -> bool:
    """Whether the value of the wrapper is as long as it says, and the last thing in it. Raises as `wrapped_value`."""
    begin, end = _value_bounds(batch)
    return begin <= end == len(batch.data)


def _value_bounds(batch: Batch) -> tuple[int, int]:
    at = _KEY_AT[batch.magic]
    (key_size,) = _SIZE.unpack_from(batch.data, at)
    at += _SIZE.size + max(0, key_size)
    (size,) = _SIZE.unpack_from(batch.data, at)
    return at + _SIZE.size, at + _SIZE.size + size


def wrapper_timestamp(batch: Batch) -> int:
    """The time of the wrapper; -1 in format 0, which has none."""
    return int(_TIMESTAMP.unpack_from(batch.data, _TIMESTAMP_AT)[0]) if batch.magic else -1


def decompress_old_lz4(frame: bytes | memoryview) -> bytes:
    """The content of an lz4 frame of format 0. Its header has a checksum that is wrong in every such frame
    (KAFKA-3160), so no decoder of frames takes it. This function reads its blocks instead. They never refer to each
    other."""
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
