"""Partitions to slots: sticky, so that a new topic moves no other, and even, by what each partition moves lately. Also
decides when that is uneven enough to move a partition (no I/O, no clock)."""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from operator import itemgetter

from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic

BASE = 1.0
"""What a partition weighs that moves nothing: it still costs its share of each fetch."""


def mirrored_partitions(topics: Iterable[MirroredTopic], *, by_key: bool) -> list[TopicPartition]:
    """What slots are to copy: the partitions of the topics that are mirrored."""
    return [
        (topic.source_topic, number)
        for topic in topics
        if topic.phase == "mirrored"
        for number in range(topic.copied(by_key=by_key))
    ]


def assign(
    partitions: Iterable[TopicPartition],
    slots: int,
    present: Mapping[int, Iterable[TopicPartition]],
    moved: Mapping[TopicPartition, float] | None = None,
    closed: Collection[int] = (),
    *,
    moves: bool = True,
) -> dict[int, tuple[TopicPartition, ...]]:
    """Which slot copies which partitions; every slot number below `slots` is there, also with nothing to do.

    A partition stays where `present` has it. New ones, heaviest first, go where least is moved (`moved`: bytes a
    second lately). While a slot has at least two partitions more than another, one that was not
    there before, else the lightest, changes over. Slots that are `closed` keep what they have and get nothing, as long
    as another is open. Without `moves` nothing changes over. The same arguments give the same answer. Raises ValueError
    for no slots.
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
    if moves:
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
    """Remembers since when each slot is too heavy; a burst that passes moves no partition."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def plan(self, held: Held, rates: Mapping[TopicPartition, float], now: float) -> dict[int, list[TopicPartition]]:
        """A better division of the same partitions once slots have been too heavy for long; else nothing. There is no
        other one before as long has passed."""
        self._since = {slot: self._since.get(slot, now) for slot in _heavy_slots(_loads(held, rates))}
        lasting = [slot for slot, since in self._since.items() if now - since >= PATIENCE_S]
        better = evened(held, rates, lasting)
        if better:
            self._since = {}
        else:
            self._since |= dict.fromkeys(lasting, now)
        return better


def _loads(held: Held, rates: Mapping[TopicPartition, float]) -> dict[int, float]:
    return {slot: sum(rates.get(tp, 0.0) for tp in partitions) for slot, partitions in held.items()}


def _heavy_slots(loads: Mapping[int, float]) -> list[int]:
    """Those that move too much, the heaviest first."""
    mean = sum(loads.values()) / max(len(loads), 1)
    limit = max(UNEVEN * mean, mean + WORTH_BYTES_PER_S)
    return sorted((slot for slot, load in loads.items() if load > limit), key=lambda slot: (-loads[slot], slot))


def evened(
    held: Held, rates: Mapping[TopicPartition, float], heavy_slots: Collection[int] | None = None
) -> dict[int, list[TopicPartition]]:
    """The same with one partition moved, or two exchanged, between each slot that moves too much and one that moves
    little. The heaviest comes first, and is relieved by the lightest. `heavy_slots`: only these give. Nothing if the
    slots are too even, or no change helps enough for a pause of those partitions.

    A slot that nothing relieves, such as one with a single busy partition, does not keep others from being relieved. No
    slot gets two partitions more than another by it, so a later `assign` leaves it as it is.
    """
    loads = _loads(held, rates)
    heavy = _heavy_slots(loads)
    light = sorted(held.keys() - set(heavy), key=lambda slot: (-loads[slot], slot))
    counts = {slot: len(partitions) for slot, partitions in held.items()}
    found: dict[int, list[TopicPartition]] = {}
    for giver in heavy if heavy_slots is None else [slot for slot in heavy if slot in heavy_slots]:
        if not light:
            break
        taker = light[-1]
        may_move = counts[giver] > min(counts.values()) and counts[taker] < max(counts.values())
        best = min(_changes(held[giver], held[taker], rates, may_move=may_move), default=None)
        if best is None or best[0] > GAIN * loads[giver]:
            continue
        _, out, back = best
        found = found or {slot: list(partitions) for slot, partitions in held.items()}
        found[giver] = [tp for tp in held[giver] if tp not in out] + list(back)
        found[taker] = [tp for tp in held[taker] if tp not in back] + list(out)
        counts |= {slot: len(found[slot]) for slot in (giver, taker)}
        light.pop()
    return found


Change = tuple[float, tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
"""What the heavier of both slots would move then, what goes to the light one, what comes back."""


def _changes(
    heavy: Sequence[TopicPartition],
    light: Sequence[TopicPartition],
    rates: Mapping[TopicPartition, float],
    *,
    may_move: bool,
) -> Iterator[Change]:
    """The best ones of each partition of the heavy slot. If it is exchanged for one that moves less by half of the
    difference, both slots move the same. Only the two next to that are worth a try."""
    most, least = (sum(rates.get(tp, 0.0) for tp in partitions) for partitions in (heavy, light))
    offered = sorted((rates.get(tp, 0.0), tp) for tp in light)
    for tp in heavy:
        out = rates.get(tp, 0.0)
        if may_move:
            yield max(most - out, least + out), (tp,), ()
        above = bisect_left(offered, out - (most - least) / 2, key=itemgetter(0))
        below = bisect_left(offered, offered[above - 1][0], key=itemgetter(0)) if above else above
        for rate, other in {*offered[below : below + 1], *offered[above : above + 1]}:
            gain = out - rate
            yield max(most - gain, least + gain), (tp,), (other,)
