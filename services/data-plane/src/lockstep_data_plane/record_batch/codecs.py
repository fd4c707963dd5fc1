"""The codecs of record batches: their numbers in the attributes, their levels, compression and decompression.

A few bytes may claim to be gigabytes. So the size of the result is bounded, and no memory is allocated ahead of it.
"""

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
from lockstep_state.kafka import batch_codecs

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODECS: Mapping[str, int] = MappingProxyType({name: codec for codec, name in enumerate(batch_codecs.CODEC_NAMES)})
"""The number of each codec, by the names that `compression.type` takes."""

CODEC_NAMES: Mapping[int, str] = MappingProxyType({codec: name for name, codec in CODECS.items()})

INSTEAD_OF_REFUSED = tuple(CODECS[name] for name in batch_codecs.INSTEAD_OF_REFUSED)
"""The numbers of the codecs that replace a refused one, in order of preference."""

UNPACKED_AT_MOST = 128 * 1024 * 1024
"""The largest size of one batch's records, uncompressed, that are read."""

Payload = bytes | memoryview
Decoder = Callable[[Payload, int], Payload]

GZIP_MEMBER = 31
"""The `wbits` of zlib for the largest window inside gzip's frame."""
JAVA_FAST_LZ4 = 9
FAST_LZ4 = 0
LEAST_HIGH_LZ4 = 3
"""The least level of liblz4's high compressor. Java takes that compressor for every number but 9."""

_XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
"""The front of Java's stream of snappy blocks, each with its size in front. Other clients write a single block."""
_BLOCK_SIZE = struct.Struct(">i")
_FED_BYTES = 16 * 1024
_ROOM, _ROOMIER = 1024 * 1024, 8
"""The buffer in which most batches fit uncompressed, and the factor by which the next try is larger."""
_UNTOUCHED = bytes.fromhex("c2b1f07d5e934aa86f1d9b27e4d0387c")
"""The bytes at the end of the buffer. If a failure leaves them in place, a larger buffer would not help."""


@dataclass(frozen=True, slots=True)
class CompressionLevels:
    """The compression levels, as Java's producer counts them in `compression.<codec>.level` (KIP-390).

    The defaults are Java's. Snappy has no levels.
    """

    gzip: int = -1
    lz4: int = JAVA_FAST_LZ4
    zstd: int = 3


JAVAS_LEVELS = CompressionLevels()
HARD_LEVELS = CompressionLevels(gzip=9, lz4=17, zstd=12)
"""The levels for a record that would not fit otherwise. zstd goes on to 22, but a slot must not stop for seconds."""


def decompress(payload: Payload, codec: int, at_most: int = UNPACKED_AT_MOST) -> Payload:
    """Return the bytes that `compress` was given.

    Raises:
        CorruptRecordError: The codec is unknown, the bytes are damaged, or the result exceeds `at_most` bytes.
    """
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
    """Decompress one gzip member or several, in small pieces, because zlib copies what is behind a member."""
    view, position, remaining = memoryview(payload), 0, at_most
    parts: list[bytes] = []
    while position < len(view):
        member = zlib.decompressobj(GZIP_MEMBER)
        while not member.eof:
            piece = view[position : position + _FED_BYTES]
            if not piece:
                raise zlib.error("a gzip stream ends in the middle")
            part = member.decompress(piece, remaining + 1)
            if len(part) > remaining:
                raise _too_large(at_most)
            position += len(piece) - len(member.unused_data)
            remaining -= len(part)
            parts.append(part)
        while position < len(view) and not view[position]:
            position += 1
    return b"".join(parts)


def _read_snappy(payload: Payload, at_most: int) -> bytes:
    view, remaining = memoryview(payload), at_most
    parts: list[Any] = []
    for block in _snappy_blocks(view):
        # The decoder allocates at once what the block says it needs. A refused allocation ends the process.
        remaining -= cramjam.snappy.decompress_raw_len(block)
        if remaining < 0:
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
    """Return a decoder made of one that fills a buffer and fails if the buffer is too small."""

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
    """Return the bytes behind a batch's header, in the frame that every Kafka client reads.

    Raises ValueError for an unknown codec.
    """
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
