"""Partitions side by side get as much each, and what a finished one leaves goes to the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_ops.plan.rules.shared_rate import SharedRate

SIZES = st.lists(st.integers(1, 10**9), min_size=1, max_size=20)


def test_shared_rate_of_one_partition_is_the_whole_rate() -> None:
    curve = SharedRate.of_partitions([1000], 100.0)
    assert curve.time_for(1000) == 10
    assert curve.copied_by(5) == 500


def test_shared_rate_of_a_finished_partition_goes_to_the_others() -> None:
    curve = SharedRate.of_partitions([100, 300], 100.0)
    assert curve.time_for(100) == 2
    assert curve.time_for(300) == 4, "200 bytes at half the rate, then 200 at the whole"
    assert curve.time_until_share(50) == 0
    assert curve.time_until_share(100) == 2
    assert curve.time_until_share(101) is None


def test_shared_rate_of_equal_partitions_has_one_corner() -> None:
    curve = SharedRate.of_partitions([100, 100, 100], 30.0)
    assert curve.times == (0,)
    assert curve.time_for(100) == 10


def test_shared_rate_without_bytes_needs_no_time() -> None:
    curve = SharedRate.of_partitions([0, 0], 30.0)
    assert curve.time_for(0) == 0
    assert curve.copied_by(5) == 0
    assert curve.time_until_share(1) is None


@given(SIZES, st.integers(1, 10**8))
def test_shared_rate_copies_everything_at_the_rate(sizes: list[int], rate: int) -> None:
    curve = SharedRate.of_partitions(sizes, rate)
    assert curve.time_for(max(sizes)) == pytest.approx(sum(sizes) / rate, rel=1e-6)


@given(SIZES, st.integers(1, 10**8))
def test_shared_rate_curve_is_the_inverse_of_its_times(sizes: list[int], rate: int) -> None:
    curve = SharedRate.of_partitions(sizes, rate)
    for size in sizes:
        assert curve.copied_by(curve.time_for(size)) == pytest.approx(size, rel=1e-6)
