"""A batch that a transform made is read back with the offsets that its records had on the source."""

import pytest
from hypothesis import given

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import UNPACKED_AT_MOST
from lockstep_data_plane.record_batch.gapped_batch import as_gapped_batch, gapped_batch, in_format_2
from lockstep_data_plane.record_batch.layout import CorruptRecordError, GappedOffsets
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build, read_records, rebuild
from tests.support.batch_bytes import GZIP, LZ4, SNAPPY, ZSTD, batch, crc_is_right, record, record_lists
from tests.support.message_sets import Message, message_set, sets


@given(record_lists())
def test_records_are_read_back_at_their_offsets(content: list[PlainRecord]) -> None:
    made = gapped_batch(content, content[-1].offset + 3, 7)
    assert list(read_records(made)) == content
    assert (made.base_offset, made.last_offset, made.leader_epoch) == (content[0].offset, content[-1].offset + 3, 7)
    assert made.record_count == len(content)
    assert crc_is_right(made.data)


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_without_gaps_gets_back_the_gaps_and_keeps_its_codec(codec: int) -> None:
    content = [record(3), record(4, b"x" * 100), record(9, None)]
    (outgoing,) = build(content, codec, 1_000_000, 5)
    made = as_gapped_batch(outgoing, 12, 6)
    assert list(read_records(made)) == content
    assert made.attributes & 7 == codec
    (again,) = rebuild(made, 4, TargetLimits())
    assert (list(again.offsets), again.covers, again.leader_epoch) == ([4, 9], 12, 6)


def test_other_numbers_of_offsets_and_records_are_damage() -> None:
    (outgoing,) = build([record(3), record(4)], 0, 1_000_000, 5)
    outgoing.offsets = GappedOffsets(((3, 0, 1),))
    with pytest.raises(CorruptRecordError):
        as_gapped_batch(outgoing, 4, 5)


def test_an_old_format_becomes_the_present_one() -> None:
    present = batch([record(1), record(3)])
    assert in_format_2(present, UNPACKED_AT_MOST) is present
    (old,) = sets(message_set(1, [Message(5, b"k", b"a", 9), Message(6, None, b"b", 9)], GZIP))
    made = in_format_2(old, UNPACKED_AT_MOST)
    assert made is not None
    assert made.magic == 2
    assert [(r.offset, r.value) for r in read_records(made)] == [(5, b"a"), (6, b"b")]
