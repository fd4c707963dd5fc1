"""What is under way covers the round trip, and never more than a slot may hold."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.common.in_flight_limits import AHEAD, LONG_S, WINDOW, partition_bytes, requests_ahead, window

MIB = 1 << 20
ROOM = 64 * MIB


def test_a_near_broker_is_asked_as_configured() -> None:
    assert partition_bytes(MIB, 0.001, 4, ROOM) == MIB
    assert requests_ahead(0.001) == AHEAD
    assert window(0.001, 0, 0.0) == WINDOW == 5


def test_fetch_size_for_a_far_broker_is_larger() -> None:
    assert partition_bytes(MIB, 0.080, 4, ROOM) == 4_000_000
    assert requests_ahead(0.080) > AHEAD
    assert window(0.080, 0, 0.0) > WINDOW


def test_a_far_broker_gets_no_more_than_the_way_holds() -> None:
    assert window(0.080, 7_999_999, 0.0) > WINDOW
    assert window(0.080, 8_000_000, 0.0) == WINDOW


def test_a_slow_line_is_not_filled_until_its_answers_come_too_late() -> None:
    assert window(0.080, 0, LONG_S - 0.1) > WINDOW
    assert window(0.080, 0, LONG_S) == WINDOW


def test_window_of_all_partitions_covers_two_round_trips() -> None:
    assert 8 * partition_bytes(MIB, 0.080, 8, 4 * ROOM) >= 0.080 * 200_000_000


@given(st.integers(1, 10 * MIB), st.floats(0, 2), st.integers(0, 5_000), st.integers(0, 1 << 30))
def test_fetch_size_is_at_least_as_configured_and_at_most_the_room(
    configured: int, round_trip_s: float, partitions: int, room: int
) -> None:
    asked = partition_bytes(configured, round_trip_s, partitions, room)
    assert asked >= configured
    assert asked == configured or asked * partitions * 2 <= max(room, 2 * asked)
