"""What each partition moves lately, and when that is uneven enough to move a partition for (no I/O, no clock)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lockstep_protocol.offsets import TopicPartition

HALF_LIFE_S = 60.0
"""After so long, what was moved before counts half."""

UNEVEN = 1.5
"""A slot is too heavy that moves so many times what slots move on average."""

WORTH_BYTES_PER_S = 1_000_000.0
"""Below so much more than the average one slot copes with ease, and a move is a pause for nothing."""

GAIN = 0.8
"""A change is worth its pause if the heavier of both slots then moves at most this share of what it did."""

PATIENCE_S = 120.0
"""Uneven for so long without a break, and it is no burst."""


@dataclass(frozen=True, slots=True)
class CountedBytes:
    """A partition's bytes a second as of `at` (seconds of a clock that does not go back), and the counter then."""

    rate: float
    total: int
    at: float


def count_bytes(before: CountedBytes | None, total: int, now: float) -> CountedBytes:
    """The rate with what was counted since `before`, older bytes weighing less and less. `total` is a counter that
    begins at zero with each run of a slot; the first look at one says nothing about a rate."""
    if before is None:
        return CountedBytes(0.0, total, now)
    passed = now - before.at
    if passed <= 0:
        return before
    moved = total - before.total if total >= before.total else total
    kept = 0.5 ** (passed / HALF_LIFE_S)
    return CountedBytes(before.rate * kept + moved / passed * (1 - kept), total, now)


class ByteRates:
    """The rates of all partitions, by what their rows say from time to time."""

    def __init__(self) -> None:
        self._counted: dict[TopicPartition, CountedBytes] = {}

    def update(self, totals: Mapping[TopicPartition, int], now: float) -> None:
        """Take the counters as they are at `now`. A partition that is not among them is forgotten."""
        self._counted = {tp: count_bytes(self._counted.get(tp), total, now) for tp, total in totals.items()}

    def rates(self) -> dict[TopicPartition, float]:
        """Bytes a second."""
        return {tp: each.rate for tp, each in self._counted.items()}


Held = Mapping[int, Sequence[TopicPartition]]
"""Which slot has which partitions."""


class LoadBalancer:
    """Remembers since when the slots are uneven; a burst that passes moves nobody."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._since: float | None = None

    def plan(self, held: Held, rates: Mapping[TopicPartition, float], now: float) -> dict[int, list[TopicPartition]]:
        """A better division of the same partitions once they have been uneven for long, and then not again before as
        long has passed; else nothing."""
        if _too_heavy(held, rates) is None:
            self._since = None
            return {}
        if self._since is None:
            self._since = now
        if now - self._since < self._patience_s:
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
