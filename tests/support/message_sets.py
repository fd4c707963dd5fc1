"""Message sets of format 0 and 1 written byte by byte, as segments from before Kafka 0.11 hold them."""

import struct
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from lockstep_data_plane.record_batch.layout import Batch, scan
from tests.support.batch_bytes import COMPRESS, LZ4


class Message(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = -1


def message(magic: int, m: Message, attributes: int = 0) -> bytes:
    """One message with its offset and size in front."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", m.timestamp) if magic else b"")
    for part in (m.key, m.value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", m.offset, len(body) + 4, crc32(body)) + body


def message_set(magic: int, content: Sequence[Message], codec: int = 0, *, append_time: int | None = None) -> bytes:
    """Return a set as a broker's log holds it: uncompressed one message after the other, else a wrapper around them."""
    attributes = 0 if append_time is None else 0x08
    if not codec:
        return b"".join(message(magic, m, attributes) for m in content)
    first = 0 if magic == 0 else content[0].offset
    inside = b"".join(message(magic, m._replace(offset=m.offset - first)) for m in content)
    frame = COMPRESS[codec](inside)
    if magic == 0 and codec == LZ4:
        frame = with_the_wrong_checksum(frame)
    newest = max(m.timestamp for m in content) if append_time is None else append_time
    return message(magic, Message(content[-1].offset, None, frame, newest), attributes | codec)


def with_the_wrong_checksum(frame: bytes) -> bytes:
    """Return an lz4 frame as clients before 0.10 wrote it: they took the checksum over four bytes too many
    (KAFKA-3160)."""
    return frame[:6] + bytes([frame[6] ^ 0x5A]) + frame[7:]


def sets(data: bytes) -> list[Batch]:
    return list(scan(data))


def stored_lz4(payload: bytes) -> bytes:
    """Return a frame whose one block is not compressed: what a client writes when compression would not help."""
    return (
        struct.pack("<I", 0x184D2204) + b"\x60\x40\0" + struct.pack("<I", len(payload) | 1 << 31) + payload + bytes(4)
    )
