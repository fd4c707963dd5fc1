"""Varints, compared with a byte-by-byte writer."""

import pytest

from lockstep_state.codecs.varint import encode_zigzag, unsigned
from tests.support.batch_bytes import varint


def written(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    rest, last = divmod(value, 0x80), b""
    while rest[0]:
        last += bytes([rest[1] | 0x80])
        rest = divmod(rest[0], 0x80)
    return last + bytes([rest[1]])


@pytest.mark.parametrize("bits", range(32))
def test_unsigned_numbers_at_each_length_are_as_short_as_can_be(bits: int) -> None:
    for value in {(1 << bits) - 1, 1 << bits, (1 << bits) + 1}:
        assert unsigned(value) == written(value)


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 8191, -8192, 8192, 1 << 20, -(1 << 20) - 1, 1 << 40])
def test_zigzag_numbers_are_those_of_the_message_format(value: int) -> None:
    assert encode_zigzag(value) == varint(value)
