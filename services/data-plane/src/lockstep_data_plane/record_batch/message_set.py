"""The messages of a set of format 0 or 1, which segments from before Kafka 0.11 still have (KIP-31, KIP-32).

A compressed set is one message, the wrapper, whose value holds the others. The wrapper has the offset of the last one
inside. Inside, format 0 counts from the beginning of the log and format 1 from the beginning of the set (KIP-31).
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import cramjam

from lockstep_data_plane.record_batch.codecs import LZ4, NONE, Payload, decompress
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    LARGEST_OFFSET,
    LOG_APPEND_TIME,
    Batch,
    CorruptRecordError,
)

LZ4_FRAME = 0x184D2204
CONTENT_SIZE, BLOCK_CHECKSUMS = 0x08, 0x10
STORED = 0x80000000
MOST_IN_A_BLOCK = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}

_CRC, _CRC_AT = struct.Struct(">I"), 12
_SIZE = struct.Struct(">i")
_FRONT = struct.Struct(">qiIbb")
"""The first fields of a message: offset, size of what follows, CRC, magic, attributes."""
_SIZED_FROM = 12
_TIMESTAMP = struct.Struct(">q")
NO_TIME = -1


class MessageSet(NamedTuple):
    """The messages of a set, out of their wrapper.

    Attributes:
        messages: Their bytes, one message behind the other.
        append_time: The timestamp of all of them; None: each has its own.
        last_offset: The offset of the last one, if offsets count from the beginning of the set; -1: they count from the
            beginning of the log.
    """

    messages: Payload
    append_time: int | None = None
    last_offset: int = -1


class Message(NamedTuple):
    """A message as it is written."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None


def unpack_set(batch: Batch, at_most: int) -> MessageSet:
    """Return the messages of a set.

    Raises CorruptRecordError if the set is damaged, or has more than `at_most` bytes uncompressed.
    """
    if _CRC.unpack_from(batch.data, _CRC_AT)[0] != zlib.crc32(batch.data[_CRC_AT + _CRC.size :]):
        raise CorruptRecordError("its CRC does not match its bytes")
    codec = batch.attributes & CODEC_MASK
    if codec == NONE:
        return MessageSet(batch.data)
    wrapper = next(_parse_messages(batch.data))
    if wrapper.value is None:
        raise CorruptRecordError("its wrapper is empty")
    is_old_lz4 = batch.magic == 0 and codec == LZ4
    messages = _decompress_old_lz4(wrapper.value, at_most) if is_old_lz4 else decompress(wrapper.value, codec, at_most)
    append_time = wrapper.timestamp if batch.attributes & LOG_APPEND_TIME else None
    return MessageSet(messages, append_time, batch.base_offset if batch.magic else -1)


def read_messages(batch: Batch, at_most: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield offset, timestamp, key and value of each message of a set.

    Raises as `unpack_set`, also if an offset cannot be right.
    """
    unpacked = unpack_set(batch, at_most)
    messages = list(_parse_messages(unpacked.messages))
    if not messages:
        raise CorruptRecordError("its wrapper is empty")
    # Sets that were written with offsets from the beginning of the log keep them, as for Java's consumer.
    shift = max(0, unpacked.last_offset - messages[-1].offset) if unpacked.last_offset >= 0 else 0
    before = -1
    for offset, magic, attributes, timestamp, key, value in messages:
        if unpacked.messages is not batch.data and attributes & CODEC_MASK:
            raise CorruptRecordError(f"the message at offset {offset} is double-compressed")
        if magic != batch.magic:
            raise CorruptRecordError(f"a message of format {magic} is in a set of format {batch.magic}")
        if not before < offset + shift <= LARGEST_OFFSET:
            raise CorruptRecordError(f"the offset {offset + shift} comes behind {before}")
        before = offset + shift
        time = timestamp if unpacked.append_time is None else unpacked.append_time
        yield before, time, None if key is None else bytes(key), None if value is None else bytes(value)


def _parse_messages(data: Payload) -> Iterator[Message]:
    """Yield the messages one behind the other. Raises CorruptRecordError if one is incomplete."""
    view, position = memoryview(data), 0
    while position < len(view):
        try:
            offset, size, _, magic, attributes = _FRONT.unpack_from(view, position)
            message = view[position + _SIZED_FROM : position + _SIZED_FROM + size]
            if size < 0 or len(message) != size or magic not in (0, 1):
                raise CorruptRecordError(f"a message of format {magic} says it is {size} bytes long")
            begin = _FRONT.size - _SIZED_FROM
            timestamp = _TIMESTAMP.unpack_from(message, begin)[0] if magic else NO_TIME
            key, begin = _part(message, begin + (_TIMESTAMP.size if magic else 0))
            value, _ = _part(message, begin)
        except struct.error as exc:
            raise CorruptRecordError("a message ends in the middle") from exc
        yield Message(offset, magic, attributes, timestamp, key, value)
        position += _SIZED_FROM + size


def _part(message: memoryview, begin: int) -> tuple[memoryview | None, int]:
    """Return the key or the value at the index, and the index at which it ends."""
    (size,) = _SIZE.unpack_from(message, begin)
    begin += _SIZE.size
    if size == -1:
        return None, begin
    if not 0 <= size <= len(message) - begin:
        raise CorruptRecordError(f"a key or a value says it is {size} bytes long")
    return message[begin : begin + size], begin + size


def _decompress_old_lz4(frame: bytes | memoryview, at_most: int) -> bytes:
    """Return the content of an LZ4 frame of format 0. Raises CorruptRecordError.

    Its header has a wrong checksum in every such frame (KAFKA-3160), so no decoder of frames takes it. This reads its
    blocks instead, which never refer to each other.
    """
    try:
        return _read_blocks(frame, at_most)
    except (struct.error, cramjam.DecompressionError) as exc:
        raise CorruptRecordError(f"its records cannot be decompressed into {at_most} bytes ({exc})") from exc


def _read_blocks(frame: bytes | memoryview, at_most: int) -> bytes:
    magic, flags, block_size = struct.unpack_from("<IBB", frame)
    if magic != LZ4_FRAME:
        raise CorruptRecordError("its value is no lz4 frame")
    room = bytearray(MOST_IN_A_BLOCK.get(block_size >> 4 & 7, 0))
    position = 7 + (8 if flags & CONTENT_SIZE else 0)
    out = bytearray()
    while True:
        (size,) = struct.unpack_from("<I", frame, position)
        position += 4
        if size == 0:
            return bytes(out)
        stored, size = size & STORED, size & ~STORED
        block = frame[position : position + size]
        if stored:
            out += block
        else:
            out += room[: cramjam.lz4.decompress_block_into(block, room, output_len=len(room))]
        if len(out) > at_most:
            raise struct.error("there are more")
        position += size + (4 if flags & BLOCK_CHECKSUMS else 0)
