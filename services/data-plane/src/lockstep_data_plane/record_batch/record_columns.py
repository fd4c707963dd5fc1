"""Record batches as columns in Arrow's memory layout, and rows of such columns as the records of one batch.

Only buffers are made and read here: the package of Arrow is not needed. Compiled code does both, and finds the rows of
offsets. Without it, and for records in a form that no encoder gives them, plain Python does the same, slower.

A column that nothing has made anew is written from the record's own bytes.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lockstep_data_plane.record_batch import pure_python_codec
from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.codecs import UNPACKED_AT_MOST, decompress
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    CRC_FROM,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    Batch,
    CorruptRecordError,
)
from lockstep_data_plane.record_batch.pure_python_codec import NAMES, PlainRecord, with_length
from lockstep_data_plane.record_batch.rebuild import RECORD_BYTES
from lockstep_state.codecs.varint import encode_zigzag
from lockstep_state.errors import NeedsDecision

Buffer = Any
"""An object with the buffer protocol, such as bytes or Arrow's own buffers."""

LARGEST_INDEX = 2**31 - 1
_WIDE, _NARROW = struct.Struct("=qq"), struct.Struct("=ii")


class BytesColumn(NamedTuple):
    """The buffers of a column of bytes or texts."""

    valid: Buffer | None
    """A bit for each row that has bytes, the lowest bit of a byte first; None: all have some."""
    ends: Buffer
    """The index of the first byte, and the one behind each row's bytes, in the machine's byte order."""
    data: Buffer
    first: int = 0
    """The index of the first row in the buffers."""
    is_wide: bool = False
    """The indexes have 64 bits instead of 32."""

    def read(self, row: int) -> bytes | None:
        """Return the bytes of a row. Raises ValueError if the buffers do not fit together."""
        index = self.first + row
        if not _is_valid(self.valid, index):
            return None
        begin, end = _ends(self.ends, index, is_wide=self.is_wide)
        data = memoryview(self.data)
        if not 0 <= begin <= end <= len(data):
            raise ValueError("the buffers of a column do not fit together")
        return bytes(data[begin:end])


class HeadersColumn(NamedTuple):
    """The buffers of a column of lists of headers."""

    valid: Buffer | None
    ends: Buffer
    names: BytesColumn
    values: BytesColumn
    first: int = 0

    def read(self, row: int) -> list[tuple[bytes, bytes | None]]:
        """Return the headers of a row; none is the same as an empty list."""
        index = self.first + row
        if not _is_valid(self.valid, index):
            return []
        begin, end = _ends(self.ends, index, is_wide=False)
        return [(self._name(index), self.values.read(index)) for index in range(begin, end)]

    def _name(self, index: int) -> bytes:
        name = self.names.read(index)
        if name is None:
            raise ValueError("a header has no name")
        return name


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """The records of several batches, a row for each."""

    rows: int
    offsets: bytes = field(repr=False)
    """The source offset of each row (int64), ascending."""
    timestamps: bytes = field(repr=False)
    """The time of each row as consumers see it, in milliseconds (int64); -1: none."""
    timestamp_types: bytes = field(repr=False)
    """0 for a time of the producer, 1 for the broker's (int32)."""
    key: BytesColumn = field(repr=False)
    value: BytesColumn = field(repr=False)
    blocks: BytesColumn = field(repr=False)
    """The headers of each row as they stand in the record, with their number in front."""
    headers: HeadersColumn = field(repr=False)
    unreadable: frozenset[int] = frozenset()
    """The rows with a header's name that is not UTF-8. U+FFFD stands in its place in `headers`."""

    def offset(self, row: int) -> int:
        return int(memoryview(self.offsets).cast("q")[row])


class RowsOfColumns(NamedTuple):
    """The rows to be written as records."""

    rows: Buffer
    """The row of the source that each comes from (int32)."""
    timestamps: Buffer
    """The time of each, in milliseconds (int64)."""
    key: BytesColumn | None = None
    """The keys that were made anew; None: each keeps its own. Likewise `value` and `headers`."""
    value: BytesColumn | None = None
    headers: HeadersColumn | None = None
    own_headers: bytes | None = None
    """A byte for each row, 1 if it keeps its own headers although `headers` are made anew; None: no row does."""

    def head(self, count: int) -> "RowsOfColumns":
        """Return the first rows only."""
        return self._replace(rows=memoryview(self.rows).cast("B")[: 4 * count])


class WrittenRecords(NamedTuple):
    """The records of rows, encoded, with offsets from 0 on and without a header."""

    body: bytes
    newest: int
    oldest: int
    base: int
    """The first timestamp."""


class UnpackedBatch(NamedTuple):
    """A batch of format 2 with its records uncompressed."""

    batch: Batch
    body: bytes | memoryview

    @property
    def append_time(self) -> int | None:
        """Return the broker's time, which all records have; None: each has its own."""
        return self.batch.max_timestamp if self.batch.attributes & LOG_APPEND_TIME else None


def unpack(batch: Batch, at_most: int = UNPACKED_AT_MOST) -> UnpackedBatch:
    """Return a batch of format 2 with its records uncompressed.

    Raises:
        CorruptRecordError: Its CRC is wrong, or its records take more than `at_most` bytes.
    """
    if batch.magic != 2:
        raise CorruptRecordError(f"its format is {batch.magic}")
    if crc32c(batch.data[CRC_FROM:]) != batch.crc:
        raise CorruptRecordError("its CRC is wrong")
    if batch.record_count * RECORD_BYTES > at_most:
        raise CorruptRecordError(f"it has {batch.record_count} records, more than {at_most // RECORD_BYTES}")
    return UnpackedBatch(batch, decompress(batch.data[HEADER_SIZE:], batch.attributes & CODEC_MASK, at_most))


def read_columns(batches: Sequence[UnpackedBatch], start: int) -> RecordColumns:
    """Return the records from offset `start` on as columns.

    Raises:
        CorruptRecordError: Java's consumer would not take the records, or their offsets do not ascend.
    """
    if (compiled := find_compiled()) is not None:
        made = compiled.read_columns([_as_arguments(unpacked) for unpacked in batches], start)
        if made is not None:
            return _columns(made)
    return _columns_of(batches, start)


def _as_arguments(unpacked: UnpackedBatch) -> tuple[bytes | memoryview, int, int, int, int, int | None]:
    batch = unpacked.batch
    return (
        unpacked.body,
        batch.record_count,
        batch.base_offset,
        batch.last_offset_delta,
        batch.base_timestamp,
        unpacked.append_time,
    )


def _columns(made: tuple[Any, ...]) -> RecordColumns:
    rows, offsets, timestamps, types, key, value, blocks, lists, names, header_values, has_other_names = made
    headers_valid, headers_ends = lists
    headers = HeadersColumn(headers_valid, headers_ends, BytesColumn(None, *names), BytesColumn(*header_values))
    columns = RecordColumns(
        rows,
        offsets,
        timestamps,
        types,
        BytesColumn(*key),
        BytesColumn(*value),
        BytesColumn(None, *blocks),
        headers,
    )
    return _with_readable_names(columns) if has_other_names else columns


def _with_readable_names(columns: RecordColumns) -> RecordColumns:
    """Return the columns with U+FFFD in the names of headers that are not UTF-8, which Arrow's texts have to be."""
    headers, unreadable = [columns.headers.read(row) for row in range(columns.rows)], set()
    names: list[bytes | None] = []
    for row, name in ((row, name) for row, pairs in enumerate(headers) for name, _ in pairs):
        readable = name.decode("utf-8", "replace").encode()
        if readable != name:
            unreadable.add(row)
        names.append(readable)
    if not unreadable:
        return columns
    readable_headers = columns.headers._replace(names=_bytes_column(names)._replace(valid=None))
    return replace(columns, headers=readable_headers, unreadable=frozenset(unreadable))


def _columns_of(batches: Sequence[UnpackedBatch], start: int) -> RecordColumns:
    records: list[PlainRecord] = []
    types: list[int] = []
    last = -1
    for unpacked in batches:
        for record in pure_python_codec.read_plain_records(*unpacked):
            if record.offset <= last:
                raise CorruptRecordError(f"the offset {record.offset} comes behind {last}")
            last = record.offset
            if record.offset >= start:
                records.append(record)
                types.append(0 if unpacked.append_time is None else 1)
    headers = [[(name.encode(*NAMES), value) for name, value in record.headers] for record in records]
    flat = [header for pairs in headers for header in pairs]
    columns = RecordColumns(
        len(records),
        _packed("q", [record.offset for record in records]),
        _packed("q", [record.timestamp for record in records]),
        _packed("i", types),
        _bytes_column([record.key for record in records]),
        _bytes_column([record.value for record in records]),
        _bytes_column([_header_block(pairs) for pairs in headers])._replace(valid=None),
        HeadersColumn(
            _bits([bool(pairs) for pairs in headers]),
            _packed("i", _running_sums(len(pairs) for pairs in headers)),
            _bytes_column([name for name, _ in flat])._replace(valid=None),
            _bytes_column([value for _, value in flat]),
        ),
    )
    return _with_readable_names(columns)


def _header_block(headers: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    return encode_zigzag(len(headers)) + b"".join(with_length(name) + with_length(value) for name, value in headers)


def _packed(kind: str, numbers: Sequence[int]) -> bytes:
    return struct.pack(f"={len(numbers)}{kind}", *numbers)


def _running_sums(sizes: Iterable[int]) -> list[int]:
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size)
    return sums


def _bits(flags: Sequence[bool]) -> bytes:
    bits = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        bits[index >> 3] |= flag << (index & 7)
    return bytes(bits)


def _bytes_column(values: Sequence[bytes | None]) -> BytesColumn:
    ends = _packed("i", _running_sums(len(value or b"") for value in values))
    return BytesColumn(_bits([value is not None for value in values]), ends, b"".join(value or b"" for value in values))


def _is_valid(valid: Buffer | None, index: int) -> bool:
    if valid is None:
        return True
    bits = memoryview(valid).cast("B")
    if not 0 <= index < 8 * len(bits):
        raise ValueError("the buffers of a column do not fit together")
    return bool(bits[index >> 3] >> (index & 7) & 1)


def _ends(ends: Buffer, index: int, *, is_wide: bool) -> tuple[int, int]:
    """Return the index in front of a row, and the one behind it."""
    both = _WIDE if is_wide else _NARROW
    try:
        begin, end = both.unpack_from(ends, index * (both.size // 2))
    except struct.error as exc:
        raise ValueError("the buffers of a column do not fit together") from exc
    if not 0 <= begin <= end:
        raise ValueError("the buffers of a column do not fit together")
    return begin, end


def match_rows(offsets: bytes, wanted: Buffer) -> bytes:
    """Return the row of each wanted offset (int32). Both are int64.

    Raises:
        UnmatchedOffset: The wanted offsets do not ascend, or one is not among `offsets`.
    """
    if (compiled := find_compiled()) is not None and (matched := compiled.match_rows(offsets, wanted)) is not None:
        return bytes(matched)
    rows = {offset: row for row, offset in enumerate(memoryview(offsets).cast("q"))}
    seen, matches = -1, []
    for offset in memoryview(wanted).cast("B").cast("q"):
        row = rows.get(offset)
        if row is None:
            raise UnmatchedOffset("OFFSET_UNKNOWN", offset)
        if row <= seen:
            raise UnmatchedOffset("OFFSET_REPEATED" if row == seen else "OFFSETS_UNSORTED", offset)
        seen = row
        matches.append(row)
    return _packed("i", matches)


class UnmatchedOffset(NeedsDecision):
    """The error of offsets that are not those of rows. `code` says how, and `offset` is the first one."""

    def __init__(self, code: str, offset: int) -> None:
        super().__init__(code, offset)
        self.code = code
        self.offset = offset


def write_rows(source: RecordColumns, made: RowsOfColumns) -> WrittenRecords:
    """Return the records of the rows that were made. There is at least one.

    Raises:
        ValueError: The buffers of a column do not fit together, or the records take more than 2 GiB.
    """
    if (compiled := find_compiled()) is None:
        return _write_rows(source, made)
    return WrittenRecords(
        *compiled.write_rows(
            made.rows,
            made.timestamps,
            made.key or source.key,
            made.key is None,
            made.value or source.value,
            made.value is None,
            source.blocks,
            made.headers,
            made.own_headers,
        )
    )


def _write_rows(source: RecordColumns, made: RowsOfColumns) -> WrittenRecords:
    rows = memoryview(made.rows).cast("B").cast("i")
    times = memoryview(made.timestamps).cast("B").cast("q")[: len(rows)]
    base = times[0]
    body = b"".join(_encoded(source, made, row, rows[row], times[row] - base) for row in range(len(rows)))
    if len(body) > LARGEST_INDEX:
        raise ValueError("the records take more than 2 GiB")
    return WrittenRecords(body, max(times), min(times), base)


def _encoded(source: RecordColumns, made: RowsOfColumns, row: int, source_row: int, delta: int) -> bytes:
    key = source.key.read(source_row) if made.key is None else made.key.read(row)
    value = source.value.read(source_row) if made.value is None else made.value.read(row)
    if made.headers is None or (made.own_headers is not None and made.own_headers[row]):
        block = source.blocks.read(source_row) or b""
    else:
        block = _header_block(made.headers.read(row))
    record = (
        b"\0"
        + encode_zigzag(pure_python_codec.wrap_integer(delta))
        + encode_zigzag(row)
        + with_length(key)
        + with_length(value)
        + block
    )
    return encode_zigzag(len(record)) + record


@dataclass(frozen=True, slots=True)
class BatchOfRows:
    """The batch that each row of columns comes from."""

    first_rows: tuple[int, ...]
    batches: tuple[UnpackedBatch, ...]

    @classmethod
    def of(cls, batches: Sequence[UnpackedBatch], columns: RecordColumns) -> "BatchOfRows":
        """Return the batches by the first row that may come from each."""
        offsets = memoryview(columns.offsets).cast("q")
        return cls(tuple(bisect_left(offsets, unpacked.batch.base_offset) for unpacked in batches), tuple(batches))

    def batch_of_row(self, row: int) -> UnpackedBatch:
        """Return the batch of a row."""
        return self.batches[bisect_right(self.first_rows, row) - 1]
