"""Compiled code copies records into the very bytes that decoding and encoding each makes, or leaves them alone."""

import shutil
import struct
import sys
from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch import compiled_rebuild
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.coalesce import MERGED_UNPACKED, next_outgoing
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.compiled_rebuild import copy_records, join_batches
from lockstep_data_plane.record_batch.layout import HEADER_SIZE, Batch, OutgoingBatch, as_outgoing, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import rebuild
from tests.support.batch_bytes import (
    COMPRESS,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    batch,
    batch_bytes,
    needs_compiled,
    record,
)
from tests.support.message_sets import Message, message_set, sets

NOW = 1_790_000_000_000
LIMITS = TargetLimits()


sized = st.none() | st.binary(max_size=70) | st.sampled_from((62, 63, 64, 9000)).map(bytes)
times = st.sampled_from((-1, 0, 1)) | st.integers(NOW - 9000, NOW + 9000) | st.integers(-(2**40), 2**53)
header_lists = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
codecs = st.sampled_from((0, GZIP, SNAPPY, LZ4, ZSTD))
skip_lists = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=2)
asked = st.sampled_from((LIMITS, TargetLimits(codec=LZ4), TargetLimits(codec=ZSTD, recompress=True)))


@st.composite
def contents(draw: st.DrawFn) -> list[PlainRecord]:
    """Records with the gaps that compaction leaves."""
    offset, result = draw(st.integers(0, 100) | st.integers(0, 2**50)), []
    for _ in range(draw(st.integers(1, 9))):
        result.append(PlainRecord(offset, draw(times), draw(sized), draw(sized), draw(header_lists)))
        offset += draw(st.sampled_from((1, 1, 1, 2, 63, 64, 9000)))
    return result


@st.composite
def messages(draw: st.DrawFn) -> list[Message]:
    return [Message(r.offset, r.key, r.value, r.timestamp) for r in draw(contents())]


def decoded(
    source: Batch, position: int, limits: TargetLimits, skips: Sequence[tuple[int, int]]
) -> list[OutgoingBatch]:
    """The batch built anew from decoded records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_rebuild, "find_compiled", lambda: None)
        return rebuild(source, position, limits, skips)


def with_body(source: bytes, body: bytes, count: int, codec: int = 0) -> Batch:
    """The batch with other records."""
    stored = COMPRESS[codec](body)
    head = bytearray(source[:HEADER_SIZE])
    head[8:12] = struct.pack(">i", HEADER_SIZE - 12 + len(stored))
    head[22] = head[22] & ~7 | codec
    head[57:61] = struct.pack(">i", count)
    (result,) = scan(bytes(head) + stored)
    return result


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="nothing to compile with")
def test_compiled_records_are_built_where_a_compiler_is() -> None:
    assert find_compiled() is not None


@needs_compiled
@given(
    content=contents(),
    codec=codecs,
    attributes=st.sampled_from((0, LOG_APPEND_TIME)),
    begins_before=st.integers(0, 5),
    after=st.integers(-3, 90),
    skips=skip_lists,
    limits=asked,
)
def test_copied_batch_equals_the_decoded_one(
    content: list[PlainRecord],
    codec: int,
    attributes: int,
    begins_before: int,
    after: int,
    skips: list[tuple[int, int]],
    limits: TargetLimits,
) -> None:
    first = content[0].offset
    source = batch(
        content,
        codec=codec,
        attributes=attributes,
        base_offset=max(0, first - begins_before),
        last_offset=content[-1].offset + begins_before,
        max_timestamp=NOW if attributes else None,
    )
    ranges = [(first + begin, first + begin + length) for begin, length in skips]
    copied = copy_records(source, first + after, limits, ranges)
    assert copied is not None
    assert copied == decoded(source, first + after, limits, ranges)
    assert copied == rebuild(source, first + after, limits, ranges)


@needs_compiled
@given(content=messages(), magic=st.sampled_from((0, 1)), after=st.integers(-3, 90), skips=skip_lists, data=st.data())
def test_translated_messages_equal_the_decoded_ones(
    content: list[Message], magic: int, after: int, skips: list[tuple[int, int]], data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from((0, GZIP, SNAPPY, LZ4)))
    append_time = data.draw(st.none() | st.just(NOW))
    first = content[0].offset
    ranges = [(first + begin, first + begin + length) for begin, length in skips]
    for source in sets(message_set(magic, content, codec, append_time=append_time)):
        copied = copy_records(source, first + after, LIMITS, ranges)
        assert copied is not None
        assert copied == decoded(source, first + after, LIMITS, ranges)


small = st.none() | st.binary(max_size=20)


@needs_compiled
@given(
    groups=st.lists(st.lists(st.tuples(times, small, small), min_size=1, max_size=4), min_size=2, max_size=6),
    codec=codecs,
    gap=st.integers(0, 3),
)
def test_joined_batches_equal_the_decoded_ones(
    groups: list[list[tuple[int, bytes | None, bytes | None]]], codec: int, gap: int
) -> None:
    offset, group = 10, []
    for content in groups:
        records = [PlainRecord(offset + i, time, key, value, ()) for i, (time, key, value) in enumerate(content)]
        group.append(as_outgoing(batch(records, codec=codec)))
        offset += len(content) + gap
    waiting = deque(group)
    joined, size = next_outgoing(waiting, LIMITS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_rebuild, "find_compiled", lambda: None)
        assert next_outgoing(deque(group), LIMITS) == (joined, size)
    assert not waiting
    made = join_batches(group, codec, LIMITS.levels, MERGED_UNPACKED)
    assert made is not None
    assert (made.data, list(made.offsets)) == (joined.data, list(joined.offsets))


@needs_compiled
def test_a_group_with_a_spoilt_batch_is_not_joined() -> None:
    whole = batch_bytes([record(5)])
    group = [as_outgoing(batch([record(4)])), as_outgoing(with_body(whole, b"\x0c\2\0\0\1\1\0", 1))]
    assert join_batches(group, 0, LIMITS.levels, MERGED_UNPACKED) is None
    assert join_batches([group[0], as_outgoing(batch([record(5)]))], 0, LIMITS.levels, MERGED_UNPACKED) is not None
    unreadable = bytearray(whole)
    unreadable[22] = GZIP
    (result,) = scan(bytes(unreadable))
    assert join_batches([group[0], as_outgoing(result)], GZIP, LIMITS.levels, MERGED_UNPACKED) is None


PLAIN = b"\0\0\0\1\1\0"
"""A record of nothing: attributes, both deltas, no key, no value, no headers."""


@needs_compiled
@pytest.mark.parametrize(
    "body",
    [
        b"\x8c\0" + PLAIN,  # its length in a byte more than it needs
        b"\x0c\2\0\0\1\1\0",  # attributes
        b"\x0c\0\0\1\1\1\0",  # an offset before the batch's
        b"\x0c\0\0\0\3\1\0",  # a key of -2 bytes
        b"\x0c\0\0\0\1\1\1",  # -1 headers
        b"\x10\0\0\0\1\1\2\1\1",  # a header without a name
        b"\x0e" + PLAIN + b"\0",  # a byte behind the headers
        b"\x0c" + PLAIN + b"\0",  # a byte behind the record
        b"\x0c" + PLAIN[:-1],  # cut
        b"\x0a" + PLAIN,  # longer than it says
        b"\x0c\0\0\0\1\7\0",  # a value longer than the record
        b"",
    ],
)
def test_records_in_another_form_are_left_alone(body: bytes) -> None:
    whole = batch_bytes([record(5)])
    assert copy_records(with_body(whole, b"\x0c" + PLAIN, 1), 0, LIMITS) is not None
    assert copy_records(with_body(whole, body, 1), 0, LIMITS) is None


def with_offsets(second: int) -> Batch:
    body = b"\x0c\0\0\2\1\1\0" + bytes([0x0C, 0, 0, 2 * second, 1, 1, 0])
    return with_body(batch_bytes([record(5)]), body, 2)


def with_byte(data: bytes, index: int, value: int) -> Batch:
    raw = bytearray(data)
    raw[index] = value
    (source,) = scan(bytes(raw))
    return source


FAR_TIMES = (2**62, -(2**62), 2**63 - 1)
LEFT_ALONE = [
    *(with_offsets(second) for second in (0, 1)),  # they do not ascend
    *(batch([record(0, timestamp=time)]) for time in FAR_TIMES),  # whose differences may overflow
    *(batch([record(0, timestamp=0)], attributes=LOG_APPEND_TIME, max_timestamp=time) for time in FAR_TIMES),
    *(with_byte(batch_bytes([record(0)]), 22, codec) for codec in (5, 6, 7)),  # unknown codecs
    with_byte(message_set(1, [Message(0, b"k", b"v", NOW)]), -1, ord("w")),  # a wrong CRC
    *scan(batch_bytes([record(0)], codec=GZIP)[:-9] + bytes(9)),  # it does not decompress
]


@needs_compiled
@pytest.mark.parametrize("source", LEFT_ALONE)
def test_batch_that_has_to_be_decoded_is_left_alone(source: Batch) -> None:
    assert copy_records(source, 0, LIMITS) is None


@needs_compiled
def test_a_copied_batch_above_the_targets_limit_is_left_alone() -> None:
    source = batch([record(0, bytes(500)), record(2, bytes(500))])
    (whole,) = rebuild(source, 0, LIMITS)
    assert copy_records(source, 0, TargetLimits(whole.size)) == [whole]
    assert copy_records(source, 0, TargetLimits(whole.size - 1)) is None
    assert [each.count for each in rebuild(source, 0, TargetLimits(whole.size - 1))] == [1, 1]


@needs_compiled
def test_compiled_records_refuse_what_is_no_range() -> None:
    with pytest.raises(TypeError):
        copy_records(batch([record(0)]), 0, LIMITS, [("a", "b")])  # type: ignore[list-item]  # that is the point


def test_nothing_is_copied_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_rebuild, "find_compiled", lambda: None)
    source = batch([record(0), record(2)], codec=LZ4)
    assert copy_records(source, 0, LIMITS) is None
    (whole,) = rebuild(source, 0, LIMITS)
    assert list(whole.offsets) == [0, 2]
    assert join_batches([whole, whole], LZ4, LIMITS.levels, MERGED_UNPACKED) is None
