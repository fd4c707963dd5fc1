"""A batch that passed is found to be equal by its bytes or by its CRC; anything else about it makes it another one."""

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.layout import Batch, scan, stamp
from lockstep_data_plane.verify.batch_comparison import Depth, is_copy, is_empty, stamp_difference
from tests.support.batch_bytes import CONTROL, DELETE_HORIZON, LZ4, TRANSACTIONAL, batch, batch_bytes, records

CLOSE = (Depth.CRC, Depth.BYTES)


def stamped(source: Batch, producer: tuple[int, int, int] = (4711, 3, 77), *, transactional: bool = False) -> Batch:
    """As the data plane appends it, and a broker stores it at another offset."""
    data = bytearray(bytes(stamp(source.data, *producer, transactional=transactional)))
    data[0:8] = (900).to_bytes(8, "big")
    data[12:16] = (12).to_bytes(4, "big")
    (result,) = scan(bytes(data))
    return result


@pytest.mark.parametrize("depth", CLOSE)
@pytest.mark.parametrize("attributes", [0, TRANSACTIONAL, DELETE_HORIZON])
@pytest.mark.parametrize("codec", [0, LZ4])
@pytest.mark.parametrize("transactional", [False, True])
def test_stamped_batch_of_any_attributes_is_a_copy(
    depth: Depth, attributes: int, codec: int, transactional: bool
) -> None:
    source = batch(records(5, 20), codec=codec, attributes=attributes)
    assert is_copy(source, stamped(source, transactional=transactional), depth)


def test_record_depth_decides_nothing_by_batches() -> None:
    source = batch(records(5, 20))
    assert not is_copy(source, stamped(source), Depth.RECORD)


@given(
    at=st.integers(23, 42) | st.integers(57, 300),
    flip=st.integers(1, 255),
    count=st.integers(10, 40),
    depth=st.sampled_from(CLOSE),
)
def test_changed_byte_outside_the_stamp_makes_another_batch(at: int, flip: int, count: int, depth: Depth) -> None:
    source = batch(records(5, count))
    data = bytearray(stamped(source).data)
    at = at if at < 57 else 57 + at % (len(data) - 57)
    data[at] ^= flip
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    (damaged,) = scan(bytes(data))
    assert not is_copy(source, damaged, depth)


@given(
    producer=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 32767), st.integers(0, 2**31 - 1)),
    before=st.tuples(st.integers(-1, 2**63 - 1), st.integers(-1, 32767), st.integers(-1, 2**31 - 1)),
    count=st.integers(1, 200),
)
def test_stamp_difference_is_that_of_both_crcs(
    producer: tuple[int, int, int], before: tuple[int, int, int], count: int
) -> None:
    source = batch(records(0, count), producer=before, attributes=TRANSACTIONAL)
    target = stamped(source, producer)
    assert source.crc ^ target.crc == stamp_difference(source.data, target.data)


def test_stamp_difference_of_a_batch_beyond_a_megabyte_is_exact() -> None:
    (large,) = scan(batch_bytes([record._replace(value=bytes(3_000_000)) for record in records(0, 1)]))
    target = stamped(large)
    assert large.crc ^ target.crc == stamp_difference(large.data, target.data)


def test_batch_with_gaps_in_its_offsets_is_no_copy_as_it_is() -> None:
    source = batch(records(5, 20), last_offset=30)
    assert not is_copy(source, stamped(source), Depth.BYTES)


def test_control_and_emptied_batches_have_no_records() -> None:
    assert is_empty(batch(records(0, 1), attributes=CONTROL))
    assert is_empty(batch([], base_offset=3, last_offset=9))
    assert not is_empty(batch(records(0, 1)))
