"""What is compressed anew has the frame that every Kafka client reads, and levels mean what they mean to Java."""

import pytest
from aiokafka import codec as codecs
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import (
    CODECS,
    GZIP,
    JAVAS_LEVELS,
    LZ4,
    SNAPPY,
    ZSTD,
    CompressionLevels,
    compress,
)
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge, rebuild
from tests.support.batch_bytes import DECOMPRESS, LOG_APPEND_TIME, batch, decoded, record, records


def refusing(*codecs_refused: int) -> TargetLimits:
    return TargetLimits(refused_codecs=frozenset(codecs_refused))


ORDERS = b"".join(b'{"order": %d, "customer": "c-%d", "note": "as ever"}' % (n, n * 7919 % 1000) for n in range(3000))
LEVELS = [
    *((GZIP, CompressionLevels(gzip=level)) for level in (-1, 1, 9)),
    *((LZ4, CompressionLevels(lz4=level)) for level in (1, 9, 12, 17)),
    *((ZSTD, CompressionLevels(zstd=level)) for level in (-7, 1, 3, 19)),
    (SNAPPY, CompressionLevels()),
]


@pytest.mark.parametrize(("codec", "levels"), LEVELS)
@given(payload=st.binary(min_size=1, max_size=300))
def test_each_level_makes_a_frame_that_clients_read(codec: int, levels: CompressionLevels, payload: bytes) -> None:
    assert DECOMPRESS[codec](compress(payload, codec, levels)) == payload


@pytest.mark.parametrize(
    ("codec", "least", "most"),
    [
        (GZIP, CompressionLevels(gzip=1), CompressionLevels(gzip=9)),
        (LZ4, CompressionLevels(lz4=9), CompressionLevels(lz4=17)),
        (ZSTD, CompressionLevels(zstd=-7), CompressionLevels(zstd=19)),
    ],
)
def test_a_higher_level_compresses_harder(codec: int, least: CompressionLevels, most: CompressionLevels) -> None:
    assert len(compress(ORDERS, codec, most)) < len(compress(ORDERS, codec, least))


def test_javas_default_for_lz4_is_the_fast_compressor_whatever_its_number() -> None:
    sizes = {level: len(compress(ORDERS, LZ4, CompressionLevels(lz4=level))) for level in range(1, 18)}
    assert len(compress(ORDERS, LZ4, JAVAS_LEVELS)) == sizes[9] == max(sizes.values())
    assert sorted(sizes.values()).count(sizes[9]) == 1


def test_lz4_blocks_do_not_refer_to_each_other() -> None:
    """Brokers refuse linked blocks."""
    flags = compress(ORDERS, LZ4, JAVAS_LEVELS)[4]
    assert flags & 0x20, "the flag for independent blocks"


def test_snappy_comes_in_the_blocks_of_javas_stream() -> None:
    assert compress(ORDERS, SNAPPY, JAVAS_LEVELS).startswith(b"\x82SNAPPY\0")
    assert codecs.snappy_decode(compress(ORDERS, SNAPPY, JAVAS_LEVELS)) == ORDERS


def test_codec_with_an_unknown_number_is_refused() -> None:
    assert sorted(CODECS.values()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no codec has the number 5"):
        compress(b"", 5, JAVAS_LEVELS)


@pytest.mark.parametrize(
    ("had", "limits", "gets"),
    [
        (0, TargetLimits(codec=ZSTD, recompress=True), ZSTD),
        (GZIP, TargetLimits(codec=ZSTD, recompress=True), ZSTD),
        (GZIP, TargetLimits(recompress=True), 0),
        (ZSTD, refusing(ZSTD), LZ4),
        (LZ4, refusing(LZ4), GZIP),
        (ZSTD, refusing(ZSTD, LZ4), GZIP),
        (GZIP, refusing(GZIP, LZ4), SNAPPY),
        (ZSTD, refusing(ZSTD, LZ4, GZIP, SNAPPY), 0),
        (GZIP, refusing(ZSTD), GZIP),
        (LZ4, TargetLimits(codec=ZSTD, refused_codecs=frozenset({LZ4})), ZSTD),
        (0, TargetLimits(codec=ZSTD, refused_codecs=frozenset({ZSTD})), LZ4),
        (0, TargetLimits(codec=ZSTD, refused_codecs=frozenset({ZSTD, LZ4, GZIP, SNAPPY})), 0),
        (GZIP, TargetLimits(codec=ZSTD), GZIP),
        (GZIP, TargetLimits(), GZIP),
    ],
)
def test_recompressing_changes_the_codec_and_nothing_else(had: int, limits: TargetLimits, gets: int) -> None:
    (outgoing,) = rebuild(batch(records(0, 5), codec=had), 0, limits)
    assert outgoing.data[22] == gets
    assert decoded(outgoing.data) == records(0, 5)


def test_rebuilt_batch_has_the_configured_compression_level() -> None:
    content = records(0, 400)
    sizes = [
        rebuild(batch(content, codec=GZIP), 0, TargetLimits(levels=CompressionLevels(gzip=level)))[0].size
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_record_that_only_fits_when_compressed_hard_is_compressed_hard(codec: int) -> None:
    """Its producer may have done so, and a target that takes what the source has must take the copy."""
    source = batch([record(7, ORDERS)], codec=codec, attributes=LOG_APPEND_TIME)
    easy = rebuild(source, 0, TargetLimits())[0].size
    (outgoing,) = rebuild(source, 0, TargetLimits(easy - 1))
    assert outgoing.size < easy
    assert decoded(outgoing.data)[0].value == ORDERS
    with pytest.raises(RecordTooLarge):
        rebuild(source, 0, TargetLimits(100))
