"""How long to wait before trying again (no I/O, no clock)."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep_kafka.common.errors import ClusterUnreachable

K = TypeVar("K", bound=Hashable)

AWAY_AT_MOST_S = 5.0
"""Between two questions to a cluster that is away: one costs next to nothing, and all waits for its return."""


@dataclass(slots=True)
class Backoff:
    """Waits that double from `first` up to `limit` seconds; `reset` after a success. No randomness: few of us share a
    cluster. So many failures as `at_once` says are tried again without a wait.

    A cluster that was away often answers with errors first, such as NOT_LEADER_OR_FOLLOWER. So another failure than its
    absence begins anew: it does not wait as long as the absence took.
    """

    first: float = 0.5
    limit: float = 30.0
    failures: int = 0
    at_once: int = 0
    _away: bool = field(default=False, init=False)

    def next(self, *, away: bool = False) -> float:
        """Seconds to wait before the next try; counts one more failure. `away`: a cluster did not answer."""
        if self._away and not away:
            self.reset()
        self._away = away
        waited = self.failures - self.at_once
        self.failures += 1
        return 0.0 if waited < 0 else min(self.limit, self.first * 2.0 ** min(waited, 30))

    def after(self, trouble: Exception | None) -> float:
        """As `next`, but a cluster that did not answer is asked again within AWAY_AT_MOST_S. None: any other end."""
        away = isinstance(trouble, ClusterUnreachable)
        wait = self.next(away=away)
        return min(wait, AWAY_AT_MOST_S) if away else wait

    def reset(self) -> None:
        self.failures = 0

    def worked(self, seconds: float) -> None:
        """Forget one failure for each ten seconds that it went well. What fails now and then is tried again soon every
        time; what fails at once waits longer and longer.
        """
        self.failures = max(0, self.failures - int(seconds // 10.0))


class KeyedBackoff(Generic[K]):
    """What failed and is tried again, each with a back-off of its own, which ends when it succeeds. `now`: seconds of a
    clock that does not go back.
    """

    def __init__(self, first: float, limit: float) -> None:
        self._first, self._limit = first, limit
        self._failing: dict[K, tuple[Backoff, float]] = {}

    def failed(self, key: K, now: float) -> None:
        """An attempt at `now` failed."""
        backoff, _ = self._failing.get(key, (Backoff(self._first, self._limit), now))
        self._failing[key] = backoff, now + backoff.next()

    def succeeded(self, key: K) -> None:
        """Nothing is wrong with it (any more)."""
        self._failing.pop(key, None)

    def wait_s(self, key: K, now: float) -> float:
        """Seconds to wait before the next attempt, 0 where the last one succeeded."""
        _, until = self._failing.get(key, (None, now))
        return min(max(0.0, until - now), self._limit)  # `until` is rounded, so the difference can be above

    def waiting(self, now: float) -> frozenset[K]:
        """Those whose time has not come yet."""
        return frozenset(key for key, (_, until) in self._failing.items() if until > now)

    def ready(self, now: float) -> frozenset[K]:
        """Those whose time has come."""
        return frozenset(self._failing.keys() - self.waiting(now))
