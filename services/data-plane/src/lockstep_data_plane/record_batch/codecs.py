"""The codecs of record batches: the number each has in the attributes, and how hard each compresses.

A few bytes may say that they are gigabytes. So what comes out is bounded, and is not allocated before it is there."""

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import cramjam
from aiokafka import codec as codecs

from lockstep_data_plane.record_batch.layout import CorruptRecordError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODECS: Mapping[str, int] = MappingProxyType({"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD})
"""By the names that `compression.type` takes."""

CODEC_NAMES: Mapping[int, str] = MappingProxyType({codec: name for name, codec in CODECS.items()})

INSTEAD_OF_REFUSED = (LZ4, GZIP, SNAPPY, ZSTD, NONE)
"""What a batch is compressed with if the target refuses its codec: the first that it does not refuse. LZ4 costs least.
Services that take few codecs take gzip, and everything takes uncompressed batches."""

UNPACKED_AT_MOST = 128 * 1024 * 1024
"""How many bytes the records of one batch may take, uncompressed, if they have to be read."""

Payload = bytes | memoryview
Decoder = Callable[[Payload, int], Payload]

GZIP_MEMBER = 31
"""zlib's `wbits` for the largest window inside gzip's frame."""
JAVA_FAST_LZ4 = 9
FAST_LZ4 = 0
LEAST_HIGH_LZ4 = 3
"""Below it liblz4's frames are fast ones, where Java takes the high compressor for every number but 9."""

_XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
"""The front of Java's stream of snappy blocks, each with its size in front. Other clients write one block alone."""
_BLOCK_SIZE = struct.Struct(">i")
_FED_BYTES = 16 * 1024
_ROOM, _ROOMIER = 1024 * 1024, 8
"""Most batches come out within the first; where one does not, the next try has so many times the room."""
_UNTOUCHED = bytes.fromhex("c2b1f07d5e934aa86f1d9b27e4d0387c")
"""It is put at the end of the room. If it is still there after a failure, more room would not have helped."""


@dataclass(frozen=True, slots=True)
class CompressionLevels:
    """How hard to compress, counted as Java's producer counts in `compression.<codec>.level` (KIP-390); the defaults
    are Java's. Snappy has no levels."""

    gzip: int = -1
    lz4: int = JAVA_FAST_LZ4
    zstd: int = 3


JAVAS_LEVELS = CompressionLevels()
HARD_LEVELS = CompressionLevels(gzip=9, lz4=17, zstd=12)
"""For a record that would not fit otherwise. zstd goes on to 22, but a slot must not stand still for seconds."""


def decompress(payload: Payload, codec: int, at_most: int = UNPACKED_AT_MOST) -> Payload:
    """Return the bytes that `compress` was given. Raises CorruptRecordError for a codec that there is not, for bytes
    that it did not make, and where more than `at_most` bytes would come out."""
    if codec == NONE:
        return payload
    decode = _DECODERS.get(codec)
    if decode is None:
        raise CorruptRecordError(f"its records cannot be decompressed (no codec has the number {codec})")
    try:
        return decode(payload, at_most)
    except (cramjam.DecompressionError, struct.error, zlib.error) as exc:
        raise CorruptRecordError(f"its records cannot be decompressed into {at_most} bytes ({exc})") from exc


def _too_large(at_most: int) -> CorruptRecordError:
    return CorruptRecordError(f"its records cannot be decompressed into {at_most} bytes (there are more)")


def _read_gzip(payload: Payload, at_most: int) -> bytes:
    """Uncompress one gzip member or several. They are fed in small pieces, because zlib copies what is behind a
    member."""
    view, position, left = memoryview(payload), 0, at_most
    parts: list[bytes] = []
    while position < len(view):
        member = zlib.decompressobj(GZIP_MEMBER)
        while not member.eof:
            piece = view[position : position + _FED_BYTES]
            if not piece:
                raise zlib.error("a gzip stream ends in the middle")
            part = member.decompress(piece, left + 1)
            if len(part) > left:
                raise _too_large(at_most)
            position += len(piece) - len(member.unused_data)
            left -= len(part)
            parts.append(part)
        while position < len(view) and not view[position]:
            position += 1
    return b"".join(parts)


def _read_snappy(payload: Payload, at_most: int) -> bytes:
    view, left = memoryview(payload), at_most
    parts: list[Any] = []
    for block in _snappy_blocks(view):
        # The decoder allocates at once what the block says it needs. A refused allocation ends the process.
        left -= cramjam.snappy.decompress_raw_len(block)
        if left < 0:
            raise _too_large(at_most)
        parts.append(cramjam.snappy.decompress_raw(block))
    return b"".join(parts)


def _snappy_blocks(view: memoryview) -> list[memoryview]:
    if view[: len(_XERIAL)] != _XERIAL:
        return [view]
    blocks, position = [], len(_XERIAL)
    while position < len(view):
        (size,) = _BLOCK_SIZE.unpack_from(view, position)
        position += _BLOCK_SIZE.size
        if not 0 <= size <= len(view) - position:
            raise struct.error(f"a block of {size} bytes where {len(view) - position} are left")
        blocks.append(view[position : position + size])
        position += size
    return blocks


@cache
def _kept_room() -> memoryview:
    return memoryview(bytearray(_ROOM))


def _reader_into(decompress_into: Callable[[Payload, Any], int]) -> Decoder:
    """Return a decoder that uses one which fills a buffer, and fails where the buffer does not suffice."""

    def decode(payload: Payload, at_most: int) -> Payload:
        room = max(_ROOM, _ROOMIER * len(payload))
        while True:
            room = min(room, at_most)
            kept = room <= _ROOM
            buffer = _kept_room()[:room] if kept else memoryview(bytearray(room))
            tail = buffer[-len(_UNTOUCHED) :]
            tail[:] = _UNTOUCHED[: len(tail)]
            try:
                unpacked = buffer[: decompress_into(payload, buffer)]
            except cramjam.DecompressionError:
                if room == at_most or tail == _UNTOUCHED:
                    raise
                room *= _ROOMIER
            else:
                return bytes(unpacked) if kept else unpacked

    return decode


_DECODERS: Mapping[int, Decoder] = MappingProxyType(
    {
        GZIP: _read_gzip,
        SNAPPY: _read_snappy,
        LZ4: _reader_into(cramjam.lz4.decompress_into),
        ZSTD: _reader_into(cramjam.zstd.decompress_into),
    }
)


def compress(payload: bytes | memoryview, codec: int, levels: CompressionLevels) -> bytes:
    """The bytes behind a batch's header in the frame that every Kafka client reads. Raises ValueError for a codec that
    there is not."""
    if codec == GZIP:
        return zlib.compress(payload, levels.gzip, GZIP_MEMBER)
    if codec == SNAPPY:
        return bytes(codecs.snappy_encode(payload))
    if codec == LZ4:
        # Java's default, 9, means the fast compressor; liblz4's own 9 takes fifteen times as long for 2 %.
        level = FAST_LZ4 if levels.lz4 == JAVA_FAST_LZ4 else max(levels.lz4, LEAST_HIGH_LZ4)
        # Brokers do not read linked blocks (KIP-57).
        compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(payload)
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(payload, level=levels.zstd))
    raise ValueError(f"no codec has the number {codec}")
