"""Records of format 2 in plain Python: those that compiled code does not read, and all of them without it.

It reads thirty times slower than compiled code. It takes what Java's consumer takes, and refuses what that refuses.
Header names that are not UTF-8 become texts with surrogates (PEP 383), and the same bytes again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lockstep_data_plane.record_batch.layout import (
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    PREFIX,
    Batch,
    CorruptRecordError,
)
from lockstep_state.codecs.varint import encode_zigzag

NAMES = ("utf-8", "surrogateescape")
INT, LONG = 32, 64
"""The sizes of Java's numbers in bits."""


class PlainRecord(NamedTuple):
    """A record as a consumer sees it. `timestamp` is in milliseconds; -1: none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def wrap_integer(number: int) -> int:
    """Return the number as Java's `long` has it: the largest number of 64 bits is followed by the smallest."""
    half = 1 << LONG - 1
    return (number + half & (half << 1) - 1) - half


def read_plain_records(batch: Batch, unpacked: bytes | memoryview) -> Iterator[PlainRecord]:
    """Yield the records of a batch whose CRC is right. `unpacked` has them uncompressed. Raises CorruptRecordError."""
    body, before = _RecordReader(bytes(unpacked)), -1
    if batch.record_count < 0:
        raise CorruptRecordError(f"it says that it has {batch.record_count} records")
    for _ in range(batch.record_count):
        ends = body.number(INT) + body.index
        body.index += 1  # its attributes, which have no meaning yet
        timestamp = wrap_integer(batch.base_timestamp + body.number(LONG))
        if batch.attributes & LOG_APPEND_TIME:
            timestamp = batch.max_timestamp
        delta = body.number(INT)
        if not before < delta <= batch.last_offset_delta:
            raise CorruptRecordError(f"the record {delta} behind its first offset comes behind {before}, or its last")
        before = delta
        key, value = body.sized(), body.sized()
        headers = tuple((body.name(), body.sized()) for _ in range(body.count()))
        if body.index != ends:
            raise CorruptRecordError("a record is not as long as it says")
        yield PlainRecord(batch.base_offset + delta, timestamp, key, value, headers)
    if body.index != len(body.data):
        raise CorruptRecordError(f"{len(body.data) - body.index} bytes are behind its last record")


class _RecordReader:
    """A reader of the fields of records, one after the other. Each method raises CorruptRecordError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.index = 0

    def number(self, bits: int) -> int:
        shift = value = 0
        while True:
            if self.index >= len(self.data) or shift >= bits:
                raise CorruptRecordError("its records end in the middle of a number, or a number does not end")
            byte = self.data[self.index]
            self.index += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                value &= (1 << bits) - 1
                return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes | None:
        length = self.number(INT)
        return None if length < 0 else self._pass(length)

    def count(self) -> int:
        """Return the number of headers."""
        count = self.number(INT)
        if not 0 <= count <= len(self.data) - self.index:
            raise CorruptRecordError(f"a record says that it has {count} headers")
        return count

    def name(self) -> str:
        length = self.number(INT)
        if length < 0:
            raise CorruptRecordError("a header has no name")
        return self._pass(length).decode(*NAMES)

    def _pass(self, length: int) -> bytes:
        if self.index + length > len(self.data):
            raise CorruptRecordError("its records end in the middle")
        self.index += length
        return self.data[self.index - length : self.index]


def encode(records: Sequence[PlainRecord]) -> bytearray:
    """Return the records as an uncompressed batch without a producer and without a CRC, with offsets from 0 on."""
    base = records[0].timestamp
    body = b"".join(_encoded(delta, base, record) for delta, record in enumerate(records))
    return _unstamped(body, len(records), base, max(record.timestamp for record in records))


def _unstamped(body: bytes, count: int, base: int, newest: int) -> bytearray:
    """Return a batch header in front of encoded records, whose timestamps count from `base`."""
    length = HEADER_SIZE - PREFIX.size + len(body)
    return bytearray(HEADER.pack(0, length, -1, 2, 0, 0, count - 1, base, newest, -1, -1, -1, count) + body)


def _encoded(delta: int, base: int, record: PlainRecord) -> bytes:
    times = encode_zigzag(wrap_integer(record.timestamp - base))
    body = b"\0" + times + encode_zigzag(delta) + with_length(record.key) + with_length(record.value)
    body += encode_zigzag(len(record.headers))
    body += b"".join(with_length(name.encode(*NAMES)) + with_length(value) for name, value in record.headers)
    return encode_zigzag(len(body)) + body


def with_length(value: bytes | None) -> bytes:
    """Return bytes with their length in front, as records have them; None: the length -1."""
    return encode_zigzag(-1) if value is None else encode_zigzag(len(value)) + value


def encode_at_offsets(records: Sequence[PlainRecord]) -> bytes:
    """Return the records of a batch, uncompressed, each at its own offset behind the first one's."""
    first, base = records[0].offset, records[0].timestamp
    return b"".join(_encoded(record.offset - first, base, record) for record in records)
