"""How much is asked of a broker: as configured, more where it is far, and over two connections where much comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.fetch.fetch_sizes import COUNTED_S, MUCH_BYTES, MUCH_LASTS_S, FetchSizes, partition_bytes
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget

MIB = 1 << 20
CAP = 64 * MIB


def sizing(*, grows: bool = True, max_bytes: int = 50 * MIB) -> FetchSizes:
    return FetchSizes(FetchSettings(grows=grows, max_bytes=max_bytes), MemoryBudget(CAP))


def limits(made: FetchSizes, round_trip_s: float, *, connections: int = 1, partitions: int = 4) -> FetchBudget:
    limits = made.limits(round_trip_s, connections=connections, partitions=partitions)
    assert limits is not None
    return limits


@pytest.mark.parametrize("round_trip_s", [0.0, 0.001])
def test_near_broker_is_asked_for_as_much_as_configured(round_trip_s: float) -> None:
    assert limits(sizing(), round_trip_s).max_partition_bytes == MIB


def test_far_broker_is_asked_for_what_covers_its_round_trip() -> None:
    assert limits(sizing(), 0.080).max_partition_bytes == partition_bytes(MIB, 0.080, 4, CAP) > MIB


def test_size_that_the_file_sets_is_kept_however_far_the_broker_is() -> None:
    assert limits(sizing(grows=False), 0.080).max_partition_bytes == MIB


def test_all_partitions_share_what_a_slot_asks_for() -> None:
    assert limits(sizing(), 0.080, partitions=400).max_partition_bytes == MIB
    assert (
        limits(sizing(), 0.080, partitions=2).max_partition_bytes
        > limits(sizing(), 0.080, partitions=8).max_partition_bytes
    )


def test_whole_answer_is_at_most_what_the_settings_and_the_memory_allow() -> None:
    assert limits(sizing(max_bytes=5 * MIB), 0.080).max_bytes == 5 * MIB
    assert limits(sizing(), 0.080).max_bytes == CAP // 2
    assert limits(sizing(), 0.080, connections=2).max_bytes == CAP // 4


def test_nothing_is_asked_for_where_the_memory_is_taken() -> None:
    budget = MemoryBudget(CAP)
    budget.set_held("stuck", CAP)
    assert FetchSizes(FetchSettings(), budget).limits(0.0, connections=1, partitions=4) is None


FIRST, SECOND = (1, 0), (1, 1)
"""Both connections to broker 1."""


def brings_much(made: FetchSizes, now: float, connection: tuple[int, int] = FIRST) -> bool:
    """Whether it would share its partitions."""
    return made.count_to_give(connection, 10, 0, now) == 5


def test_first_connection_has_all_partitions_while_little_comes() -> None:
    made = sizing()
    made.on_fetched(FIRST, MUCH_BYTES - 1, 1.0)
    made.on_fetched(SECOND, MUCH_BYTES - 1, 1.0)
    assert made.count_to_give(FIRST, 10, 0, 1.0) == 0
    assert made.count_to_give(SECOND, 4, 6, 1.0) == 4


def test_busy_connection_shares_evenly_with_the_other() -> None:
    made = sizing()
    for connection in (FIRST, SECOND):
        made.on_fetched(connection, MUCH_BYTES, 1.0)
        shared = [made.count_to_give(connection, own, 10 - own, 1.0) for own in range(11)]
        assert shared == [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]
    assert made.count_to_give(FIRST, 1, 0, 1.0) == 0, "a single partition stays"


def test_second_connection_goes_on_while_either_brings_much() -> None:
    made = sizing()
    made.on_fetched(FIRST, MUCH_BYTES, 1.0)
    assert made.count_to_give(SECOND, 5, 5, 0.9 + MUCH_LASTS_S) == 0
    assert made.count_to_give(SECOND, 5, 5, 1.0 + MUCH_LASTS_S) == 5
    made.on_fetched(SECOND, MUCH_BYTES, 20.0)
    assert made.count_to_give(SECOND, 5, 5, 20.0) == 0
    assert made.count_to_give(FIRST, 5, 5, 20.0) == 0


def test_connections_to_one_broker_know_nothing_of_another() -> None:
    made = sizing()
    made.on_fetched((2, 0), MUCH_BYTES, 1.0)
    assert made.count_to_give(FIRST, 10, 0, 1.0) == 0
    assert made.count_to_give(SECOND, 5, 5, 1.0) == 5


def test_connection_brings_much_for_a_while_after_a_burst() -> None:
    made = sizing()
    assert not brings_much(made, 1.0)
    made.on_fetched(FIRST, MUCH_BYTES, 1.0)
    assert brings_much(made, 1.0)
    assert brings_much(made, 0.9 + MUCH_LASTS_S)
    assert not brings_much(made, 1.0 + MUCH_LASTS_S)


def test_much_is_counted_over_several_answers_that_follow_closely() -> None:
    made = sizing()
    for number in range(4):
        made.on_fetched(FIRST, MUCH_BYTES // 4, number * COUNTED_S / 5)
    assert brings_much(made, COUNTED_S)


def test_answers_far_apart_are_not_much_unless_each_is() -> None:
    made = sizing()
    for number in range(100):
        made.on_fetched(FIRST, MUCH_BYTES - 1, 2 * number * COUNTED_S)
        assert not brings_much(made, 2 * number * COUNTED_S)
    made.on_fetched(FIRST, MUCH_BYTES, 1000.0)
    assert brings_much(made, 1000.0)


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.integers(0, MUCH_BYTES)), max_size=60))
def test_much_never_follows_from_less_than_the_threshold(answers: list[tuple[float, int]]) -> None:
    """Whatever the moments: what brings much brought the threshold within the time that it is counted over."""
    made, now = sizing(), 0.0
    came: list[tuple[float, int]] = []
    for later_s, size in answers:
        now += later_s
        came.append((now, size))
        did = brings_much(made, now)
        made.on_fetched(FIRST, size, now)
        if brings_much(made, now) and not did:
            assert sum(size for at, size in came if now - at < COUNTED_S) >= MUCH_BYTES
