"""The time of the next request to a broker (no I/O; time comes from outside).

A request costs brokers and slot the same for one record as for hundreds. So thousands of single records a second are
fetched several at a time, by a pause that grows where cores or brokers are slow. With a pause only as long as the
fetch, p50 was 5.6 to 16 ms instead of 6.5 to 8.6 with one slot (`make bench ONLY=latency_5000`). With `fetch.min.bytes`
a lone record would wait for the timer.

`lockstep.max.bytes.per.second` delays the partitions of a topic. Slots do not talk to each other. Each slot takes the
part of a limit that its partitions are of all partitions with that limit.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lockstep_config.keys.key_values import PerTopic

FLOW = ""
"""The key of the flow's own bucket. Buckets of topics have the topic's name as key."""


class TokenBucket:
    """A limit of bytes a second, by a pause after each batch.

    A batch of `n` bytes is followed by a pause of `n / per_s` seconds, less the unused part of the last second. So
    the mean never exceeds the limit by more than one fetch.
    """

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._credit = per_s
        self._refilled_at: float | None = None

    def consume(self, size: int, now: float) -> None:
        """Count `size` bytes that came. `now` is in seconds of a monotonic clock."""
        self._refill(now)
        self._credit -= size

    def wait_s(self, now: float) -> float:
        """Return the seconds until more may come; 0 for now."""
        self._refill(now)
        return max(0.0, -self._credit / self.per_s)

    def _refill(self, now: float) -> None:
        if self._refilled_at is not None:
            self._credit = min(self.per_s, self._credit + (now - self._refilled_at) * self.per_s)
        self._refilled_at = now


class RateLimits:
    """The token buckets of a slot. `now` is always in seconds of a monotonic clock."""

    def __init__(self, limits: PerTopic[int | None]) -> None:
        self._limits = limits
        self._buckets: dict[str, TokenBucket] = {}
        self.any = limits.default is not None or bool(limits.others)

    def set_shares(self, own_counts: Mapping[str, int], flow_counts: Mapping[str, int]) -> None:
        """Set the slot's share of each limit.

        Args:
            own_counts: The number of this slot's partitions, by topic.
            flow_counts: The number of the flow's partitions, by topic.
        """
        shares = {FLOW: (self._limits.default, sum(own_counts.values()), sum(flow_counts.values()))}
        for topic, count in own_counts.items():
            own = next((limit for names, limit in self._limits.others if names.matches(topic)), None)
            shares[topic] = own, count, max(count, flow_counts.get(topic, 0))
        former, self._buckets = self._buckets, {}
        for key, (limit, count, total) in shares.items():
            if limit and count and total:
                bucket = self._buckets[key] = former.get(key) or TokenBucket(limit * count / total)
                bucket.per_s = limit * count / total

    def on_fetched(self, topic: str, size: int, now: float) -> None:
        """Count bytes of a topic that came. They count for the topic's own limit and for the flow's."""
        for bucket in self._buckets_for(topic):
            bucket.consume(size, now)

    def wait_s(self, topic: str, now: float) -> float:
        """Return the seconds until more of the topic may come; 0 for now."""
        return max((bucket.wait_s(now) for bucket in self._buckets_for(topic)), default=0.0)

    def _buckets_for(self, topic: str) -> Iterator[TokenBucket]:
        return (self._buckets[key] for key in (FLOW, topic) if key in self._buckets)


SMALL_BYTES = 64 * 1024
"""The size up to which an answer is small, so that it is delivered before the next request."""

MANY_PER_S = 1_000
COUNTED_S = 0.1
"""A connection has many batches if it had at least `MANY_PER_S` a second over `COUNTED_S`."""

PACE_S = 0.006
PAUSE_FACTOR = 3
"""The pause is `PAUSE_FACTOR` times the duration of the request. Both together take at most `PACE_S`."""

NO_ROOM_WAIT_MS = 10
"""The longest wait at the broker of a request that leaves out partitions, since these may be fetched again soon."""

TIGHT_WAIT_S = 0.05
"""Seconds that a request waits for more memory, if it could bring only little because most of the cap is taken."""


@dataclass(slots=True)
class _Count:
    """The batches that one connection brought lately."""

    since: float = float("-inf")
    batches: int = 0
    is_many: bool = False


class FetchSchedule:
    """The times at which a slot may send each request. `now` is always in seconds of a monotonic clock."""

    def __init__(self, max_wait_ms: int, bytes_per_s: PerTopic[int | None]) -> None:
        """Create the schedule.

        Args:
            max_wait_ms: How long a broker may keep a request for which it has nothing.
            bytes_per_s: The limits of bytes a second.
        """
        self._max_wait_ms = max_wait_ms
        self._counts: dict[Hashable, _Count] = defaultdict(_Count)
        self.rates = RateLimits(bytes_per_s)

    def pause_s(self, connection: Hashable, batches: int, size: int, asked_at: float, now: float) -> float:
        """Count what an answer brought on the connection, and return the seconds until its broker is asked again.

        If cores are busy, a request takes longer, and the next one brings more. Otherwise the pause is short.
        """
        count = self._counts[connection]
        count.batches += batches
        if now - count.since >= COUNTED_S:
            count.is_many = count.batches >= MANY_PER_S * (now - count.since)
            count.since, count.batches = now, 0
        if not count.is_many or not 0 < size <= SMALL_BYTES:
            return 0.0
        duration_s = now - asked_at
        return max(0.0, min(PAUSE_FACTOR * duration_s, PACE_S - duration_s))

    def wait_ms(self, *, leaves_out: bool) -> int:
        """Return how long a broker may keep a request. `leaves_out` says that partitions without room are not in it."""
        return min(NO_ROOM_WAIT_MS, self._max_wait_ms) if leaves_out else self._max_wait_ms

    def allows(self, topic: str, now: float) -> bool:
        """Return whether the limits of bytes a second let the topic be fetched now."""
        return not self.rates.any or self.rates.wait_s(topic, now) <= 0

    def allowed_in_s(self, topics: Iterable[str], now: float) -> float | None:
        """Return the seconds until the limits let one more of these topics be fetched, or None if no topic waits."""
        waits = (self.rates.wait_s(topic, now) for topic in topics) if self.rates.any else ()
        return min((wait for wait in waits if wait > 0), default=None)
