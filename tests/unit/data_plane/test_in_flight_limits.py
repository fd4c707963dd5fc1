"""What is under way covers the round trip, and never more than a slot may hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.append_sequence import LONG_S, WINDOW, window_size
from lockstep_data_plane.fetch.fetch_sizes import partition_bytes
from lockstep_data_plane.produce.sender import AHEAD, requests_ahead

MIB = 1 << 20
ROOM = 64 * MIB


def test_fetch_size_and_requests_by_the_round_trip() -> None:
    assert (partition_bytes(MIB, 0.001, 4, ROOM), requests_ahead(0.001)) == (MIB, AHEAD)
    assert partition_bytes(MIB, 0.080, 4, ROOM) == 4_000_000
    assert requests_ahead(0.080) > AHEAD


@pytest.mark.parametrize(
    ("round_trip_s", "under_way", "duration_s", "is_large"),
    [
        (0.001, 0, 0.0, False),
        (0.080, 0, 0.0, True),
        (0.080, 7_999_999, 0.0, True),
        (0.080, 8_000_000, 0.0, False),  # no more than the way holds
        (0.080, 0, LONG_S - 0.1, True),
        (0.080, 0, LONG_S, False),  # a slow line, whose answers come too late
    ],
)
def test_window_is_larger_for_a_far_broker(
    round_trip_s: float, under_way: int, duration_s: float, is_large: bool
) -> None:
    assert (window_size(round_trip_s, under_way, duration_s) > WINDOW) is is_large
    assert window_size(round_trip_s, under_way, duration_s) >= WINDOW == 5


def test_window_of_all_partitions_covers_two_round_trips() -> None:
    assert 8 * partition_bytes(MIB, 0.080, 8, 4 * ROOM) >= 0.080 * 200_000_000


@given(st.integers(1, 10 * MIB), st.floats(0, 2), st.integers(0, 5_000), st.integers(0, 1 << 30))
def test_fetch_size_is_at_least_as_configured_and_at_most_the_room(
    configured: int, round_trip_s: float, partitions: int, room: int
) -> None:
    asked = partition_bytes(configured, round_trip_s, partitions, room)
    assert asked >= configured
    assert asked == configured or asked * partitions * 2 <= max(room, 2 * asked)
