"""Small batches that follow each other come, and go, as one: with the same records in the same order."""

import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch import coalesce, compiled_rebuild, layout
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.coalesce import MERGED_UNPACKED, next_outgoing
from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, UNPACKED_AT_MOST
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.compiled_rebuild import join_batches
from lockstep_data_plane.record_batch.layout import (
    HEADER_SIZE,
    MERGED_BYTES,
    SMALL_BYTES,
    Batch,
    CorruptRecordError,
    OutgoingBatch,
    as_outgoing,
    scan,
    scan_groups,
)
from tests.support.batch_bytes import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    batch,
    batch_bytes,
    crc_is_right,
    decoded,
    needs_compiled,
    record,
)

NOW = 1_790_000_000_000
CODECS = (0, GZIP, SNAPPY, LZ4, ZSTD)
JAVAS_BLOCK = 64 * 1024


class Part(NamedTuple):
    """A batch of a log."""

    records: int = 1
    codec: int = LZ4
    attributes: int = 0
    producer: int = -1
    epoch: int = 3
    gap: int = 0
    size: int = 3
    timestamp: int = NOW
    spoilt: bool = False


def log_of(parts: Sequence[Part], first: int = 10) -> bytes:
    data, offset = b"", first
    for part in parts:
        offset += part.gap
        content = [
            record(offset + i, bytes([65 + i % 26]) * part.size, timestamp=part.timestamp + i)
            for i in range(part.records)
        ]
        source = bytearray(
            batch_bytes(
                content,
                codec=part.codec,
                attributes=part.attributes,
                producer=(part.producer, 0, 0),
                leader_epoch=part.epoch,
            )
        )
        source[-1] ^= part.spoilt
        data += source
        offset += part.records
    return data


def is_plain(source: Batch) -> bool:
    return (
        len(source.data) <= SMALL_BYTES
        and source.attributes & ~7 == 0
        and source.record_count == source.last_offset_delta + 1
        and source.base_timestamp >= 0
        and crc_is_right(source.data)
    )


def groups_of(batches: Sequence[Batch], *, any_producer: bool) -> list[list[Batch]]:
    """What belongs together, said once more."""
    result: list[list[Batch]] = []
    for source in batches:
        last = result[-1][-1] if result else None
        if (
            last is not None
            and is_plain(last)
            and is_plain(source)
            and last.last_offset + 1 == source.base_offset
            and (last.attributes, last.leader_epoch) == (source.attributes, source.leader_epoch)
            and (any_producer or last.producer_id == source.producer_id)
            and sum(len(each.data) for each in (*result[-1], source)) <= MERGED_BYTES
        ):
            result[-1].append(source)
        else:
            result.append([source])
    return result


parts = st.builds(
    Part,
    records=st.sampled_from((1, 1, 1, 2, 5)),
    codec=st.sampled_from((LZ4, LZ4, LZ4, 0, GZIP)),
    attributes=st.sampled_from((*[0] * 8, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL | TRANSACTIONAL, DELETE_HORIZON)),
    producer=st.sampled_from((-1, -1, 7)),
    epoch=st.sampled_from((3, 3, 3, 4)),
    gap=st.sampled_from((0, 0, 0, 2)),
    size=st.sampled_from((0, 3, 3, 3, 3990, 5000)),
    timestamp=st.sampled_from((NOW, NOW, NOW + 50, NOW - 50, 0, -1)),
    spoilt=st.sampled_from((False, False, False, True)),
)


@needs_compiled
@given(parts=st.lists(parts, max_size=14), any_producer=st.booleans())
def test_groups_are_the_small_batches_that_belong_together(parts: list[Part], any_producer: bool) -> None:
    data = log_of(parts)
    apart = [source._replace(following_offset=-1) for source in scan(data)]
    wanted = groups_of(apart, any_producer=any_producer)
    result = list(scan_groups(data, any_producer=any_producer))
    assert [[source._replace(following_offset=-1) for source in scan(each.data)] for each in result] == wanted
    firsts = [each.base_offset for each in result if each.magic == 2]
    assert [each.following_offset for each in result] == [*firsts[1:], -1][: len(result)]
    for each, batches in zip(result, wanted, strict=True):
        first, last = batches[0], batches[-1]
        assert (each.batches, each.record_count) == (len(batches), sum(source.record_count for source in batches))
        assert (each.base_offset, each.last_offset) == (first.base_offset, last.last_offset)
        assert (each.leader_epoch, each.attributes, each.magic) == (first.leader_epoch, first.attributes, 2)
        assert each.producer_id == first.producer_id
        assert each.base_timestamp == (
            min(source.base_timestamp for source in batches) if len(batches) > 1 else first[7]
        )
        assert each.max_timestamp == (max(source.max_timestamp for source in batches) if len(batches) > 1 else first[8])


@needs_compiled
@pytest.mark.parametrize("cut", [1, 5, HEADER_SIZE + 5])
def test_a_batch_that_is_cut_off_is_in_no_group(cut: int) -> None:
    data = log_of([Part()] * 4)
    (result,) = scan_groups(data[:-cut], any_producer=True)
    assert result.batches == 3


@needs_compiled
def test_a_group_ends_where_it_would_be_too_large() -> None:
    data = log_of([Part(size=3000, codec=0)] * 50)
    result = list(scan_groups(data, any_producer=True))
    assert [each.batches for each in result] == [21, 21, 8]
    assert all(len(each.data) <= MERGED_BYTES for each in result)


def test_each_batch_comes_by_itself_without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "find_compiled", lambda: None)
    data = log_of([Part()] * 4)
    assert list(scan_groups(data, any_producer=True)) == list(scan(data))


@needs_compiled
@pytest.mark.parametrize("given", [(b"", 1, 9, 9, True), (b"", -1, 9, 9, True), (b"", 0, 9, 9), ("", 0, 9, 9, True)])
def test_gather_refuses_what_it_cannot_read(given: tuple[object, ...]) -> None:
    compiled = find_compiled()
    assert compiled is not None
    with pytest.raises((ValueError, TypeError)):
        compiled.gather(*given)


def waiting_of(data: bytes) -> deque[OutgoingBatch]:
    return deque(as_outgoing(each) for each in scan_groups(data, any_producer=True))


@needs_compiled
@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=20),
    codec=st.sampled_from(CODECS),
    gaps=st.sets(st.integers(1, 19)),
)
def test_groups_are_merged_to_what_their_batches_are_merged_to(sizes: list[int], codec: int, gaps: set[int]) -> None:
    shapes = [Part(count, codec, gap=2 * (i in gaps), timestamp=NOW - i) for i, count in enumerate(sizes)]
    data = log_of(shapes)
    waiting = waiting_of(data)
    merged, size = next_outgoing(waiting, TargetLimits())
    assert (size, merged.batches, list(waiting)) == (len(data), 1, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_rebuild, "find_compiled", lambda: None)
        alone, _ = next_outgoing(deque(as_outgoing(each) for each in scan(data)), TargetLimits())
    assert merged == alone


@needs_compiled
def test_a_group_with_records_that_cannot_be_read_is_taken_apart() -> None:
    spoilt = bytearray(log_of([Part(codec=0)], first=12))
    spoilt[HEADER_SIZE] = 0xFF
    data = log_of([Part(codec=0)] * 2) + spoilt
    apart = list(scan(data))
    whole = as_outgoing(apart[0]._replace(data=memoryview(data), record_count=3, batches=3))
    whole.covers, whole.leader_epoch, whole.producer_id = 20, 9, 4
    waiting = deque([whole, as_outgoing(batch([record(21)]))])
    result = []
    while waiting:
        result.append(next_outgoing(waiting, TargetLimits()))
    assert [(bytes(each.data), each.covers, size) for each, size in result] == [
        (bytes(apart[0].data), 10, len(apart[0].data)),
        (bytes(apart[1].data), 11, len(apart[1].data)),
        (bytes(apart[2].data), 20, len(apart[2].data)),
        (batch_bytes([record(21)]), 21, len(batch_bytes([record(21)]))),
    ]
    assert [(each.producer_id, each.leader_epoch) for each, _ in result] == [(4, 3), (4, 3), (4, 9), (-1, 3)]


@needs_compiled
def test_a_group_above_the_limit_is_taken_apart() -> None:
    data = log_of([Part()] * 9)
    each = len(data) // 9
    waiting = waiting_of(data)
    sizes = []
    while waiting:
        outgoing, size = next_outgoing(waiting, TargetLimits(max_bytes=4 * each))
        sizes.append((outgoing.count, size))
    assert sizes == [(1, each), (4, 4 * each), (4, 4 * each)]


@needs_compiled
def test_groups_that_wait_are_merged_with_their_neighbours() -> None:
    first, second = log_of([Part()] * 3), log_of([Part()] * 2, first=13)
    waiting = waiting_of(first) + waiting_of(second) + deque([as_outgoing(batch([record(15)], codec=LZ4))])
    merged, size = next_outgoing(waiting, TargetLimits())
    assert list(merged.offsets) == [10, 11, 12, 13, 14, 15]
    assert [r.offset for r in decoded(merged.data, 10)] == list(merged.offsets)
    assert size > len(first) + len(second)
    assert not waiting


def _java_frame(raw: bytes) -> bytes:
    """As Java's producer writes it: no checksums behind blocks. These are stored as they are."""
    stored = b"".join(
        struct.pack("<I", len(raw[start : start + JAVAS_BLOCK]) | 1 << 31) + raw[start : start + JAVAS_BLOCK]
        for start in range(0, len(raw), JAVAS_BLOCK)
    )
    return bytes.fromhex("04224d18604082") + stored + bytes(4)


JOINED = ("Java's", "checksums of blocks")
"""The kinds of frames whose blocks are put into one."""
FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "Java's": _java_frame,
    "blocks that need each other": lambda raw: bytes(cramjam.lz4.compress(raw)),
    "a checksum of the content": lambda raw: _frame(raw, content_checksum=True, block_linked=False),
    "checksums of blocks": lambda raw: _frame(raw, content_checksum=False, block_linked=False),
}


def _frame(raw: bytes, **how: bool) -> bytes:
    compressor = cramjam.lz4.Compressor(level=0, **how)
    compressor.compress(raw)
    return bytes(compressor.finish())


@needs_compiled
@pytest.mark.parametrize("first", FRAMES)
@pytest.mark.parametrize("second", FRAMES)
def test_lz4_frames_of_any_kind_are_read(first: str, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    group = []
    for number, how in enumerate((first, second)):
        monkeypatch.setattr("tests.support.batch_bytes.COMPRESS", {LZ4: FRAMES[how]})
        content = [record(2 * number + i, bytes(9) * 30_000, timestamp=NOW) for i in range(2)]
        group.append(as_outgoing(batch(content, codec=LZ4)))
    compiled = find_compiled()
    assert compiled is not None
    assert (compiled.join_frames([each.data for each in group]) is not None) == (first == second and first in JOINED)
    joined = join_batches(group, LZ4, JAVAS_LEVELS, UNPACKED_AT_MOST)
    assert joined is not None
    assert [(r.offset, r.value) for r in decoded(joined.data)] == [(i, bytes(9) * 30_000) for i in range(4)]


@needs_compiled
@given(
    counts=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    codec=st.sampled_from((0, LZ4)),
    places=st.lists(st.integers(0, 10**6), min_size=1, max_size=3),
    values=st.lists(st.integers(0, 255), min_size=3, max_size=3),
)
def test_spoilt_groups_are_left_alone_or_equal_the_decoded_ones(
    counts: list[int], codec: int, places: list[int], values: list[int]
) -> None:
    data = bytearray(log_of([Part(count, codec) for count in counts]))
    for place, value in zip(places, values, strict=False):
        data[place % len(data)] = value
    compiled = find_compiled()
    assert compiled is not None
    batches = _batches(bytes(data))
    if sum(len(source.data) for source in batches) != len(data):
        assert compiled.join_frames([bytes(data)]) is None
        assert compiled.join([bytes(data)], None) is None
        return
    if any(source.attributes & 7 != codec for source in batches):
        return  # such batches are never merged
    group = [as_outgoing(source) for source in batches]
    joined = join_batches(group, codec, JAVAS_LEVELS, MERGED_UNPACKED)
    if joined is not None:
        contents = [r for source in group for r in decoded(source.data)]
        assert [r._replace(offset=0) for r in decoded(joined.data)] == [r._replace(offset=0) for r in contents]


def _batches(data: bytes) -> list[Batch]:
    """Those of format 2 at the beginning."""
    result: list[Batch] = []
    with suppress(ValueError):
        result += takewhile(lambda source: source.magic == 2, scan(data))
    return result


def test_headers_count_against_what_is_merged() -> None:
    headers = [("h", b"x" * (MERGED_UNPACKED // 4))]
    group = [as_outgoing(batch([record(offset, b"v", headers=headers)], codec=GZIP)) for offset in range(8)]
    with pytest.raises(CorruptRecordError):
        coalesce._merge_decoded(group, GZIP, JAVAS_LEVELS)
    assert coalesce._merge_decoded(group[:2], GZIP, JAVAS_LEVELS).count == 2
