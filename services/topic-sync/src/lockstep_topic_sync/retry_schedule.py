"""When a topic that failed is tried again: each with a back-off of its own. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Container

from lockstep_runtime.util.backoff import Backoff

__all__ = ["RetrySchedule"]

FIRST, LIMIT = 1.0, 60.0
"""Seconds until the first retry of a topic, and between retries in the long run."""


class RetrySchedule:
    """Topics whose last attempt failed, until one succeeds."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        """Why, by topic."""
        self._backoffs: dict[str, Backoff] = {}
        self._again: dict[str, float] = {}

    def failed(self, topic: str, reason: str, now: float) -> None:
        """An attempt at `now` failed."""
        self.reasons[topic] = reason
        backoff = self._backoffs.setdefault(topic, Backoff(first=FIRST, limit=LIMIT))
        self._again[topic] = now + backoff.next()

    def succeeded(self, topic: str) -> None:
        """Nothing is wrong with the topic (any more)."""
        for known in (self.reasons, self._backoffs, self._again):
            known.pop(topic, None)

    def only(self, topics: Container[str]) -> None:
        """Forget all but these."""
        for topic in [t for t in self.reasons if t not in topics]:
            self.succeeded(topic)

    def waiting(self, now: float) -> frozenset[str]:
        """Topics whose time has not come yet."""
        return frozenset(topic for topic, at in self._again.items() if at > now)

    def ready(self, now: float) -> frozenset[str]:
        """Topics whose time has come."""
        return frozenset(topic for topic, at in self._again.items() if at <= now)
