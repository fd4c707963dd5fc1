"""Partitions to slots: sticky, so that a new topic moves no other, and even, by what each partition moves lately. Also
decides when that is uneven enough to move a partition (no I/O, no clock)."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    second lately). While a slot has at least two partitions more than another, one that was not
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


UNEVEN = 1.5
"""A slot is too heavy that moves so many times what slots move on average."""

WORTH_BYTES_PER_S = 1_000_000.0
"""Below so much more than the average one slot copes with ease, and a move is a pause for nothing."""

GAIN = 0.8
"""A change is worth its pause if the heavier of both slots then moves at most this share of what it did."""

PATIENCE_S = 120.0
"""Uneven for so long without a break, and it is no burst."""


Held = Mapping[int, Sequence[TopicPartition]]
"""Which slot has which partitions."""


class LoadBalancer:
    """Remembers since when the slots are uneven; a burst that passes moves no partition."""

    def __init__(self) -> None:
        self._since: float | None = None

    def plan(self, held: Held, rates: Mapping[TopicPartition, float], now: float) -> dict[int, list[TopicPartition]]:
        """A better division of the same partitions once they have been uneven for long, and then not again before as
        long has passed; else nothing."""
        if _too_heavy(held, rates) is None:
            self._since = None
            return {}
        if self._since is None:
            self._since = now
        if now - self._since < PATIENCE_S:
            return {}
        self._since = None
        return evened(held, rates)


def _too_heavy(held: Held, rates: Mapping[TopicPartition, float]) -> int | None:
    """The slot that moves too much, if there is one."""
    loads = {slot: _sum(partitions, rates) for slot, partitions in held.items()}
    if len(loads) < 2:
        return None
    heavy = max(loads, key=lambda slot: (loads[slot], -slot))
    mean = sum(loads.values()) / len(loads)
    return heavy if loads[heavy] > UNEVEN * mean and loads[heavy] - mean > WORTH_BYTES_PER_S else None


def evened(held: Held, rates: Mapping[TopicPartition, float]) -> dict[int, list[TopicPartition]]:
    """The same with one partition moved, or two exchanged, between the slot that moves most and the one that moves
    least. Nothing if the slots are too even, or the change helps too little, for a pause of those partitions.

    No slot gets two partitions more than another by it, so a later `assign` leaves it as it is.
    """
    heavy = _too_heavy(held, rates)
    if heavy is None:
        return {}
    light = min((slot for slot in held if slot != heavy), key=lambda slot: (_sum(held[slot], rates), slot))
    best = min(_changes(heavy, light, held, rates), default=None)
    if best is None or best[0] > GAIN * _sum(held[heavy], rates):
        return {}
    _, out, back = best
    found = {slot: list(partitions) for slot, partitions in held.items()}
    found[heavy] = [tp for tp in held[heavy] if tp not in out] + list(back)
    found[light] = [tp for tp in held[light] if tp not in back] + list(out)
    return found


Change = tuple[float, tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
"""What the heavier of both slots would move then, what goes to the light one, what comes back."""


def _changes(heavy: int, light: int, held: Held, rates: Mapping[TopicPartition, float]) -> Iterator[Change]:
    counts = {slot: len(partitions) for slot, partitions in held.items()}
    may_move = counts[heavy] > min(counts.values()) and counts[light] < max(counts.values())
    most, least = _sum(held[heavy], rates), _sum(held[light], rates)
    for tp in held[heavy]:
        out = rates.get(tp, 0.0)
        if may_move:
            yield max(most - out, least + out), (tp,), ()
        for other in held[light]:
            gain = out - rates.get(other, 0.0)
            yield max(most - gain, least + gain), (tp,), (other,)


def _sum(partitions: Iterable[TopicPartition], rates: Mapping[TopicPartition, float]) -> float:
    return sum(rates.get(tp, 0.0) for tp in partitions)
