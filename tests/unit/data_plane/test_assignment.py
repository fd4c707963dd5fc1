"""Partitions go to slots evenly, stay where they are, and none is lost or copied twice."""

import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.driver.load_balancer import assign
from lockstep_state.offsets import TopicPartition

partitions = st.sets(st.tuples(st.sampled_from(["orders", "payments", "audit"]), st.integers(0, 9)), max_size=20)
moved = st.dictionaries(
    st.tuples(st.sampled_from(["orders", "payments", "gone"]), st.integers(0, 9)), st.floats(0, 1e9), max_size=20
)
present = st.dictionaries(st.integers(0, 6), st.lists(st.tuples(st.just("orders"), st.integers(0, 12)), max_size=6))


closed = st.sets(st.integers(0, 6))


class Asked(NamedTuple):
    """What `assign` is called with."""

    wanted: set[TopicPartition]
    slots: int
    before: dict[int, list[TopicPartition]]
    weights: dict[TopicPartition, float]


asked = st.builds(Asked, partitions, st.integers(1, 5), present, moved)


def topic(name: str, count: int) -> list[TopicPartition]:
    return [(name, number) for number in range(count)]


@given(asked)
def test_assignment_has_every_partition_once(asked: Asked) -> None:
    plan = assign(*asked)
    assert sorted(plan) == list(range(asked.slots))
    assert sorted(tp for held in plan.values() for tp in held) == sorted(asked.wanted)


@given(asked)
def test_mm2_125_no_slot_has_two_more_than_another(asked: Asked) -> None:
    counts = [len(held) for held in assign(*asked).values()]
    assert max(counts) - min(counts) <= 1


@given(asked)
def test_assignment_without_moves_leaves_each_partition_where_it_is(asked: Asked) -> None:
    uneven = {0: [tp for held in assign(*asked).values() for tp in held]}
    plan = assign(asked.wanted | {("new", 0)}, asked.slots, uneven, asked.weights, moves=False)
    assert set(uneven[0]) <= set(plan[0])


@given(partitions, st.integers(1, 5), moved)
def test_asked_again_nothing_moves(
    wanted: set[TopicPartition], slots: int, weights: dict[TopicPartition, float]
) -> None:
    once = assign(wanted, slots, {}, weights)
    assert assign(sorted(wanted, reverse=True), slots, {}, weights) == once, "whatever the order of the arguments"
    assert assign(wanted, slots, once, weights) == once
    assert assign(wanted, slots, once, {}) == once, "what moves less or more now is no reason to move"


@given(partitions, partitions, st.integers(1, 5))
def test_new_partitions_move_an_old_one_only_to_even_out(
    old: set[TopicPartition], more: set[TopicPartition], slots: int
) -> None:
    before = assign(old, slots, {})
    after = assign(old | more, slots, before)
    assert all(set(before[slot]) <= set(after[slot]) for slot in range(slots)), "an even assignment only grows"


@given(partitions, st.integers(1, 4))
def test_assignment_moves_only_what_a_new_slot_needs(wanted: set[TopicPartition], slots: int) -> None:
    before = assign(wanted, slots, {})
    after = assign(wanted, slots + 1, before)
    assert all(set(after[slot]) <= set(before[slot]) for slot in range(slots))
    assert len(after[slots]) == len(wanted) // (slots + 1)


@given(partitions, st.integers(2, 5))
def test_a_slot_that_is_gone_leaves_its_partitions_to_the_others(wanted: set[TopicPartition], slots: int) -> None:
    before = assign(wanted, slots, {})
    after = assign(wanted, slots - 1, before)
    assert all(set(before[slot]) <= set(after[slot]) for slot in range(slots - 1))


def test_new_ones_go_heaviest_first_where_least_is_moved() -> None:
    weights = {("heavy", 0): 900.0, ("heavy", 1): 800.0, ("light", 0): 1.0, ("light", 1): 2.0}
    plan = assign(weights, 2, {}, weights)
    assert plan == {0: (("heavy", 0), ("light", 0)), 1: (("heavy", 1), ("light", 1))}


def test_a_heavy_one_keeps_its_slot_to_itself_while_the_count_allows() -> None:
    plan = assign([("heavy", 0), *topic("light", 1)], 2, {}, {("heavy", 0): 1e9})
    assert plan == {0: (("heavy", 0),), 1: (("light", 0),)}


def test_the_lightest_of_those_that_were_there_changes_over() -> None:
    weights = {("t", 0): 500.0, ("t", 1): 1.0, ("t", 2): 700.0}
    assert assign(topic("t", 3), 2, {0: topic("t", 3)}, weights)[1] == (("t", 1),)


def test_assignment_moves_a_new_partition_rather_than_a_working_one() -> None:
    before = {0: (("t", 0), ("t", 1)), 1: (("t", 2), ("t", 3))}
    weights = {("t", 0): 1.0, ("t", 1): 1.0, ("t", 2): 900.0, ("t", 3): 900.0}
    plan = assign([*topic("t", 4), *topic("new", 2)], 2, before, weights)
    assert plan == {0: (("new", 1), ("t", 0), ("t", 1)), 1: (("new", 0), ("t", 2), ("t", 3))}


def test_assignment_keeps_a_partition_claimed_twice_in_the_first_slot() -> None:
    assert assign(topic("t", 2), 2, {0: [("t", 0)], 1: [("t", 0), ("t", 1)]}) == {0: (("t", 0),), 1: (("t", 1),)}


def test_slots_without_partitions_are_there_too() -> None:
    assert assign([], 2, {}) == {0: (), 1: ()}


@pytest.mark.parametrize("slots", [0, -1])
def test_without_slots_there_is_no_answer(slots: int) -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        assign([], slots, {})


@given(asked, closed)
def test_assignment_to_a_closed_slot_keeps_its_partitions_and_adds_none(asked: Asked, shut: set[int]) -> None:
    plan = assign(*asked, shut)
    assert sorted(tp for held in plan.values() for tp in held) == sorted(asked.wanted)
    open_slots = set(range(asked.slots)) - shut
    if not open_slots:
        assert plan == assign(*asked), "somebody has to have them"
        return
    for slot in shut & plan.keys():
        assert set(plan[slot]) <= set(asked.before.get(slot, ()))
    counts = [len(plan[slot]) for slot in open_slots]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("slots", [2, 50])
def test_ten_thousand_partitions_take_no_time(slots: int) -> None:
    wanted = [(f"topic-{n // 10}", n % 10) for n in range(10_000)]
    for before in ({}, {0: wanted}):
        began = time.process_time()
        plan = assign(wanted, slots, before)
        assert time.process_time() - began < 0.5, "usual is 0.06"
        assert sum(map(len, plan.values())) == 10_000
