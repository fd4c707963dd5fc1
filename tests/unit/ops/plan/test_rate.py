"""Rates and sizes as people write them."""

import pytest

from lockstep_ops.plan.rules.rate import parse_rate, rate_text, size_text


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MB/s", 50_000_000),
        ("50mb/s", 50_000_000),
        ("1.5 GB/s", 1_500_000_000),
        ("400MiB/s", 400 << 20),
        ("2GiB", 2 << 30),
        ("10kB", 10_000),
        ("512", 512),
        ("512 B/s", 512),
    ],
)
def test_rate_is_read_with_its_unit(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "0MB/s", "-1MB/s", "50 MB per second", "50TB/s", "0.1B"])
def test_rate_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write it as 50MB/s"):
        parse_rate(text)


def test_sizes_are_shown_in_powers_of_ten() -> None:
    assert [size_text(size) for size in (0, 999, 1000, 1_500_000, 41_200_000_000, 2 * 10**12)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.5 MB",
        "41.2 GB",
        "2 TB",
    ]
    assert rate_text(50_000_000) == "50 MB/s"
