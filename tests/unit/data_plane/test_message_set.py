"""Message sets of format 0 and 1 become batches of format 2 that say the same, in the codec they had."""

import gzip
import struct
from collections.abc import Sequence

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import CODEC_MASK, CorruptRecordError, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records, rebuild
from tests.support.batch_bytes import GZIP, LZ4, SNAPPY, decoded, few_bytes
from tests.support.message_sets import Message, message, message_set, sets, stored_lz4, with_the_wrong_checksum

SHAPES = [(magic, codec) for magic in (0, 1) for codec in (0, GZIP, SNAPPY, LZ4)]


@st.composite
def contents(draw: st.DrawFn) -> list[Message]:
    """Messages in offset order, with the gaps that the cleaner leaves."""
    offset, result = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 6))):
        result.append(Message(offset, draw(few_bytes), draw(few_bytes), draw(st.integers(-1, 2**41))))
        offset += draw(st.sampled_from([1, 1, 3]))
    return result


def seen(magic: int, content: Sequence[Message]) -> list[PlainRecord]:
    """What a consumer of the source sees."""
    return [PlainRecord(m.offset, m.timestamp if magic else -1, m.key, m.value, ()) for m in content]


def rebuilt(data: bytes, position: int = 0, limits: TargetLimits | None = None) -> list[PlainRecord]:
    result = []
    for source in sets(data):
        made = rebuild(source, position, limits or TargetLimits())
        assert [outgoing.covers for outgoing in made[-1:]] in ([], [source.base_offset]), "that of the last message"
        for outgoing in made:
            inside = decoded(outgoing.data)
            result += [r._replace(offset=upstream) for r, upstream in zip(inside, outgoing.offsets, strict=True)]
    return result


@pytest.mark.parametrize(("magic", "codec"), SHAPES)
@given(content=contents(), skip=st.integers(-1, 12))
def test_each_record_is_what_a_consumer_of_the_source_sees(
    magic: int, codec: int, content: list[Message], skip: int
) -> None:
    position = content[0].offset + skip
    wanted = [r for r in seen(magic, content) if r.offset >= position]
    assert rebuilt(message_set(magic, content, codec), position) == wanted


@pytest.mark.parametrize(("magic", "codec"), SHAPES)
def test_the_codec_stays_so_that_the_copy_does_not_grow(magic: int, codec: int) -> None:
    content = [Message(i, b"key", b"the same value again and again", 1000 + i) for i in range(100)]
    data = message_set(magic, content, codec)
    outgoing_batches = [outgoing for source in sets(data) for outgoing in rebuild(source, 0, TargetLimits())]
    for outgoing in outgoing_batches:
        (result,) = scan(outgoing.data)
        assert result.attributes & CODEC_MASK == codec
    if codec:
        assert sum(outgoing.size for outgoing in outgoing_batches) < len(message_set(magic, content)) / 5


@pytest.mark.parametrize("magic", [0, 1])
def test_an_explicit_codec_goes_to_uncompressed_sets_only(magic: int) -> None:
    content = [Message(0, b"k", b"v" * 100, 7)]
    for had, codec in ((0, LZ4), (GZIP, GZIP)):
        (source,) = sets(message_set(magic, content, had))
        (outgoing,) = rebuild(source, 0, TargetLimits(codec=LZ4))
        (result,) = scan(outgoing.data)
        assert result.attributes == codec


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4])
def test_message_set_under_log_append_time_has_the_wrappers_timestamp(codec: int) -> None:
    content = [Message(5, b"a", b"1", 10), Message(6, b"b", b"2", 20)]
    if not codec:
        content = [m._replace(timestamp=99_000) for m in content]
    data = message_set(1, content, codec, append_time=99_000)
    assert [r.timestamp for r in rebuilt(data)] == [99_000, 99_000]


def test_message_set_v0_lz4_with_a_wrong_checksum_is_read() -> None:
    frame = cramjam.lz4.compress(b"content")
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(with_the_wrong_checksum(bytes(frame)))
    large = [Message(i, None, bytes(range(256)) * 40) for i in range(30)]  # several blocks
    assert rebuilt(message_set(0, large, LZ4)) == seen(0, large)


def test_a_block_that_is_stored_and_not_compressed_is_read() -> None:
    inside = message(0, Message(3, b"k", b"v"))
    (source,) = sets(message(0, Message(3, None, stored_lz4(inside)), LZ4))
    assert [r[:4] for r in read_records(source)] == [(3, -1, b"k", b"v")]


@pytest.mark.parametrize(("magic", "codec"), SHAPES)
def test_message_set_with_a_wrong_bit_behind_the_crc_is_refused(magic: int, codec: int) -> None:
    data = bytearray(message_set(magic, [Message(0, b"k", b"v", 5)], codec))
    data[-1] ^= 1
    (damaged,) = sets(bytes(data))
    with pytest.raises(CorruptRecordError, match="CRC"):
        rebuild(damaged, 0, TargetLimits())


@pytest.mark.parametrize("magic", [0, 1])
def test_a_compressed_set_inside_a_compressed_set_is_refused(magic: int) -> None:
    inside = message_set(magic, [Message(0, b"k", b"v", 5)], GZIP)
    (twice,) = sets(message(magic, Message(0, None, gzip.compress(inside), 5), GZIP))
    with pytest.raises(ValueError, match="double-compressed"):
        rebuild(twice, 0, TargetLimits())


@pytest.mark.parametrize("frame", [b"", b"no frame at all", struct.pack("<IBB", 0x184D2204, 0x60, 0x40) + b"\0" * 2])
def test_an_lz4_value_that_is_no_frame_is_refused(frame: bytes) -> None:
    (bad,) = sets(message(0, Message(0, None, frame), LZ4))
    with pytest.raises(ValueError, match=r"no lz4 frame|cannot be decompressed"):
        rebuild(bad, 0, TargetLimits())
