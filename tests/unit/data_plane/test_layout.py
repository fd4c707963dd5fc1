"""A log is scanned for its whole batches (`architecture.md` §5, "Batch facts")."""

import struct

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.layout import scan
from tests.support.batch_bytes import CONTROL, LZ4, batch_bytes, records


def old(magic: int) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 10_000)
    builder.append(0, 5 if magic else None, b"k", b"v")
    return bytes(builder.build())


def test_each_field_of_the_header_is_read_from_its_place() -> None:
    content = records(40, 3)
    (result,) = scan(batch_bytes(content, last_offset=44, codec=LZ4, attributes=CONTROL, producer=(7, 2, 99)))
    assert result[1:4] == (40, 3, 2)
    assert result.attributes == LZ4 | CONTROL
    assert (result.last_offset_delta, result.last_offset, result.record_count) == (4, 44, 3)
    assert (result.base_timestamp, result.max_timestamp) == (1040, 1042)
    assert (result.producer_id, result.producer_epoch, result.base_sequence) == (7, 2, 99)


def test_a_batch_holds_exactly_its_own_bytes() -> None:
    first, second = batch_bytes(records(0, 2)), batch_bytes(records(2, 1))
    assert [bytes(b.data) for b in scan(first + second)] == [first, second]


@given(counts=st.lists(st.integers(1, 4), max_size=5), cut=st.floats(0, 1))
def test_a_log_cut_anywhere_scans_to_the_batches_that_are_whole(counts: list[int], cut: float) -> None:
    batches, offset = [], 0
    for count in counts:
        batches.append(batch_bytes(records(offset, count)))
        offset += count
    log = b"".join(batches)
    end = round(cut * len(log))
    whole = [b for i, b in enumerate(batches) if sum(map(len, batches[: i + 1])) <= end]
    assert [bytes(b.data) for b in scan(log[:end])] == whole


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_message_set_is_seen_and_its_length_respected(magic: int) -> None:
    new = batch_bytes(records(1, 1))
    first, second = scan(old(magic) + new)
    assert (first.magic, first.base_offset, bytes(first.data)) == (magic, 0, old(magic))
    assert bytes(second.data) == new


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 4])
def test_a_length_that_cannot_be_one_is_refused_and_named(length: int) -> None:
    good = batch_bytes(records(0, 1))
    bad = struct.pack(">qi", 1, length) + bytes(60)
    with pytest.raises(ValueError, match=f"byte {len(good)} says it is {length} bytes"):
        list(scan(good + bad))


def test_a_batch_shorter_than_its_own_header_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter than its own header"):
        list(scan(struct.pack(">qiib", 0, 40, 0, 2) + bytes(60)))
