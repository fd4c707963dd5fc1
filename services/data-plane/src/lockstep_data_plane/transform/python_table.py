"""Records as an Arrow table, and the table that a function returns as records again.

The table has the columns of Spark's Kafka source. `offset` ties a row to its record, so it must come back. A column
that does not come back keeps the record's own bytes, and a row that does not come back is a filtered record.

This module runs in the process of the function (`python_child.py`), and is the only one that imports Arrow, with
`python_evaluation.py`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockstep_data_plane.record_batch.record_columns import (
    BytesColumn,
    HeadersColumn,
    RecordColumns,
    RowsOfColumns,
    UnmatchedOffset,
    match_rows,
)
from lockstep_data_plane.transform.python_function import FunctionRefused
from lockstep_state.errors import NeedsDecision

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS),
    ]
)
FIXED = ("topic", "partition", "timestampType")
"""The columns that may come back, but as they were."""
REVEALING = ("key", "headers", "timestamp")
"""The columns that a record without a row would keep, although the function may make them anew for the others."""

NO_TIME = -1


@dataclass(frozen=True, slots=True)
class RowRules:
    """The treatment of records that have no row in the function's table."""

    passes_tombstones: bool = True
    """A record without a value passes, and keeps no value."""
    leaves_tombstones: bool = False
    """A filtered record with a key becomes a tombstone."""


@dataclass(frozen=True, slots=True)
class MadeRows:
    """The rows that a function has made, in the order of their records."""

    rows: RowsOfColumns
    count: int
    failures: dict[int, str] = field(default_factory=dict)
    """The condition of each row of the source that cannot become a record."""


class TableTooLarge(NeedsDecision):
    """The error of a table that takes more memory than a batch may."""


def make_table(columns: RecordColumns, topic: str, partition: int) -> Any:
    """Return records as a table. It refers to the memory of `columns`."""
    rows, headers = columns.rows, columns.headers
    header_rows = int(memoryview(headers.ends).cast("i")[rows])
    names = _bytes_array(pa.string(), header_rows, headers.names)
    values = _bytes_array(pa.binary(), header_rows, headers.values)
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    lists = pa.Array.from_buffers(HEADERS, rows, [_buffer(headers.valid), _buffer(headers.ends)], children=[structs])
    return pa.table(
        [
            _bytes_array(pa.binary(), rows, columns.key),
            _bytes_array(pa.binary(), rows, columns.value),
            pa.repeat(pa.scalar(topic, pa.string()), rows),
            pa.repeat(pa.scalar(partition, pa.int32()), rows),
            pa.Array.from_buffers(pa.int64(), rows, [None, _buffer(columns.offsets)]),
            pa.Array.from_buffers(TIMESTAMP, rows, [None, _buffer(columns.timestamps)]),
            pa.Array.from_buffers(pa.int32(), rows, [None, _buffer(columns.timestamp_types)]),
            lists,
        ],
        schema=SCHEMA,
    )


def _bytes_array(kind: Any, rows: int, column: BytesColumn) -> Any:
    return pa.Array.from_buffers(kind, rows, [_buffer(column.valid), _buffer(column.ends), _buffer(column.data)])


def _buffer(content: Any) -> Any:
    return None if content is None else pa.py_buffer(content)


def read_table(
    name: str, made: Any, table: Any, source: RecordColumns, rules: RowRules, bytes_at_most: int
) -> MadeRows:
    """Return the rows that a function has made of a table.

    Args:
        name: The function.
        made: What it returned.
        table: What it was source_offsets: the first rows of `source`.
        source: The records.
        rules: The treatment of records without a row.
        bytes_at_most: The most that `made` may take in memory.

    Raises:
        FunctionRefused: It is no table with the columns that records have, or its offsets are not those of `table`.
        TableTooLarge: It takes more memory.
    """
    return _TableReader(name, made, table, source, rules).read(bytes_at_most)


class _TableReader:
    """The reader of one table that a function returned."""

    def __init__(self, name: str, made: Any, table: Any, source: RecordColumns, rules: RowRules) -> None:
        self._name = name
        self._made = made
        self._table = table
        self._source = source
        self._rules = rules
        self._failures: dict[int, str] = {}

    def read(self, bytes_at_most: int) -> MadeRows:
        self._check_columns()
        if self._made.nbytes > bytes_at_most:
            raise TableTooLarge
        matched = self._matched_rows()
        rows = list(memoryview(matched).cast("i"))
        index = _index(matched)
        self._check_fixed(index)
        key = _as_column(self._bytes_of("key")) if "key" in self._made.column_names else None
        value = self._value(index)
        timestamps = self._timestamps(rows, index)
        headers, own_headers = self._headers(rows)
        made = RowsOfColumns(
            matched, timestamps, key, None if value is None else _as_column(value), headers, own_headers
        )
        return MadeRows(*self._with_kept(made, rows, value), self._failures)

    def _refused(self, code: str, says: str) -> FunctionRefused:
        return FunctionRefused(code, f"{self._name} {says}")

    def _check_columns(self) -> None:
        if not isinstance(self._made, pa.Table):
            raise self._refused("NO_TABLE", f"returned {type(self._made).__qualname__}, and not pyarrow.Table")
        names = self._made.column_names
        if len(set(names)) != len(names):
            raise self._refused("COLUMN_REPEATED", "returned two columns of one name")
        if unknown := set(names) - set(SCHEMA.names):  # their names may come from records, as those of a pivot do
            raise self._refused("COLUMN_UNKNOWN", f"returned {len(unknown)} columns besides {', '.join(SCHEMA.names)}")
        if "offset" not in names:
            raise self._refused("OFFSET_MISSING", "returned no column offset")
        offsets = self._made.column("offset")
        if offsets.type != pa.int64():
            raise self._wrong_type("offset", offsets.type, "int64")
        if offsets.null_count:
            raise self._refused("OFFSET_NULL", "returned a row without an offset")

    def _wrong_type(self, column: str, kind: Any, expected: str) -> FunctionRefused:
        shown = type(kind).__name__ if pa.types.is_nested(kind) else str(kind)
        return self._refused("COLUMN_TYPE", f"returned the column {column} as {shown}, and not as {expected}")

    def _matched_rows(self) -> bytes:
        offsets = self._array("offset")
        (_, wanted), begin = offsets.buffers(), 8 * offsets.offset
        source_offsets = self._source.offsets[: 8 * self._table.num_rows]
        try:
            return match_rows(source_offsets, memoryview(wanted or b"")[begin : begin + 8 * len(offsets)])
        except UnmatchedOffset as exc:
            says = {
                "OFFSET_UNKNOWN": f"returned the offset {exc.offset}, which it was not source_offsets",
                "OFFSET_REPEATED": f"returned two rows for the offset {exc.offset}",
                "OFFSETS_UNSORTED": f"returned the offset {exc.offset} behind a larger one",
            }
            raise self._refused(exc.code, says[exc.code]) from exc

    def _check_fixed(self, index: Any) -> None:
        for column in FIXED:
            if column in self._made.column_names:
                own, made = self._table.column(column), self._made.column(column)
                if made.type != own.type or not made.equals(own.take(index)):
                    raise self._refused("COLUMN_FIXED", f"changed the column {column}")

    def _array(self, column: str) -> Any:
        chunks = self._made.column(column)
        try:
            chunks.validate(full=True)
        except pa.ArrowInvalid as exc:  # its message may have a value
            raise self._refused("COLUMN_DAMAGED", f"returned the column {column} with damaged buffers") from exc
        return chunks.combine_chunks()

    def _bytes_of(self, column: str) -> Any:
        array = self._array(column)
        kind = array.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return array
        if pa.types.is_string(kind) or pa.types.is_null(kind):
            return array.cast(pa.binary())
        if pa.types.is_large_string(kind):
            return array.cast(pa.large_binary())
        raise self._wrong_type(column, kind, "binary or string")

    def _value(self, index: Any) -> Any:
        """Return the values that were made anew; None: there are none."""
        if "value" not in self._made.column_names:
            return None
        value, own = self._bytes_of("value"), self._table.column("value")
        if self._rules.passes_tombstones and own.null_count:
            is_tombstone = own.take(index).combine_chunks().is_null()
            value = pc.if_else(is_tombstone, pa.scalar(None, value.type), value)
        return value

    def _timestamps(self, rows: Sequence[int], index: Any) -> Any:
        own = self._table.column("timestamp").take(index).combine_chunks().cast(pa.int64())
        if "timestamp" not in self._made.column_names:
            return _fixed_buffer(own)
        array = self._array("timestamp")
        if array.type != TIMESTAMP:
            raise self._wrong_type("timestamp", array.type, str(TIMESTAMP))
        times = array.cast(pa.int64()).fill_null(NO_TIME)
        early = pc.and_(pc.less(times, NO_TIME), pc.not_equal(times, own))
        for row in pc.indices_nonzero(early).to_pylist():
            self._fail(rows[row], "TIMESTAMP_BEFORE_1970")
        return _fixed_buffer(times)

    def _headers(self, rows: Sequence[int]) -> tuple[HeadersColumn | None, bytes | None]:
        if "headers" not in self._made.column_names:
            return None, None
        array = self._array("headers")
        if array.type != HEADERS:
            try:
                array = array.cast(HEADERS)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
                raise self._wrong_type("headers", array.type, str(HEADERS)) from exc
        structs = array.values
        names = structs.field(0)
        if structs.null_count or names.null_count:
            for position, headers in enumerate(array.to_pylist()):
                if any(header is None or header["key"] is None for header in headers or ()):
                    self._fail(rows[position], "HEADER_WITHOUT_KEY")
        valid, ends = array.buffers()[:2]
        made = HeadersColumn(
            valid, b"" if ends is None else ends, _as_column(names), _as_column(structs.field(1)), array.offset
        )
        return made, self._own_headers(array, rows)

    def _own_headers(self, array: Any, rows: Sequence[int]) -> bytes | None:
        """Return which rows keep their own headers, whose names are no texts, because the function left them alone."""
        if not self._source.unreadable:
            return None
        own, marks = self._table.column("headers"), bytearray(len(rows))
        for position, row in enumerate(rows):
            if row in self._source.unreadable:
                if array[position].as_py() == own[row].as_py():
                    marks[position] = 1
                else:
                    self._fail(row, "HEADER_NAME_NOT_UTF8")
        return bytes(marks)

    def _fail(self, row: int, condition: str) -> None:
        self._failures.setdefault(row, condition)

    def _with_kept(self, made: RowsOfColumns, rows: Sequence[int], value: Any) -> tuple[RowsOfColumns, int]:
        """Return the rows, with those of records that stay although the function gave none for them."""
        kept = self._kept_without_row(rows)
        if not kept:
            return made, len(rows)
        if any(column in self._made.column_names for column in REVEALING):
            # Its own key or header would go out, although the function may hide it in the others.
            for row in kept:
                self._fail(row, "ROW_MISSING")
            return made, len(rows)
        every = sorted((*rows, *kept))
        positions = {row: position for position, row in enumerate(rows)}
        index = pa.array(every, pa.int32())
        if value is None:
            value = self._table.column("value").take(_index(bytes(made.rows))).combine_chunks()
        value = value.take(pa.array([positions.get(row) for row in every], pa.int32()))
        times = self._table.column("timestamp").take(index).combine_chunks().cast(pa.int64())
        own_rows = memoryview(index.buffers()[1])[: 4 * len(every)]
        return made._replace(rows=own_rows, timestamps=_fixed_buffer(times), value=_as_column(value)), len(every)

    def _kept_without_row(self, rows: Sequence[int]) -> list[int]:
        count = self._table.num_rows
        if len(rows) == count:
            return []
        missing = set(range(count)).difference(rows)
        kept: set[int] = set()
        if self._rules.passes_tombstones:
            is_null = self._table.column("value").combine_chunks().is_null()
            kept |= missing.intersection(pc.indices_nonzero(is_null).to_pylist())
        if self._rules.leaves_tombstones:
            has_key = self._table.column("key").combine_chunks().is_valid()
            kept |= missing.intersection(pc.indices_nonzero(has_key).to_pylist())
        return sorted(kept)


def head_of(made: MadeRows, row: int) -> MadeRows:
    """Return the rows in front of a row of the source."""
    count = bisect_left(memoryview(made.rows.rows).cast("B").cast("i"), row)
    failures = {failed: condition for failed, condition in made.failures.items() if failed < row}
    return replace(made, rows=made.rows.head(count), count=count, failures=failures)


def _index(rows: bytes) -> Any:
    return pa.Array.from_buffers(pa.int32(), len(rows) // 4, [None, pa.py_buffer(rows)])


def _fixed_buffer(numbers: Any) -> Any:
    """Return the bytes of numbers of 64 bits."""
    (_, content), begin = numbers.buffers(), 8 * numbers.offset
    return memoryview(content or b"")[begin : begin + 8 * len(numbers)]


def _as_column(array: Any) -> BytesColumn:
    valid, ends, data = array.buffers()
    is_wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    return BytesColumn(valid, b"" if ends is None else ends, b"" if data is None else data, array.offset, is_wide)
