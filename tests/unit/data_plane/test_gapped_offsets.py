"""Gapped offsets are what a tuple of them is, kept as stretches."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.gapped_offsets import GappedOffsets, stretches_within

steps = st.lists(st.sampled_from((1, 1, 1, 2, 9)), max_size=30)
ascending = steps.map(lambda steps: list(accumulate(steps, initial=7)))


@given(offsets=ascending | st.just([]))
def test_gapped_offsets_read_as_the_gathered_ones(offsets: list[int]) -> None:
    gapped = GappedOffsets.gather(offsets)
    assert list(gapped) == offsets
    assert len(gapped) == len(offsets)
    for index in range(-len(offsets), len(offsets)):
        assert gapped[index] == offsets[index]
    assert gapped[1:4] == tuple(offsets[1:4])
    for beyond in (len(offsets), -len(offsets) - 1):
        with pytest.raises(IndexError):
            gapped[beyond]


@given(offsets=ascending | st.just([]))
def test_stretches_are_as_long_as_they_can_be(offsets: list[int]) -> None:
    stretches = stretches_within(offsets)
    assert [first + i for first, _, count in stretches for i in range(count)] == offsets
    assert [begin + i for _, begin, count in stretches for i in range(count)] == list(range(len(offsets)))
    assert all(stretch[0] + stretch[2] < other[0] for stretch, other in pairwise(stretches)), "a gap is between two"
    assert list(stretches_within(GappedOffsets.gather(offsets))) == list(stretches)


@given(offsets=ascending, cut=st.integers(0, 30))
def test_joined_offsets_are_those_of_all_parts(offsets: list[int], cut: int) -> None:
    joined = GappedOffsets.join([offsets[:cut], GappedOffsets.gather(offsets[cut:])])
    assert joined == GappedOffsets.gather(offsets)
