"""A stamped batch is ours in its header and the source's in its records (`architecture.md` §5, "Stamp"; `kafka-wire.md`
§0, §1). Compiled code makes the same header as Python does."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch import outgoing_batch
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import CRC_AT, HEADER_SIZE, Batch, scan
from lockstep_data_plane.record_batch.outgoing_batch import add_sequence, expected_crc, stamp, stamped_header
from lockstep_state.offsets import SEQUENCES
from tests.support.batch_bytes import (
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    ZSTD,
    batch_bytes,
    crc_is_right,
    decoded,
    needs_compiled,
    records,
)

GOLDEN_SOURCE = bytes.fromhex(
    "000000000000002a"  # base offset 42
    "00000044"  # 68 bytes follow
    "00000007"  # leader epoch 7
    "02"  # magic
    "66972fdf"  # CRC-32C
    "0040"  # attributes: delete horizon
    "00000001"  # last offset delta 1
    "00000000000003e8"  # base timestamp 1000
    "00000000000003e9"  # max timestamp 1001
    "0000000000000009"  # producer id 9
    "0004"  # producer epoch 4
    "00000011"  # base sequence 17
    "00000002"  # two records
    "12" "00" "00" "00" "02" "6b" "04" "7631" "00"  # k = v1
    "10" "00" "02" "02" "01" "04" "7632" "00"  # no key, v2, 1 ms later
)  # fmt: skip
GOLDEN_STAMPED = bytes.fromhex(
    "0000000000000000"  # base offset 0
    "00000044"
    "00000007"
    "02"
    "600845a5"
    "0000"  # no delete horizon
    "00000001"
    "00000000000003e8"
    "00000000000003e9"
    "0000000000000fa0"  # producer id 4000
    "0001"  # epoch 1
    "0000007b"  # sequence 123
    "00000002"
    "12" "00" "00" "00" "02" "6b" "04" "7631" "00"
    "10" "00" "02" "02" "01" "04" "7632" "00"
)  # fmt: skip

MAKERS = [pytest.param(lambda: None, id="python"), pytest.param(find_compiled, id="compiled", marks=needs_compiled)]


def header(data: bytes) -> Batch:
    (result,) = scan(data)
    return result


@pytest.mark.parametrize("find", MAKERS)
def test_a_batch_of_which_each_byte_is_known(find: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing_batch, "find_compiled", find)
    content = decoded(GOLDEN_SOURCE, 42)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in content] == [
        (42, 1000, b"k", b"v1"),
        (43, 1001, None, b"v2"),
    ]
    assert bytes(stamp(GOLDEN_SOURCE, 4000, 1, 123)) == GOLDEN_STAMPED


def test_the_crc_is_castagnolis_and_begins_at_the_attributes() -> None:
    assert expected_crc(bytes(21) + b"123456789") == 0xE3069283  # the check value of CRC-32C


@given(
    attributes=st.integers(0, 0x7FFF),
    max_timestamp=st.integers(-1, 2**60),
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    sequence=st.integers(0, SEQUENCES - 1),
    count=st.integers(1, 5),
)
def test_only_the_head_our_ids_the_attributes_and_the_crc_change(
    attributes: int, max_timestamp: int, producer_id: int, epoch: int, sequence: int, count: int
) -> None:
    before = batch_bytes(
        records(40, count), attributes=attributes & ~7, max_timestamp=max_timestamp, producer=(5, 6, 7)
    )
    after = bytes(stamp(before, producer_id, epoch, sequence))
    result = header(after)
    assert result.base_offset == 0
    assert (result.producer_id, result.producer_epoch, result.base_sequence) == (producer_id, epoch, sequence)
    assert crc_is_right(after)
    assert result.attributes == attributes & LOG_APPEND_TIME
    untouched = [slice(8, 17), slice(23, 43), slice(57, None)]  # lengths, epoch, magic; deltas and times; the records
    assert [after[part] for part in untouched] == [before[part] for part in untouched]


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        (0, 0),
        (LOG_APPEND_TIME, LOG_APPEND_TIME),
        (DELETE_HORIZON, 0),
        (TRANSACTIONAL, 0),
        (0x4080, 0),
        (LOG_APPEND_TIME | TRANSACTIONAL | DELETE_HORIZON | 0x4080, LOG_APPEND_TIME),
    ],
)
@pytest.mark.parametrize("codec", [0, ZSTD])
def test_codec_and_time_type_stay_every_other_attribute_goes(attributes: int, kept: int, codec: int) -> None:
    stamped = bytes(stamp(batch_bytes(records(0, 2), codec=codec, attributes=attributes), 1, 0, 0))
    assert header(stamped).attributes == kept | codec
    assert [r.value for r in decoded(stamped)] == [b"value-0", b"value-1"]


@needs_compiled
@given(
    body=st.binary(max_size=300) | st.sampled_from((255, 256, 65535, 65536, 1 << 24)).map(bytes),
    attributes=st.integers(-(2**15), 2**15 - 1),
    was=st.tuples(st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(-1, SEQUENCES - 1)),
    producer_id=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 2**15 - 1),
    sequence=st.integers(-1, SEQUENCES - 1),
    transactional=st.booleans(),
)
def test_compiled_header_equals_the_one_that_python_makes(
    body: bytes,
    attributes: int,
    was: tuple[int, int, int],
    producer_id: int,
    epoch: int,
    sequence: int,
    transactional: bool,
) -> None:
    source = bytearray(batch_bytes(records(7, 2), producer=was)[:HEADER_SIZE] + body)
    struct.pack_into(">h", source, 21, attributes)
    struct.pack_into(">I", source, CRC_AT, expected_crc(source))
    stamped = stamp(memoryview(source), producer_id, epoch, sequence, transactional=transactional)
    assert stamped.parts[0] == stamped_header(bytes(source), producer_id, epoch, sequence, transactional)
    assert stamped.parts[1] == body


@needs_compiled
@given(index=st.integers(HEADER_SIZE, HEADER_SIZE + 20), change=st.integers(1, 255))
def test_record_that_changed_after_its_check_has_a_wrong_crc(index: int, change: int) -> None:
    source = bytearray(batch_bytes(records(7, 2)))
    source[index] ^= change
    assert not crc_is_right(bytes(stamp(bytes(source), 4000, 1, 123)))


@needs_compiled
@pytest.mark.parametrize(
    ("given_bytes", "numbers", "error"),
    [
        (bytes(HEADER_SIZE - 1), (1, 0, 0), ValueError),
        (bytes(HEADER_SIZE), (1, 2**15, 0), ValueError),
        (bytes(HEADER_SIZE), (1, 0, SEQUENCES), ValueError),
        (bytes(HEADER_SIZE), (2**63, 0, 0), OverflowError),
        ("text", (1, 0, 0), TypeError),
    ],
)
def test_compiled_stamp_refuses_what_has_no_place_in_a_header(
    given_bytes: bytes, numbers: tuple[int, int, int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        stamp(given_bytes, *numbers)


def test_the_batch_stays_as_it_was() -> None:
    before = bytearray(batch_bytes(records(3, 1)))
    kept = bytes(before)
    stamp(memoryview(before), 1, 0, 0)
    assert bytes(before) == kept


@pytest.mark.parametrize(
    ("sequence", "count", "then"),
    [(-1, 1, 0), (0, 1, 1), (SEQUENCES - 1, 1, 0), (SEQUENCES - 4, 10, 6), (SEQUENCES - 1, SEQUENCES, SEQUENCES - 1)],
)
def test_sequences_count_modulo_two_to_the_31_also_within_a_batch(sequence: int, count: int, then: int) -> None:
    assert add_sequence(sequence, count) == then


@given(st.integers(-1, SEQUENCES - 1), st.integers(0, 2**20), st.integers(0, 2**20))
def test_add_sequence_in_two_steps_equals_one(sequence: int, first: int, second: int) -> None:
    assert add_sequence(add_sequence(sequence, first), second) == add_sequence(sequence, first + second)
