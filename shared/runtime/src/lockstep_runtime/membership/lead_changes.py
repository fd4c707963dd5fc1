"""Whether the lead of a service changes too often: more than an operator expects of restarts. Pure: no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

PERIOD_S = 60.0
"""Seconds over which changes are counted."""

OFTEN = 5
"""More changes than this within the period are worth a warning. A rolling restart of three replicas makes three."""


class LeadChanges:
    """Counts claims by label, one label for the service or for each share of its work (`leadership.leader_label`)."""

    def __init__(self) -> None:
        self._claims: dict[str, deque[tuple[float, str]]] = {}
        self._reported: dict[str, float] = {}

    def saw(self, label: str, instance: str, now: float) -> None:
        """An instance claimed the lead. `now`: seconds of a clock that does not go back."""
        claims = self._claims.setdefault(label, deque())
        claims.append((now, instance))
        while now - claims[0][0] > PERIOD_S:
            claims.popleft()

    def many(self, instance: str, now: float) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Each label that changed more than `OFTEN` times within the period and was last claimed by `instance`. For
        each: the label, how many times, and the instances, last one first. A label is reported once a period."""
        for label, claims in self._claims.items():
            recent = [name for at, name in claims if now - at <= PERIOD_S]
            if len(recent) <= OFTEN or recent[-1] != instance:
                continue
            if now - self._reported.get(label, float("-inf")) < PERIOD_S:
                continue
            self._reported[label] = now
            yield label, len(recent), tuple(dict.fromkeys(reversed(recent)))
