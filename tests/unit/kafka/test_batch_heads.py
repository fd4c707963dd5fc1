"""The headers of batches that a plan reads, without their records."""

import pytest

from lockstep_kafka.session.batch_heads import BatchHead, _heads
from lockstep_state.kafka.batch_codecs import CODEC_NAMES
from tests.support.batch_bytes import COMPRESS, CONTROL, TRANSACTIONAL, batch_bytes, records

FIRST, SECOND = batch_bytes(records(5, 3), codec=4), batch_bytes(records(8, 2), last_offset=20)
FOUND = (BatchHead("zstd", 5, 7, 3, len(FIRST)), BatchHead("none", 8, 20, 2, len(SECOND)))
OLD = FIRST[:16] + b"\x01" + FIRST[17:]


@pytest.mark.parametrize("codec", COMPRESS)
def test_codec_is_read_of_the_attributes(codec: int) -> None:
    (head,) = _heads(batch_bytes(records(0, 4), codec=codec, attributes=TRANSACTIONAL))
    assert (head.codec, head.records) == (CODEC_NAMES[codec], 4)


@pytest.mark.parametrize(
    ("log", "heads"),
    [
        pytest.param(FIRST + SECOND, FOUND, id="two batches"),
        pytest.param(FIRST + SECOND[:-1], FOUND[:1], id="the second is cut off"),
        pytest.param(FIRST + SECOND[:40], FOUND[:1], id="its header is cut off"),
        pytest.param(batch_bytes(records(0, 1), attributes=CONTROL) + FIRST, FOUND[:1], id="a marker in front"),
        pytest.param(batch_bytes(records(0, 1), attributes=5) + FIRST, FOUND[:1], id="a codec of no number"),
        pytest.param(OLD + FIRST, (), id="an older format"),
        pytest.param(FIRST[:8] + bytes(4) + FIRST[12:], (), id="a length that cannot be right"),
        pytest.param(b"", (), id="nothing"),
    ],
)
def test_heads_are_those_of_whole_batches_of_records(log: bytes, heads: tuple[BatchHead, ...]) -> None:
    assert tuple(_heads(log)) == heads
