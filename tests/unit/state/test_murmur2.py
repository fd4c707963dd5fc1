"""Kafka's vectors of murmur2 and of the default partitioner."""

import pytest

from lockstep_state.codecs.murmur2 import murmur2, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(text: str, expected: int) -> None:
    assert murmur2(text.encode()) == expected


def test_the_sign_bit_is_dropped_before_dividing() -> None:
    assert partition_for(b"21", 25) == (-973932308 & 0x7FFFFFFF) % 25
    assert partition_for(b"abc", 25) == 479470107 % 25


def test_every_key_goes_to_the_only_partition() -> None:
    assert {partition_for(bytes(range(n)), 1) for n in range(9)} == {0}


def test_no_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(b"k", 0)
