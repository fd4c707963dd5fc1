"""Header names that are no text: rare, legal to a broker, and copied byte by byte also where a batch is rebuilt."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.append_sequence import AppendSequence
from lockstep_data_plane.record_batch import pure_python_codec
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import decompress
from lockstep_data_plane.record_batch.layout import CODEC_MASK, HEADER_SIZE, Batch, CorruptRecordError, scan
from lockstep_data_plane.record_batch.outgoing_batch import as_outgoing
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records, rebuild
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, ZSTD, batch, decoded, record, record_lists

PLACEHOLDER = b"name-that-is-text"
NO_TEXT = b"\xff\xfe\x80 \xc3("


def with_odd_names(content: list[PlainRecord], **more: int) -> Batch:
    """The batch with `NO_TEXT`, padded, wherever a name is the placeholder."""
    raw = bytes(batch(content, **more).data)
    (result,) = scan(raw.replace(PLACEHOLDER, NO_TEXT.ljust(len(PLACEHOLDER), b"\x81")))
    return result


def plain(source: Batch) -> Iterator[PlainRecord]:
    """Its records, by plain Python."""
    unpacked = decompress(source.data[HEADER_SIZE:], source.attributes & CODEC_MASK)
    return pure_python_codec.read_plain_records(source, unpacked)


def odd() -> list[PlainRecord]:
    name = PLACEHOLDER.decode()
    return [record(0, b"1"), record(1, None, headers=[(name, b"x"), ("h", None), (name, b"")]), record(3, b"2")]


@given(content=record_lists(), codec=st.sampled_from([0, GZIP, SNAPPY, LZ4, ZSTD]), append_time=st.booleans())
def test_pure_python_codec_reads_what_the_compiled_one_reads(
    content: list[PlainRecord], codec: int, append_time: bool
) -> None:
    source = batch(content, codec=codec, attributes=LOG_APPEND_TIME if append_time else 0, max_timestamp=99)
    expected = [PlainRecord(*r[:4], tuple(r.headers)) for r in read_records(source)]
    assert list(plain(source)) == expected


@given(content=record_lists())
def test_pure_python_codec_reads_back_what_it_writes(content: list[PlainRecord]) -> None:
    assert decoded(bytes(pure_python_codec.encode(content))) == [r._replace(offset=i) for i, r in enumerate(content)]


@pytest.mark.parametrize("codec", [0, GZIP, ZSTD])
def test_a_rebuilt_batch_keeps_the_bytes_of_a_name_that_is_no_text(codec: int) -> None:
    source = with_odd_names(odd())
    (outgoing,) = rebuild(source, 0, TargetLimits(codec=codec))
    (copy,) = scan(outgoing.data)
    copied, expected = list(plain(copy)), list(plain(source))
    assert [r[1:] for r in copied] == [r[1:] for r in expected]
    written = copied[1].headers[0][0].encode(*pure_python_codec.NAMES)
    assert written == NO_TEXT.ljust(len(PLACEHOLDER), b"\x81")


def test_merged_batch_keeps_header_names_that_are_no_utf8() -> None:
    append_sequence = AppendSequence(1, 0, -1, -1)
    for r in odd():
        append_sequence.enqueue(as_outgoing(with_odd_names([r])))
    sent = append_sequence.launch(TargetLimits())
    (copy,) = scan(bytes(sent.data))
    assert sent.outgoing.count == 3
    assert bytes(copy.data).count(NO_TEXT) == 2


@pytest.mark.parametrize("cut", range(1, 12))
def test_records_that_end_in_the_middle_are_refused(cut: int) -> None:
    raw = bytearray(batch([record(0, b"value", headers=[("h", b"x")])]).data)[:-cut]
    raw[8:12] = struct.pack(">i", len(raw) - 12)
    (bad,) = scan(bytes(raw))
    with pytest.raises(CorruptRecordError):
        list(plain(bad))
