"""Partitions to slots: sticky, so that a new topic disturbs nobody, and even, by what each partition moves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["TopicPartition", "assign"]

TopicPartition = tuple[str, int]

BASE = 1.0
"""What a partition weighs that moves nothing: it still costs its share of each fetch."""


def assign(
    partitions: Iterable[TopicPartition],
    slots: int,
    present: Mapping[int, Iterable[TopicPartition]],
    moved: Mapping[TopicPartition, float] | None = None,
) -> dict[int, tuple[TopicPartition, ...]]:
    """Which slot copies which partitions; every slot number below `slots` is there, also with nothing to do.

    A partition stays where `present` has it. New ones, heaviest first, go where least is moved (`moved`: bytes a
    second lately, `load.py`). While a slot has at least two partitions more than another, one that was not there
    before, else the lightest, changes over. The same arguments give the same answer. Raises ValueError for no slots.
    """
    if slots < 1:
        raise ValueError(f"at least one slot is needed, not {slots}")
    weights = _weights(moved or {})
    wanted = set(partitions)
    result: dict[int, list[TopicPartition]] = {slot: [] for slot in range(slots)}
    placed: set[TopicPartition] = set()
    for slot, held in sorted(present.items()):
        for tp in held:
            if slot < slots and tp in wanted and tp not in placed:
                result[slot].append(tp)
                placed.add(tp)
    for tp in sorted(wanted - placed, key=lambda tp: (-weights.get(tp, BASE), tp)):
        lightest = min(result, key=lambda s: (sum(weights.get(t, BASE) for t in result[s]), len(result[s]), s))
        result[lightest].append(tp)
    _even_out(result, weights, placed)
    return {slot: tuple(sorted(held)) for slot, held in result.items()}


def _weights(moved: Mapping[TopicPartition, float]) -> dict[TopicPartition, float]:
    """Bytes as multiples of what an average partition moves, on top of the base."""
    total = sum(moved.values())
    if total <= 0:
        return {}
    mean = total / len(moved)
    return {tp: BASE + value / mean for tp, value in moved.items()}


def _even_out(
    result: dict[int, list[TopicPartition]], weights: Mapping[TopicPartition, float], settled: set[TopicPartition]
) -> None:
    while True:
        most = max(result, key=lambda s: (len(result[s]), s))
        least = min(result, key=lambda s: (len(result[s]), s))
        if len(result[most]) - len(result[least]) < 2:
            return
        tp = min(result[most], key=lambda t: (t in settled, weights.get(t, BASE), t))
        result[most].remove(tp)
        result[least].append(tp)
