"""Back-off of repeated attempts (no I/O, no clock)."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep_kafka.common.errors import ClusterUnreachable

K = TypeVar("K", bound=Hashable)

AWAY_AT_MOST_S = 5.0
"""Longest wait between two requests to a cluster that is away.

A request costs next to nothing, and everything waits for the cluster's return.
"""


@dataclass(slots=True)
class Backoff:
    """A back-off whose waits double from `first` up to `limit` seconds.

    Call `reset` after a success. There is no randomness, because few of our processes share a cluster. The first
    `at_once` failures have no wait.

    A cluster that was away often answers with errors first, such as NOT_LEADER_OR_FOLLOWER. So the first failure of
    another kind begins the waits again. It does not wait as long as the cluster was away.
    """

    first: float = 0.5
    limit: float = 30.0
    failures: int = 0
    at_once: int = 0
    _away: bool = field(default=False, init=False)

    def next(self, *, away: bool = False) -> float:
        """Count one more failure, and return the seconds to wait before the next try.

        Args:
            away: True if a cluster did not answer.
        """
        if self._away and not away:
            self.reset()
        self._away = away
        waited = self.failures - self.at_once
        self.failures += 1
        return 0.0 if waited < 0 else min(self.limit, self.first * 2.0 ** min(waited, 30))

    def next_after(self, trouble: Exception | None) -> float:
        """Count one more failure and return the wait as `next` does, but at most AWAY_AT_MOST_S if the cluster is away.

        Args:
            trouble: The error of the attempt. None is any other end.
        """
        away = isinstance(trouble, ClusterUnreachable)
        wait = self.next(away=away)
        return min(wait, AWAY_AT_MOST_S) if away else wait

    def reset(self) -> None:
        self.failures = 0

    def forget_failures(self, seconds: float) -> None:
        """Forget one failure for each ten seconds of success.

        An attempt that fails now and then is repeated soon every time. One that fails at once waits longer and longer.
        """
        self.failures = max(0, self.failures - int(seconds // 10.0))


class KeyedBackoff(Generic[K]):
    """A back-off for each key that failed, until it succeeds.

    `now` is in seconds of a monotonic clock.
    """

    def __init__(self, first: float, limit: float) -> None:
        self._first, self._limit = first, limit
        self._failing: dict[K, tuple[Backoff, float]] = {}

    def failed(self, key: K, now: float) -> None:
        """Count a failure of the key at `now`."""
        backoff, _ = self._failing.get(key, (Backoff(self._first, self._limit), now))
        self._failing[key] = backoff, now + backoff.next()

    def succeeded(self, key: K) -> None:
        """Forget the failures of the key."""
        self._failing.pop(key, None)

    def wait_s(self, key: K, now: float) -> float:
        """Return the seconds to wait before the next attempt; 0 if the last one succeeded."""
        _, until = self._failing.get(key, (None, now))
        return min(max(0.0, until - now), self._limit)  # `until` is rounded, so the wait may exceed the limit

    def waiting(self, now: float) -> frozenset[K]:
        """Return the keys whose wait is not over."""
        return frozenset(key for key, (_, until) in self._failing.items() if until > now)

    def ready(self, now: float) -> frozenset[K]:
        """Return the keys whose wait is over."""
        return frozenset(self._failing.keys() - self.waiting(now))
