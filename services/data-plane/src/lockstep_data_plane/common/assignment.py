"""Partitions to slots: sticky, so that a new topic disturbs nobody, and even, by what each partition moves. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heapreplace

from lockstep_protocol.offsets import TopicPartition

BASE = 1.0
"""What a partition weighs that moves nothing: it still costs its share of each fetch."""


def assign(
    partitions: Iterable[TopicPartition],
    slots: int,
    present: Mapping[int, Iterable[TopicPartition]],
    moved: Mapping[TopicPartition, float] | None = None,
    closed: Collection[int] = (),
) -> dict[int, tuple[TopicPartition, ...]]:
    """Which slot copies which partitions; every slot number below `slots` is there, also with nothing to do.

    A partition stays where `present` has it. New ones, heaviest first, go where least is moved (`moved`: bytes a
    second lately, `load_balancer.py`). While a slot has at least two partitions more than another, one that was not
    there before, else the lightest, changes over. Slots that are `closed` keep what they have and get nothing, as long
    as another is open. The same arguments give the same answer. Raises ValueError for no slots.
    """
    if slots < 1:
        raise ValueError(f"at least one slot is needed, not {slots}")
    weights = _weights(moved or {})
    wanted = set(partitions)
    result: dict[int, set[TopicPartition]] = {slot: set() for slot in range(slots)}
    placed: set[TopicPartition] = set()
    for slot, held in sorted(present.items()):
        if slot < slots:
            stay = (set(held) & wanted) - placed
            result[slot] |= stay
            placed |= stay
    open_slots = [slot for slot in result if slot not in closed] or list(result)
    _place(sorted(wanted - placed, key=lambda tp: (-weights.get(tp, BASE), tp)), open_slots, result, weights)
    _even_out(open_slots, result, weights, placed)
    return {slot: tuple(sorted(held)) for slot, held in result.items()}


def _weights(moved: Mapping[TopicPartition, float]) -> dict[TopicPartition, float]:
    """Bytes as multiples of what an average partition moves, on top of the base."""
    total = sum(moved.values())
    if total <= 0:
        return {}
    mean = total / len(moved)
    return {tp: BASE + value / mean for tp, value in moved.items()}


def _place(
    new: Iterable[TopicPartition],
    slots: Iterable[int],
    result: Mapping[int, set[TopicPartition]],
    weights: Mapping[TopicPartition, float],
) -> None:
    lightest = [(math.fsum(weights.get(tp, BASE) for tp in result[s]), len(result[s]), s) for s in slots]
    heapify(lightest)
    for tp in new:
        weight, count, slot = lightest[0]
        result[slot].add(tp)
        heapreplace(lightest, (weight + weights.get(tp, BASE), count + 1, slot))


def _even_out(
    slots: Collection[int],
    result: Mapping[int, set[TopicPartition]],
    weights: Mapping[TopicPartition, float],
    settled: Collection[TopicPartition],
) -> None:
    """A slot that was given one has the fewest then, so a slot never both gives and gets. The partitions that each
    would give up are sorted once."""
    most = [(-len(result[s]), -s) for s in slots]
    least = [(len(result[s]), s) for s in slots]
    heapify(most)
    heapify(least)
    leaving: dict[int, list[TopicPartition]] = {}
    while -most[0][0] - least[0][0] >= 2:
        (left, giver), (had, taker) = most[0], least[0]
        giver = -giver
        if giver not in leaving:
            leaving[giver] = sorted(
                result[giver], key=lambda tp: (tp in settled, weights.get(tp, BASE), tp), reverse=True
            )
        tp = leaving[giver].pop()
        result[giver].remove(tp)
        result[taker].add(tp)
        heapreplace(most, (left + 1, -giver))
        heapreplace(least, (had + 1, taker))
