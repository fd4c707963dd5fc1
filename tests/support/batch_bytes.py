"""Record batches written and read byte by byte, without the code under test: what the tests hold it against.

The layout is the message format's own (magic 2, big-endian, zigzag varints)."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aiokafka import codec as codecs
from google_crc32c import value as crc32c
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40

COMPRESS: dict[int, Any] = {
    0: bytes,
    GZIP: codecs.gzip_encode,
    SNAPPY: codecs.snappy_encode,
    LZ4: codecs.lz4_encode,
    ZSTD: codecs.zstd_encode,
}
DECOMPRESS: dict[int, Any] = {
    0: bytes,
    GZIP: codecs.gzip_decode,
    SNAPPY: codecs.snappy_decode,
    LZ4: codecs.lz4_decode,
    ZSTD: codecs.zstd_decode,
}


needs_compiled = pytest.mark.skipif(find_compiled() is None, reason="built without a C compiler")

few_bytes = st.none() | st.binary(max_size=12)
names = st.text(max_size=4) | st.sampled_from(["", "a", "a", "ü"])
times = st.sampled_from([-1, 0]) | st.integers(-(2**40), 2**41)


@st.composite
def record_lists(draw: st.DrawFn) -> list[PlainRecord]:
    """Return records in offset order, with gaps, from an offset on; times before, at and after 1970."""
    offset, content = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 8))):
        headers = tuple(draw(st.lists(st.tuples(names, few_bytes), max_size=3)))
        content.append(PlainRecord(offset, draw(times), draw(few_bytes), draw(few_bytes), headers))
        offset += draw(st.sampled_from([1, 1, 1, 2, 7]))
    return content


def record(
    offset: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = b"k",
    timestamp: int = 1000,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> PlainRecord:
    return PlainRecord(offset, timestamp, key, value, tuple(headers))


def records(first: int, count: int, **more: Any) -> list[PlainRecord]:
    """Return records without a gap, each with a value and a timestamp of its own."""
    return [record(first + i, b"value-%d" % (first + i), timestamp=1000 + first + i, **more) for i in range(count)]


def batch_bytes(
    content: Sequence[PlainRecord],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = 0,
    attributes: int = 0,
    max_timestamp: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    leader_epoch: int = 3,
) -> bytes:
    """Return a batch as a broker's log holds it. `attributes` go on top of the codec; `producer`: id, epoch, base
    sequence."""
    base = content[0].offset if base_offset is None else base_offset
    last = content[-1].offset if last_offset is None else last_offset
    base_timestamp = content[0].timestamp if content else -1
    newest = max((r.timestamp for r in content), default=-1)
    body: bytes = COMPRESS[codec](b"".join(_record(r, base, base_timestamp) for r in content))
    covered = struct.pack(
        ">hiqqqhii",
        attributes | codec,
        last - base,
        base_timestamp,
        newest if max_timestamp is None else max_timestamp,
        *producer,
        len(content),
    )
    covered += body
    head = struct.pack(">qiibI", base, len(covered) + 9, leader_epoch, 2, crc32c(covered))
    return head + covered


def batch(content: Sequence[PlainRecord], **more: Any) -> Batch:
    """Return what `batch_bytes` writes, as the data plane scans it."""
    (scanned,) = scan(batch_bytes(content, **more))
    return scanned


def with_head(good: bytes, position: int, field: str, value: int) -> Batch:
    """Return the batch with another value in its header, where no CRC covers it."""
    raw = bytearray(good)
    struct.pack_into(field, raw, position, value)
    (scanned,) = scan(bytes(raw))
    return scanned


def decoded(data: bytes | memoryview, base_offset: int = 0) -> list[PlainRecord]:
    """Return the records of one magic-2 batch, counted from `base_offset`, with the timestamps that are written in
    them."""
    raw = bytes(data)
    (attributes,) = struct.unpack_from(">h", raw, 21)
    (base_timestamp,) = struct.unpack_from(">q", raw, 27)
    (count,) = struct.unpack_from(">i", raw, 57)
    body = DECOMPRESS[attributes & 7](raw[61:])
    content = list(_read(body, base_offset, base_timestamp))
    assert len(content) == count, "the header counts other records than there are"
    return content


def crc_is_right(data: bytes | memoryview) -> bool:
    raw = bytes(data)
    return bool(struct.unpack_from(">I", raw, 17)[0] == crc32c(raw[21:]))


def as_long(value: int) -> int:
    """Return a number as Java's arithmetic of 64 bits has it."""
    return (value + 2**63) % 2**64 - 2**63


def varint(value: int) -> bytes:
    """Return a number as a varint: zigzag, then seven bits a byte, lowest first."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def _record(r: PlainRecord, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\0" + varint(as_long(r.timestamp - base_timestamp)) + varint(r.offset - base_offset) + _sized(r.key)
    body += _sized(r.value) + varint(len(r.headers))
    for name, value in r.headers:
        body += _sized(name.encode("utf-8", "surrogateescape")) + _sized(value)
    return varint(len(body)) + body


class RecordBytes:
    """A reader of records' bytes that shares nothing with the code under test."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.position = 0

    def number(self) -> int:
        shift = rest = 0
        while True:
            byte = self._body[self.position]
            self.position += 1
            rest |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (rest >> 1) ^ -(rest & 1)

    def sized(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        self.position += length
        return self._body[self.position - length : self.position]


def _read(body: bytes, base_offset: int, base_timestamp: int) -> Iterator[PlainRecord]:
    reader = RecordBytes(body)
    number, sized = reader.number, reader.sized
    while reader.position < len(body):
        length = number()
        end = reader.position + length
        reader.position += 1  # the record's own attributes, unused
        timestamp, offset = as_long(base_timestamp + number()), base_offset + number()
        key, value = sized(), sized()
        headers = tuple(((sized() or b"").decode("utf-8", "surrogateescape"), sized()) for _ in range(number()))
        assert reader.position == end, "a record is as long as it says"
        yield PlainRecord(offset, timestamp, key, value, headers)
