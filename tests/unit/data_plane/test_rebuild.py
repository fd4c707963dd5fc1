"""A rebuilt batch holds the records a consumer of the source sees: key, value, headers, timestamp and order."""

import struct
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import CODEC_MASK, Batch, scan
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch, as_outgoing
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge, build, read_records, rebuild
from tests.support.batch_bytes import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    batch,
    crc_is_right,
    decoded,
    record,
    record_lists,
    records,
)

CODECS = {"none": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}


def plain_records(outgoing_batches: Sequence[OutgoingBatch]) -> list[PlainRecord]:
    """What the outgoing batches say: each record at the upstream offset that its outgoing batch gives it."""
    result = []
    for outgoing in outgoing_batches:
        inside = decoded(outgoing.data)
        assert [r.offset for r in inside] == list(range(outgoing.count)), "offsets within an outgoing batch have no gap"
        assert crc_is_right(outgoing.data)
        result += [r._replace(offset=upstream) for r, upstream in zip(inside, outgoing.offsets, strict=True)]
    return result


def codec_of(outgoing: OutgoingBatch) -> int:
    (result,) = scan(outgoing.data)
    return result.attributes & CODEC_MASK


@given(
    content=record_lists(), codec=st.sampled_from(sorted(CODECS.values())), ends_later=st.integers(0, 5), data=st.data()
)
def test_rebuilt_batch_is_read_as_its_source_from_the_position(
    content: list[PlainRecord], codec: int, ends_later: int, data: st.DataObject
) -> None:
    last = content[-1].offset + ends_later
    source = batch(content, codec=codec, last_offset=last)
    position = data.draw(st.integers(content[0].offset - 1, last + 1), label="position")
    outgoing_batches = rebuild(source, position, TargetLimits())
    wanted = [r for r in content if r.offset >= position]
    assert plain_records(outgoing_batches) == wanted
    assert len(outgoing_batches) == (1 if wanted else 0)
    for outgoing in outgoing_batches:
        assert codec_of(outgoing) == codec
        assert outgoing.covers == last
        assert outgoing.leader_epoch == source.leader_epoch
        assert (outgoing.base_timestamp, outgoing.max_timestamp) == (
            min(r.timestamp for r in wanted),
            max(r.timestamp for r in wanted),
        )
        (header,) = scan(outgoing.data)
        assert header.max_timestamp == outgoing.max_timestamp
        assert header.attributes & ~CODEC_MASK == 0


@settings(max_examples=50)
@given(content=record_lists(), codec=st.sampled_from(sorted(CODECS.values())))
def test_rebuilt_batch_reads_back_the_written_records(content: list[PlainRecord], codec: int) -> None:
    assert [PlainRecord(*r[:4], tuple(r.headers)) for r in read_records(batch(content, codec=codec))] == content


def test_rebuilt_batch_under_log_append_time_has_the_consumers_timestamps() -> None:
    source = batch(records(10, 3), attributes=LOG_APPEND_TIME, max_timestamp=77_000)
    (outgoing,) = rebuild(source, 10, TargetLimits())
    assert [r.timestamp for r in plain_records([outgoing])] == [77_000] * 3
    assert (outgoing.base_timestamp, outgoing.max_timestamp) == (77_000, 77_000)


@pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))
def test_a_first_record_without_a_time_keeps_it_when_a_later_one_has_one(codec: int) -> None:
    content = [record(0, timestamp=-1), record(1, timestamp=5000), record(3, timestamp=-1)]
    outgoing_batches = rebuild(batch(content, codec=codec), 0, TargetLimits())
    assert plain_records(outgoing_batches) == content
    assert outgoing_batches[0].max_timestamp == 5000


def test_a_tombstone_and_an_empty_value_stay_apart() -> None:
    content = [record(0, None, key=b""), record(1, b"", key=None), record(3, None, headers=[("h", None), ("h", b"")])]
    assert plain_records(rebuild(batch(content), 0, TargetLimits())) == content


@given(content=record_lists(), limit=st.integers(61, 400), ends_later=st.integers(0, 3))
def test_a_split_obeys_the_limit_keeps_the_order_and_covers_everything(
    content: list[PlainRecord], limit: int, ends_later: int
) -> None:
    source = batch(content, last_offset=content[-1].offset + ends_later)
    alone = {r.offset: len(build([r], 0, 10**6, 0)[0].data) for r in content}
    if max(alone.values()) > limit:
        with pytest.raises(RecordTooLarge) as raised:
            rebuild(source, 0, TargetLimits(limit))
        assert alone[raised.value.record.offset] > limit
        return
    outgoing_batches = rebuild(source, 0, TargetLimits(limit))
    assert plain_records(outgoing_batches) == content
    assert all(outgoing.size <= limit for outgoing in outgoing_batches)
    assert [p.covers for p in outgoing_batches[:-1]] == [p.offsets[-1] for p in outgoing_batches[:-1]]
    assert outgoing_batches[-1].covers == source.last_offset


def test_a_batch_is_not_split_further_than_needed() -> None:
    content = records(0, 8)
    half = len(build(content[:4], 0, 10**6, 0)[0].data)
    assert [p.count for p in rebuild(batch(content), 0, TargetLimits(half))] == [4, 4]


def test_a_single_record_too_large_is_refused_by_its_offset_and_sizes() -> None:
    content = [*records(20, 2), record(22, bytes(500)), *records(23, 2)]
    with pytest.raises(
        RecordTooLarge, match=r"the record at offset 22 needs a batch of 5\d\d bytes.* takes 300 "
    ) as raised:
        rebuild(batch(content), 0, TargetLimits(300))
    assert raised.value.record.offset == 22


@pytest.mark.parametrize("codec", [0, GZIP])
def test_guess_splits_batches_and_refuses_no_single_record(codec: int) -> None:
    content = [*records(20, 2), record(22, bytes(range(256)) * 2), *records(23, 2)]
    outgoing_batches = rebuild(batch(content, codec=codec), 0, TargetLimits(10**6, split_above=250))
    assert plain_records(outgoing_batches) == content
    assert [(p.count, p.offsets[0]) for p in outgoing_batches if p.size > 250] == [(1, 22)]


@pytest.mark.parametrize("asked", CODECS.values(), ids=list(CODECS))
@pytest.mark.parametrize("had", CODECS.values(), ids=list(CODECS))
def test_an_explicit_codec_goes_to_uncompressed_batches_only(had: int, asked: int) -> None:
    (outgoing,) = rebuild(batch(records(0, 5), codec=had), 0, TargetLimits(codec=asked))
    assert codec_of(outgoing) == (had or asked)
    assert plain_records([outgoing]) == records(0, 5)


@pytest.mark.parametrize("codec", range(8))
@settings(max_examples=30)
@given(body=st.one_of(st.binary(max_size=40), st.just(b"\xff" * 40)), keep=st.integers(0, 30))
def test_bytes_that_are_no_records_are_a_value_error(codec: int, body: bytes, keep: int) -> None:
    good = bytearray(batch(records(0, 3), codec=codec if codec in CODECS.values() else 0).data)
    good[22] = codec
    good[61 + keep :] = body
    good[8:12] = struct.pack(">i", len(good) - 12)
    (bad,) = scan(bytes(good))
    with suppress(ValueError):
        assert len(list(read_records(bad))) == 3


def test_a_batch_that_passes_is_its_own_outgoing_batch() -> None:
    source: Batch = batch(records(10, 3))
    outgoing = as_outgoing(source)
    assert bytes(outgoing.data) == bytes(source.data)
    assert (outgoing.count, list(outgoing.offsets), outgoing.covers) == (3, [10, 11, 12], 12)
    assert (outgoing.base_timestamp, outgoing.max_timestamp) == (1010, 1012)
    assert (outgoing.leader_epoch, outgoing.size) == (3, len(source.data))
