"""The assignment of partitions to slots, and its balance by the recent rate of each partition (no I/O, no clock).

An assignment is sticky: a new topic moves no other partition. It is even in the number of partitions, and by their
rates where the number allows. All slots that are too heavy are relieved in one round, by exchanges: a new division
would move nearly all partitions, and each move is a pause.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from operator import itemgetter

from lockstep_state.offsets import TopicPartition

BASE = 1.0
"""The weight of a partition without traffic: it still costs its share of each fetch."""


def assign(
    partitions: Iterable[TopicPartition],
    slots: int,
    present: Mapping[int, Iterable[TopicPartition]],
    moved: Mapping[TopicPartition, float] | None = None,
    closed: Collection[int] = (),
    *,
    moves: bool = True,
) -> dict[int, tuple[TopicPartition, ...]]:
    """Return the partitions of each slot number below `slots`, also of slots that have none.

    A partition stays in its present slot. New partitions go to the slot with the least weight, the heaviest first.
    While a slot has two partitions more than another, one moves: a new one, else the lightest. The same arguments give
    the same answer.

    Args:
        partitions: The partitions to assign.
        slots: The number of slots.
        present: The partitions that each slot has now.
        moved: Bytes a second that were lately copied of each partition.
        closed: Slots that get no further partition, as long as another slot is open.
        moves: Whether partitions may move from one slot to another at all.

    Raises:
        ValueError: `slots` is less than 1.
    """
    if slots < 1:
        raise ValueError(f"at least one slot is needed, not {slots}")
    weights = _weights(moved or {})
    to_assign = set(partitions)
    result: dict[int, set[TopicPartition]] = {slot: set() for slot in range(slots)}
    kept: set[TopicPartition] = set()
    for slot, assigned in sorted(present.items()):
        if slot < slots:
            stay = (set(assigned) & to_assign) - kept
            result[slot] |= stay
            kept |= stay
    open_slots = [slot for slot in result if slot not in closed] or list(result)
    _add_to_lightest(sorted(to_assign - kept, key=lambda tp: (-weights.get(tp, BASE), tp)), open_slots, result, weights)
    if moves:
        _level_counts(open_slots, result, weights, kept)
    return {slot: tuple(sorted(assigned)) for slot, assigned in result.items()}


def _weights(moved: Mapping[TopicPartition, float]) -> dict[TopicPartition, float]:
    """Return the weight of each partition: `BASE` plus its rate as a multiple of the mean rate."""
    total = sum(moved.values())
    if total <= 0:
        return {}
    mean = total / len(moved)
    return {tp: BASE + value / mean for tp, value in moved.items()}


def _add_to_lightest(
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


def _level_counts(
    slots: Collection[int],
    result: Mapping[int, set[TopicPartition]],
    weights: Mapping[TopicPartition, float],
    kept: Collection[TopicPartition],
) -> None:
    """Move partitions between slots until no slot has two more than another.

    A slot that was given a partition has the fewest then, so no slot both gives and takes.
    """
    most = [(-len(result[s]), -s) for s in slots]
    least = [(len(result[s]), s) for s in slots]
    heapify(most)
    heapify(least)
    leaving: dict[int, list[TopicPartition]] = {}
    while -most[0][0] - least[0][0] >= 2:
        (giver_count, giver), (taker_count, taker) = most[0], least[0]
        giver = -giver
        if giver not in leaving:
            leaving[giver] = sorted(result[giver], key=lambda tp: (tp in kept, weights.get(tp, BASE), tp), reverse=True)
        tp = leaving[giver].pop()
        result[giver].remove(tp)
        result[taker].add(tp)
        heapreplace(most, (giver_count + 1, -giver))
        heapreplace(least, (taker_count + 1, taker))


UNEVEN = 1.5
"""A slot is too heavy if it copies more than this multiple of the slots' mean rate."""

WORTH_BYTES_PER_S = 1_000_000.0
"""Bytes a second above the mean that a slot copes with. Below it a move is a pause for nothing."""

GAIN = 0.8
"""The share of its former rate that the heavier slot may keep at most, so that a change is worth the pause."""

PATIENCE_S = 120.0
"""Seconds of uninterrupted uneven load after which it is not taken for a burst."""


Held = Mapping[int, Sequence[TopicPartition]]
"""The partitions of each slot."""


class LoadBalancer:
    """The memory of how long each slot has been too heavy, so that a passing burst moves no partition."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def plan(self, held: Held, rates: Mapping[TopicPartition, float], now: float) -> dict[int, list[TopicPartition]]:
        """Return a better division of the same partitions once slots have been too heavy for `PATIENCE_S`; else {}.

        After a change the next one comes `PATIENCE_S` later at the earliest.

        Args:
            held: The partitions of each slot.
            rates: Bytes a second of each partition; 0 for those that are missing.
            now: Seconds of a monotonic clock.
        """
        self._since = {slot: self._since.get(slot, now) for slot in _heavy_slots(_loads(held, rates))}
        lasting = [slot for slot, since in self._since.items() if now - since >= PATIENCE_S]
        better = move_one_partition(held, rates, lasting)
        if better:
            self._since = {}
        else:
            self._since |= dict.fromkeys(lasting, now)
        return better


def _loads(held: Held, rates: Mapping[TopicPartition, float]) -> dict[int, float]:
    return {slot: sum(rates.get(tp, 0.0) for tp in partitions) for slot, partitions in held.items()}


def _heavy_slots(loads: Mapping[int, float]) -> list[int]:
    """Return the slots that copy too much, the heaviest first."""
    mean = sum(loads.values()) / max(len(loads), 1)
    limit = max(UNEVEN * mean, mean + WORTH_BYTES_PER_S)
    return sorted((slot for slot, load in loads.items() if load > limit), key=lambda slot: (-loads[slot], slot))


def move_one_partition(
    held: Held, rates: Mapping[TopicPartition, float], heavy_slots: Collection[int] | None = None
) -> dict[int, list[TopicPartition]]:
    """Return the same partitions with one moved, or two exchanged, between each heavy slot and a light one.

    The heaviest slot is relieved by the lightest one. {}: the slots are even enough, or no change gains enough. A slot
    with a single busy partition cannot be relieved, and does not keep others from it. No slot gets two partitions more
    than another, so a later `assign` moves nothing back.

    Args:
        held: The partitions of each slot.
        rates: Bytes a second of each partition; 0 for those that are missing.
        heavy_slots: The only slots that may give partitions. None: all that are too heavy.
    """
    loads = _loads(held, rates)
    heavy = _heavy_slots(loads)
    light = sorted(held.keys() - set(heavy), key=lambda slot: (-loads[slot], slot))
    counts = {slot: len(partitions) for slot, partitions in held.items()}
    result: dict[int, list[TopicPartition]] = {}
    for giver in heavy if heavy_slots is None else [slot for slot in heavy if slot in heavy_slots]:
        if not light:
            break
        taker = light[-1]
        may_move = counts[giver] > min(counts.values()) and counts[taker] < max(counts.values())
        best = min(_changes(held[giver], held[taker], rates, may_move=may_move), default=None)
        if best is None or best[0] > GAIN * loads[giver]:
            continue
        _, out, back = best
        result = result or {slot: list(partitions) for slot, partitions in held.items()}
        result[giver] = [tp for tp in held[giver] if tp not in out] + list(back)
        result[taker] = [tp for tp in held[taker] if tp not in back] + list(out)
        counts |= {slot: len(result[slot]) for slot in (giver, taker)}
        light.pop()
    return result


Change = tuple[float, tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
"""The rate of the heavier slot after a change, the partitions that leave the heavy slot, and those that it gets."""


def _changes(
    heavy: Sequence[TopicPartition],
    light: Sequence[TopicPartition],
    rates: Mapping[TopicPartition, float],
    *,
    may_move: bool,
) -> Iterator[Change]:
    """Yield the best changes for each partition of the heavy slot.

    Both slots copy the same after an exchange whose rates differ by half of the slots' difference. So only the two
    partitions next to that rate are tried.
    """
    most, least = (sum(rates.get(tp, 0.0) for tp in partitions) for partitions in (heavy, light))
    offered = sorted((rates.get(tp, 0.0), tp) for tp in light)
    for tp in heavy:
        out = rates.get(tp, 0.0)
        if may_move:
            yield max(most - out, least + out), (tp,), ()
        above = bisect_left(offered, out - (most - least) / 2, key=itemgetter(0))
        below = bisect_left(offered, offered[above - 1][0], key=itemgetter(0)) if above else above
        for rate, exchanged in {*offered[below : below + 1], *offered[above : above + 1]}:
            gain = out - rate
            yield max(most - gain, least + gain), (tp,), (exchanged,)
