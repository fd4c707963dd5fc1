"""Records of format 2 in plain Python, for the few that aiokafka's compiled code does not take: header names that are
not UTF-8. Brokers keep such names as they are; here they are texts with surrogates (PEP 383), and become the same bytes
again. Reading is thirty times slower than compiled, so only these records use it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiokafka.errors import CorruptRecordException

from lockstep_data_plane.record_batch.codecs import decompress
from lockstep_data_plane.record_batch.layout import CODEC_MASK, HEADER, HEADER_SIZE, LOG_APPEND_TIME, PREFIX, Batch
from lockstep_data_plane.record_batch.varint import zigzag

NAMES = ("utf-8", "surrogateescape")


class PlainRecord(NamedTuple):
    """One record as a consumer sees it. `timestamp` in ms; -1: none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def read_plain_records(batch: Batch) -> Iterator[PlainRecord]:
    """The records of a batch that a CRC has vouched for. Raises CorruptRecordException, and what the codecs raise."""
    body = _RecordReader(bytes(decompress(batch.data[HEADER_SIZE:], batch.attributes & CODEC_MASK)))
    for _ in range(batch.record_count):
        body.number()  # the record's length
        body.at += 1  # its attributes, which have no meaning yet
        timestamp = batch.base_timestamp + body.number()
        if batch.attributes & LOG_APPEND_TIME:
            timestamp = batch.max_timestamp
        offset = batch.base_offset + body.number()
        key, value = body.sized(), body.sized()
        headers = tuple((body.name(), body.sized()) for _ in range(body.number()))
        yield PlainRecord(offset, timestamp, key, value, headers)


class _RecordReader:
    """Reads from one record to the next."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        shift = rest = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise CorruptRecordException("its records end in the middle")
            byte = self.data[self.at]
            self.at += 1
            rest |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (rest >> 1) ^ -(rest & 1)

    def sized(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        if self.at + length > len(self.data):
            raise CorruptRecordException("its records end in the middle")
        self.at += length
        return self.data[self.at - length : self.at]

    def name(self) -> str:
        return (self.sized() or b"").decode(*NAMES)


def encode(records: Sequence[PlainRecord]) -> bytearray:
    """An uncompressed batch without a producer, with offsets from 0 on and no CRC yet."""
    base = records[0].timestamp
    body = b"".join(_encoded(delta, base, record) for delta, record in enumerate(records))
    return _unstamped(body, len(records), base, max(record.timestamp for record in records))


def _unstamped(body: bytes, count: int, base: int, newest: int) -> bytearray:
    """So many uncompressed records, their timestamps counted from `base`, as a batch without a producer and without a
    CRC yet."""
    length = HEADER_SIZE - PREFIX.size + len(body)
    return bytearray(HEADER.pack(0, length, -1, 2, 0, 0, count - 1, base, newest, -1, -1, -1, count) + body)


def _encoded(delta: int, base: int, record: PlainRecord) -> bytes:
    body = b"\0" + zigzag(record.timestamp - base) + zigzag(delta) + _sized(record.key) + _sized(record.value)
    body += zigzag(len(record.headers))
    body += b"".join(_sized(name.encode(*NAMES)) + _sized(value) for name, value in record.headers)
    return zigzag(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return zigzag(-1) if value is None else zigzag(len(value)) + value
