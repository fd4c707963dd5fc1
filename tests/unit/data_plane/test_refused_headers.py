"""A header whose numbers cannot be right refuses its batch: no CRC covers the format and the first offset."""

import pytest

from lockstep_data_plane.record_batch.classify import BatchCase, TargetLimits, classify
from tests.support.batch_bytes import batch, batch_bytes, records, with_head
from tests.support.message_sets import Message, message, sets


@pytest.mark.parametrize("magic", [3, 4, 127, -1, -128])
def test_batch_of_a_format_above_2_is_refused(magic: int) -> None:
    source = with_head(batch_bytes(records(10, 3)), 16, ">b", magic)
    assert classify(source, 10, TargetLimits(), aborted=False) == BatchCase.UNKNOWN_FORMAT.value


@pytest.mark.parametrize(
    ("base", "is_possible"),
    [(-1, False), (-(2**63), False), (2**63 - 1, False), (2**63 - 2, False), (2**63 - 3, False), (2**63 - 4, True)],
)
def test_batch_whose_offsets_are_no_numbers_of_64_bits_is_refused(base: int, is_possible: bool) -> None:
    source = with_head(batch_bytes(records(10, 3)), 0, ">q", base)
    case = BatchCase.ANY_OTHER if is_possible else BatchCase.IMPOSSIBLE_OFFSETS
    assert classify(source, 0, TargetLimits(), aborted=False) == case.value
    (before,) = sets(message(0, Message(base, b"k", b"v")))
    assert classify(before, 0, TargetLimits(), aborted=False) == (
        BatchCase.OLD_FORMAT.value if 0 <= base < 2**63 - 1 else BatchCase.IMPOSSIBLE_OFFSETS.value
    )


def test_batch_that_ends_before_it_begins_is_refused() -> None:
    source = batch(records(10, 3), last_offset=9)
    assert classify(source, 10, TargetLimits(), aborted=False) == BatchCase.IMPOSSIBLE_OFFSETS.value


@pytest.mark.parametrize(
    ("limit", "unpacked"), [(200, 16 << 20), (1 << 20, 64 << 20), (10 << 20, 128 << 20), (2**31 - 1, 128 << 20)]
)
def test_a_batch_is_unpacked_up_to_64_times_the_targets_limit(limit: int, unpacked: int) -> None:
    assert TargetLimits(limit).unpacked_at_most == unpacked
