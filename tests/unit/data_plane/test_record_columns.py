"""Records become columns and records again: compiled code and plain Python make the same buffers and the same bytes,
and a record that nothing has changed keeps its bytes."""

import struct
from array import array
from collections.abc import Sequence

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch import record_columns
from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS
from lockstep_data_plane.record_batch.compiled_rebuild import as_batch
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.record_columns import (
    BatchOfRows,
    BytesColumn,
    HeadersColumn,
    RecordColumns,
    RowsOfColumns,
    UnmatchedOffset,
    match_rows,
    read_columns,
    unpack,
    write_rows,
)
from tests.support.batch_bytes import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    RecordBytes,
    batch,
    batch_bytes,
    decoded,
    needs_compiled,
    record,
    record_lists,
    varint,
)

NOW = 1_790_000_000_000
codecs = st.sampled_from((0, GZIP, SNAPPY, LZ4, ZSTD))


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiled(monkeypatch)


def without_compiled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record_columns, "find_compiled", lambda: None)


def in_plain_python(batches: list[Batch], start: int) -> RecordColumns:
    with pytest.MonkeyPatch.context() as patch:
        without_compiled(patch)
        return read_columns([unpack(each) for each in batches], start)


def behind_each_other(contents: list[list[PlainRecord]], codec: int = 0, attributes: int = 0) -> list[Batch]:
    batches, follows = [], 0
    for content in contents:
        moved = [each._replace(offset=each.offset - content[0].offset + follows) for each in content]
        follows = moved[-1].offset + 3
        batches.append(batch(moved, codec=codec, attributes=attributes, max_timestamp=NOW if attributes else None))
    return batches


def rows_of(
    columns: RecordColumns,
) -> list[tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]]:
    offsets, times = memoryview(columns.offsets).cast("q"), memoryview(columns.timestamps).cast("q")
    return [
        (offsets[row], times[row], columns.key.read(row), columns.value.read(row), columns.headers.read(row))
        for row in range(columns.rows)
    ]


@given(
    contents=st.lists(record_lists(), min_size=1, max_size=3), codec=codecs, skipped=st.integers(0, 12), data=st.data()
)
def test_columns_have_what_the_records_have(
    contents: list[list[PlainRecord]], codec: int, skipped: int, data: st.DataObject
) -> None:
    attributes = data.draw(st.sampled_from((0, LOG_APPEND_TIME)))
    batches = behind_each_other(contents, codec, attributes)
    expected = [
        (
            each.offset,
            NOW if attributes else each.timestamp,
            each.key,
            each.value,
            [(n.encode(), v) for n, v in each.headers],
        )
        for source in batches
        for each in decoded(source.data, source.base_offset)
        if each.offset >= skipped
    ]
    columns = read_columns([unpack(each) for each in batches], skipped)
    assert rows_of(columns) == expected
    assert set(memoryview(columns.timestamp_types).cast("i")) <= {1 if attributes else 0}
    assert not columns.unreadable


@needs_compiled
@given(contents=st.lists(record_lists(), min_size=1, max_size=3), codec=codecs, start=st.integers(0, 12))
def test_compiled_columns_are_those_of_plain_python(contents: list[list[PlainRecord]], codec: int, start: int) -> None:
    batches = behind_each_other(contents, codec)
    assert read_columns([unpack(each) for each in batches], start) == in_plain_python(batches, start)


@given(content=record_lists(), codec=codecs, kept=st.sets(st.integers(0, 7)))
def test_rows_of_unchanged_columns_are_the_records_own_bytes(
    content: list[PlainRecord], codec: int, kept: set[int]
) -> None:
    source = batch(content, codec=codec)
    columns = read_columns([unpack(source)], 0)
    rows = [row for row in range(len(content)) if row in kept or not row]
    times = array("q", [content[row].timestamp for row in rows])
    written = write_rows(columns, RowsOfColumns(array("i", rows), times))
    made = as_batch(written.body, len(rows), written.base, written.newest, codec, JAVAS_LEVELS)
    expected = [content[row]._replace(offset=index) for index, row in enumerate(rows)]
    wanted = batch_bytes(expected, codec=0, leader_epoch=-1)
    assert written.body == wanted[61:]
    assert (written.newest, written.oldest) == (max(times), min(times))
    assert decoded(made) == expected
    if not codec:
        assert made == wanted


values = st.none() | st.binary(max_size=70) | st.sampled_from((62, 63, 64, 9000)).map(bytes)
header_lists = st.lists(st.tuples(st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)


def column_of(content: Sequence[bytes | None], first: int, *, is_wide: bool) -> BytesColumn:
    """A column as Arrow may give it: with rows in front that are not of it."""
    padded: list[bytes | None] = [*(b"not of it",) * first, *content]
    ends, valid = [0], bytearray((len(padded) + 7) // 8)
    for index, value in enumerate(padded):
        ends.append(ends[-1] + len(value or b""))
        valid[index >> 3] |= (value is not None) << (index & 7)
    packed = struct.pack(f"={len(ends)}{'q' if is_wide else 'i'}", *ends)
    return BytesColumn(bytes(valid), packed, b"".join(value or b"" for value in padded), first, is_wide)


@given(content=record_lists(), data=st.data(), is_wide=st.booleans(), first=st.integers(0, 9))
def test_columns_that_are_made_anew_are_written(
    content: list[PlainRecord], data: st.DataObject, is_wide: bool, first: int
) -> None:
    count = len(content)
    keys = data.draw(st.none() | st.lists(values, min_size=count, max_size=count))
    news = data.draw(st.none() | st.lists(values, min_size=count, max_size=count))
    headers = data.draw(st.none() | st.lists(header_lists, min_size=count, max_size=count))
    own = data.draw(st.none() | st.binary(min_size=count, max_size=count).map(lambda b: bytes(x & 1 for x in b)))
    columns = read_columns([unpack(batch(content))], 0)
    headers_column = None
    if headers is not None:
        flat = [header for each in headers for header in each]
        ends = [0]
        for each in headers:
            ends.append(ends[-1] + len(each))
        headers_column = HeadersColumn(
            None,
            struct.pack(f"={len(ends)}i", *ends),
            column_of([name for name, _ in flat], first, is_wide=False),
            column_of([value for _, value in flat], first, is_wide=is_wide),
        )
    given_rows = RowsOfColumns(
        array("i", range(count)),
        array("q", [each.timestamp for each in content]),
        None if keys is None else column_of(keys, first, is_wide=is_wide),
        None if news is None else column_of(news, first, is_wide=is_wide),
        headers_column,
        own if headers is not None else None,
    )
    written = write_rows(columns, given_rows)
    with pytest.MonkeyPatch.context() as patch:
        without_compiled(patch)
        assert write_rows(columns, given_rows) == written
    for row, (made, was) in enumerate(zip(decoded_with_bytes(written.body, count), content, strict=True)):
        key, value, made_headers = made
        assert key == (was.key if keys is None else keys[row])
        assert value == (was.value if news is None else news[row])
        is_own = headers is None or (own is not None and own[row])
        expected = [(name.encode(), v) for name, v in was.headers] if is_own or headers is None else headers[row]
        assert made_headers == expected


def decoded_with_bytes(
    body: bytes, count: int
) -> list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]]:
    """Records read without the code under test; the names of headers may be no texts."""
    reader = RecordBytes(body)
    number, sized = reader.number, reader.sized
    content = []
    for index in range(count):
        length = number()
        end = reader.position + length
        reader.position += 1
        number()
        assert number() == index
        key, value = sized(), sized()
        content.append((key, value, [(sized() or b"", sized()) for _ in range(number())]))
        assert reader.position == end
    assert reader.position == len(body)
    return content


def odd_batch(body: bytes, count: int = 1) -> Batch:
    """A batch with these records."""
    raw = bytearray(batch_bytes([record(5)])[:61]) + body
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">i", raw, 23, 9)
    struct.pack_into(">i", raw, 57, count)
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    (scanned,) = scan(bytes(raw))
    return scanned


def raw_record(*, name: bytes = b"h", attributes: bytes = b"\0", length: bytes | None = None) -> bytes:
    body = attributes + varint(0) + varint(0) + varint(1) + b"k" + varint(1) + b"v" + varint(1)
    body += varint(len(name)) + name + varint(-1)
    return (varint(len(body)) if length is None else length) + body


@pytest.mark.parametrize("length", [None, b"\x9a\x00"], ids=["usual", "a longer number"])
@pytest.mark.parametrize("attributes", [b"\0", b"\7"])
def test_records_in_another_form_are_read_by_plain_python(length: bytes | None, attributes: bytes) -> None:
    usual = raw_record()
    if length is not None:
        length = bytes([usual[0] | 0x80, 0])
    columns = read_columns([unpack(odd_batch(raw_record(attributes=attributes, length=length)))], 0)
    assert rows_of(columns) == [(5, 1000, b"k", b"v", [(b"h", None)])]


@pytest.mark.parametrize("name", [b"\xff", b"\xed\xa0\x80", b"a\xc3"])
def test_names_of_headers_that_are_no_texts_are_replaced_in_the_column_and_kept_in_the_record(name: bytes) -> None:
    columns = read_columns([unpack(odd_batch(raw_record(name=name)))], 0)
    assert columns.unreadable == {0}
    ((shown, value),) = columns.headers.read(0)
    assert (shown.decode(), value) == (name.decode("utf-8", "replace"), None)
    written = write_rows(columns, RowsOfColumns(array("i", [0]), array("q", [1000])))
    assert decoded_with_bytes(written.body, 1) == [(b"k", b"v", [(name, None)])]


def test_a_name_that_is_split_between_two_headers_is_no_text() -> None:
    names = b"\xc3", b"\xa4"
    body = b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(2) + b"".join(varint(1) + n + varint(-1) for n in names)
    columns = read_columns([unpack(odd_batch(varint(len(body)) + body))], 0)
    assert columns.unreadable == {0}


@pytest.mark.parametrize(
    "body",
    [
        raw_record()[:-1],
        raw_record() + b"\0",
        varint(5) + b"\0" * 5,
        b"\xff" * 11,
        b"",
    ],
)
def test_damaged_records_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        read_columns([unpack(odd_batch(body))], 0)


def test_a_wrong_crc_is_refused() -> None:
    good = batch_bytes([record(0)])
    (damaged,) = scan(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(CorruptRecordError, match="CRC"):
        unpack(damaged)


def test_offsets_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(CorruptRecordError, match="comes behind"):
        read_columns([unpack(batch([record(5)])), unpack(batch([record(5)]))], 0)


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63), -1])
def test_any_time_is_kept(time: int) -> None:
    columns = read_columns([unpack(batch([record(0, timestamp=time), record(1, timestamp=time)]))], 0)
    assert list(memoryview(columns.timestamps).cast("q")) == [time, time]
    written = write_rows(columns, RowsOfColumns(array("i", [0, 1]), columns.timestamps))
    assert (written.base, written.newest, written.oldest) == (time, time, time)


def offsets(*numbers: int) -> bytes:
    return array("q", numbers).tobytes()


def test_offsets_find_their_rows() -> None:
    assert list(memoryview(match_rows(offsets(3, 5, 9), offsets(3, 9))).cast("i")) == [0, 2]
    assert match_rows(offsets(3, 5), b"") == b""


@pytest.mark.parametrize(
    ("wanted", "code", "offset"),
    [
        ((3, 4), "OFFSET_UNKNOWN", 4),
        ((5, 3), "OFFSETS_UNSORTED", 3),
        ((3, 3), "OFFSET_REPEATED", 3),
        ((9, 10), "OFFSET_UNKNOWN", 10),
    ],
)
def test_offsets_that_are_not_those_of_rows_are_refused(wanted: tuple[int, ...], code: str, offset: int) -> None:
    with pytest.raises(UnmatchedOffset) as refused:
        match_rows(offsets(3, 5, 9), offsets(*wanted))
    assert (refused.value.code, refused.value.offset) == (code, offset)


@given(source=st.sets(st.integers(0, 40), min_size=1), kept=st.sets(st.integers(0, 40)))
def test_rows_of_offsets_are_the_same_without_compiled_code(source: set[int], kept: set[int]) -> None:
    all_offsets, wanted = offsets(*sorted(source)), offsets(*sorted(source & kept))
    matched = match_rows(all_offsets, wanted)
    with pytest.MonkeyPatch.context() as patch:
        without_compiled(patch)
        assert match_rows(all_offsets, wanted) == matched


DAMAGED = [
    BytesColumn(None, array("i", [0, 9]).tobytes(), b"abc"),  # behind its data
    BytesColumn(None, array("i", [2, 1]).tobytes(), b"abc"),
    BytesColumn(None, array("i", [-1, 1]).tobytes(), b"abc"),
    BytesColumn(None, array("i", [0]).tobytes(), b"abc"),
    BytesColumn(b"", array("i", [0, 1]).tobytes(), b"abc"),
    BytesColumn(None, array("i", [0, 1]).tobytes(), b"abc", 1),
    BytesColumn(None, array("q", [0, 2**40]).tobytes(), b"abc", 0, True),
]


@pytest.mark.parametrize("damaged", DAMAGED)
@pytest.mark.parametrize("compiled", [True, False])
def test_buffers_that_do_not_fit_together_are_refused(
    damaged: BytesColumn, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = read_columns([unpack(batch([record(0)]))], 0)
    if not compiled:
        without_compiled(monkeypatch)
    with pytest.raises(ValueError, match="do not fit together"):
        write_rows(columns, RowsOfColumns(array("i", [0]), columns.timestamps, value=damaged))


@needs_compiled
def test_fewer_timestamps_than_rows_are_refused() -> None:
    columns = read_columns([unpack(batch([record(0)]))], 0)
    with pytest.raises(ValueError, match="fewer timestamps"):
        write_rows(columns, RowsOfColumns(array("i", [0, 0]), columns.timestamps))


def test_each_row_has_its_batch() -> None:
    first, empty, last = batch([record(3), record(5)]), batch([record(7)]), batch([record(9)])
    batches = [unpack(each) for each in (first, empty, last)]
    columns = read_columns(batches, 4)
    batch_of = BatchOfRows.of(batches, columns)
    assert [batch_of.batch_of_row(row).batch for row in range(columns.rows)] == [first, empty, last]
