"""The codecs of record batches: the number each has in the attributes, and how hard each compresses."""

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import cramjam
from aiokafka import codec as codecs
from aiokafka.errors import UnsupportedCodecError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODECS: Mapping[str, int] = MappingProxyType({"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD})
"""By the names that `compression.type` takes."""

UNREADABLE = (
    cramjam.DecompressionError,
    UnsupportedCodecError,
    struct.error,
    zlib.error,
    OSError,
    EOFError,
    RuntimeError,
    AssertionError,  # a compressed set inside a compressed set
)
"""What aiokafka and its codecs raise for bytes that do not decompress."""

_DECODERS: Mapping[int, Callable[[bytes | memoryview], bytes]] = MappingProxyType(
    {GZIP: codecs.gzip_decode, SNAPPY: codecs.snappy_decode, LZ4: codecs.lz4_decode, ZSTD: codecs.zstd_decode}
)

GZIP_MEMBER = 31
"""zlib's `wbits` for the largest window inside gzip's frame."""
JAVA_FAST_LZ4 = 9
FAST_LZ4 = 0
LEAST_HIGH_LZ4 = 3
"""Below it liblz4's frames are fast ones, where Java takes the high compressor for every number but 9."""


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


def decompress(payload: bytes | memoryview, codec: int) -> bytes | memoryview:
    """The bytes that `compress` was given. Raises KeyError for a codec that there is not, and `UNREADABLE`."""
    return payload if codec == NONE else _DECODERS[codec](payload)


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
