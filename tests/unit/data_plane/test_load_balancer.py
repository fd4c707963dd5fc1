"""Only what is uneven much and for long moves a partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.driver.load_balancer import (
    GAIN,
    PATIENCE_S,
    UNEVEN,
    WORTH_BYTES_PER_S,
    LoadBalancer,
    assign,
    move_one_partition,
)
from lockstep_state.offsets import TopicPartition

MB = 1_000_000.0
T = [("t", number) for number in range(8)]

partitions = st.sets(st.tuples(st.sampled_from(["orders", "audit"]), st.integers(0, 9)), max_size=14)
speeds = st.lists(st.sampled_from([0.0, 1.0, 900.0, MB, 3 * MB, 50 * MB]), min_size=20, max_size=20)


def moved(held: dict[int, list[TopicPartition]], after: dict[int, list[TopicPartition]]) -> set[TopicPartition]:
    return {tp for slot, now in after.items() for tp in now if tp not in held[slot]}


@given(partitions, st.integers(1, 5), speeds)
def test_an_exchange_keeps_every_partition_and_every_count_even(
    wanted: set[TopicPartition], slots: int, speed: list[float]
) -> None:
    rates = dict(zip(sorted(wanted), speed, strict=False))
    held = {slot: list(held) for slot, held in assign(wanted, slots, {}).items()}
    after = move_one_partition(held, rates)
    if not after:
        return
    assert sorted(tp for each in after.values() for tp in each) == sorted(wanted)
    assert assign(wanted, slots, after, rates) == {slot: tuple(sorted(each)) for slot, each in after.items()}
    changed = [slot for slot in held if sorted(held[slot]) != sorted(after[slot])]
    assert len(moved(held, after)) <= len(changed), "no more than two partitions pause of each two slots"
    before = max(sum(rates[tp] for tp in each) for each in held.values())
    assert max(sum(rates[tp] for tp in after[slot]) for slot in changed) <= GAIN * before


@given(st.lists(st.integers(0, 40), min_size=4, max_size=16))
def test_exchange_of_two_slots_is_the_best_there_is(speed: list[int]) -> None:
    """With the best of all exchanges and moves, tried one by one."""
    rates = {("t", number): each * MB for number, each in enumerate(speed)}
    tps = sorted(rates)
    held = {0: tps[: len(tps) // 2 + 1], 1: tps[len(tps) // 2 + 1 :]}
    most, least = (sum(rates[tp] for tp in each) for each in held.values())
    if most <= UNEVEN * (most + least) / 2 or most - least <= 2 * WORTH_BYTES_PER_S:
        return
    backs = [0.0, *(rates[tp] for tp in held[1])] if len(held[0]) > len(held[1]) else [rates[tp] for tp in held[1]]
    best = min(max(most - rates[out] + back, least + rates[out] - back) for out in held[0] for back in backs)
    after = move_one_partition(held, rates)
    reached = max(sum(rates[tp] for tp in each) for each in (after or held).values())
    assert reached == (best if best <= GAIN * most else most)


@given(partitions, st.integers(1, 5), speeds)
def test_load_balancer_terminates(wanted: set[TopicPartition], slots: int, speed: list[float]) -> None:
    rates = dict(zip(sorted(wanted), speed, strict=False))
    held = {slot: list(held) for slot, held in assign(wanted, slots, {}).items()}
    for _ in range(60):
        after = move_one_partition(held, rates)
        if not after:
            return
        held = after
    pytest.fail("it goes back and forth")


def test_load_balancer_parts_two_busy_partitions_of_a_slot() -> None:
    held = {0: T[0:2], 1: T[2:4]}
    after = move_one_partition(held, {T[0]: 9 * MB, T[1]: 8 * MB, T[2]: 0.0, T[3]: 1 * MB})
    assert len(moved(held, after)) == 2
    assert not {T[0], T[1]} <= set(after[0])


def test_a_slot_with_one_more_gives_it_away_without_taking_another() -> None:
    held = {0: T[0:3], 1: T[3:5]}
    after = move_one_partition(held, {T[0]: 4 * MB, T[1]: 4 * MB, T[2]: 4 * MB})
    assert len(moved(held, after)) == 1


def test_a_single_heavy_partition_stays_where_it_is() -> None:
    assert move_one_partition({0: T[0:1], 1: T[1:2]}, {T[0]: 90 * MB, T[1]: 1 * MB}) == {}


def test_slot_that_cannot_be_relieved_keeps_no_other_from_it() -> None:
    held = {slot: T[2 * slot : 2 * slot + 2] for slot in range(4)}
    rates = {T[0]: 90 * MB, T[2]: 40 * MB, T[3]: 45 * MB, T[5]: 1 * MB, T[6]: 2 * MB}
    after = move_one_partition(held, rates)
    assert T[0] in after[0]
    assert not {T[2], T[3]} <= set(after[1])


def test_all_slots_that_move_too_much_are_relieved_at_once() -> None:
    held = {slot: T[2 * slot : 2 * slot + 2] for slot in range(4)}
    rates = {T[0]: 40 * MB, T[1]: 41 * MB, T[2]: 42 * MB, T[3]: 43 * MB}
    after = move_one_partition(held, rates)
    loads = sorted(sum(rates.get(tp, 0.0) for tp in each) for each in after.values())
    assert loads == [40 * MB, 41 * MB, 42 * MB, 43 * MB]


@pytest.mark.parametrize("rate", [1.0, WORTH_BYTES_PER_S / 2])
def test_little_traffic_is_never_worth_a_pause(rate: float) -> None:
    assert move_one_partition({0: T[0:2], 1: T[2:4]}, {T[0]: rate, T[1]: rate}) == {}


def test_a_little_uneven_is_even() -> None:
    held = {0: T[0:2], 1: T[2:4]}
    rates = {T[0]: 10 * MB, T[1]: 10 * MB, T[2]: 10 * MB / UNEVEN, T[3]: 10 * MB / UNEVEN}
    assert move_one_partition(held, rates) == {}


def test_load_balancer_with_one_slot_moves_nothing() -> None:
    assert move_one_partition({0: T}, {T[0]: 90 * MB}) == {}


def test_load_balancer_moves_a_partition_only_after_a_lasting_load() -> None:
    held, rates = {0: T[0:2], 1: T[2:4]}, {T[0]: 9 * MB, T[1]: 8 * MB}
    balance = LoadBalancer()
    assert balance.plan(held, rates, 0.0) == {}
    assert balance.plan(held, rates, PATIENCE_S - 1) == {}
    assert balance.plan(held, {}, PATIENCE_S - 0.5) == {}, "it passed"
    assert balance.plan(held, rates, PATIENCE_S) == {}
    assert balance.plan(held, rates, 2 * PATIENCE_S) == move_one_partition(held, rates) != {}


def test_burst_beside_a_lasting_load_moves_no_partition() -> None:
    held = {slot: T[2 * slot : 2 * slot + 2] for slot in range(4)}
    lasting = {T[0]: 90 * MB}
    burst = {**lasting, T[2]: 80 * MB, T[3]: 75 * MB}
    balance = LoadBalancer()
    balance.plan(held, lasting, 0.0)
    assert balance.plan(held, burst, PATIENCE_S - 1) == {}
    assert balance.plan(held, burst, PATIENCE_S) == {}, "the second slot is too heavy for a second only"
    assert balance.plan(held, burst, 2 * PATIENCE_S - 1) != {}


def test_load_balancer_measures_anew_after_a_move() -> None:
    held, rates = {0: T[0:2], 1: T[2:4]}, {T[0]: 9 * MB, T[1]: 8 * MB}
    balance = LoadBalancer()
    balance.plan(held, rates, 0.0)
    assert balance.plan(held, rates, PATIENCE_S)
    assert balance.plan(held, rates, PATIENCE_S + 1) == {}, "its effect takes a while to show in the rates"
    assert balance.plan(held, rates, 2 * PATIENCE_S) == {}
    assert balance.plan(held, rates, 2 * PATIENCE_S + 1) != {}
