"""When to ask a broker again (no I/O; time comes from outside).

A request costs the brokers and us the same for one record as for hundreds. So single records that come by the thousand
are fetched a few at a time. `lockstep.max.bytes.per.second` makes the partitions of a topic wait. Slots do not talk to
each other. Each takes that part of a limit which its partitions are of all partitions that the limit is for."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lockstep_config.keys.key_values import PerTopic

FLOW = ""
"""The flow's own bucket; topics have theirs under their names."""


class TokenBucket:
    """Limits bytes by a pause after each batch. A batch of `n` bytes takes a pause of `n / per_s` seconds, less what
    was left unused in the last second. So the mean never exceeds the limit by more than one fetch."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._credit = per_s
        self._at: float | None = None

    def consume(self, size: int, now: float) -> None:
        """So many bytes came. `now`: seconds of a clock that does not go back."""
        self._refill(now)
        self._credit -= size

    def wait_s(self, now: float) -> float:
        """Seconds until more may come; 0: now."""
        self._refill(now)
        return max(0.0, -self._credit / self.per_s)

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._credit = min(self.per_s, self._credit + (now - self._at) * self.per_s)
        self._at = now


class RateLimits:
    """The token buckets of a slot. `now` everywhere: seconds of a clock that does not go back."""

    def __init__(self, limits: PerTopic[int | None]) -> None:
        self._limits = limits
        self._buckets: dict[str, TokenBucket] = {}
        self.any = limits.default is not None or bool(limits.others)

    def share(self, mine: Mapping[str, int], everywhere: Mapping[str, int]) -> None:
        """How many partitions of each topic this slot has, and how many the flow has."""
        shares = {FLOW: (self._limits.default, sum(mine.values()), sum(everywhere.values()))}
        for topic, count in mine.items():
            own = next((limit for names, limit in self._limits.others if names.matches(topic)), None)
            shares[topic] = own, count, max(count, everywhere.get(topic, 0))
        known, self._buckets = self._buckets, {}
        for key, (limit, count, total) in shares.items():
            if limit and count and total:
                bucket = self._buckets[key] = known.get(key) or TokenBucket(limit * count / total)
                bucket.per_s = limit * count / total

    def on_fetched(self, topic: str, size: int, now: float) -> None:
        """So many bytes of a topic came. A topic with a limit of its own counts for the flow's as well."""
        for bucket in self._buckets_for(topic):
            bucket.consume(size, now)

    def wait_s(self, topic: str, now: float) -> float:
        """Seconds until more of the topic may come; 0: now."""
        return max((bucket.wait_s(now) for bucket in self._buckets_for(topic)), default=0.0)

    def _buckets_for(self, topic: str) -> Iterator[TokenBucket]:
        return (self._buckets[key] for key in (FLOW, topic) if key in self._buckets)


SMALL_BYTES = 64 * 1024
"""An answer up to this size is small: it goes on its way before the next request."""

MANY_PER_S = 1_000
COUNTED_S = 0.1
"""Batches are many if so many a second came within the time that they are counted over."""

PACE_S = 0.006
PAUSE_FACTOR = 3
"""The pause is so many times as long as the request took, as long as both together are no more than `PACE_S`."""

NO_ROOM_WAIT_MS = 10
"""A request that leaves out partitions stays at the broker no longer than this, for they may be fetched again soon."""

TIGHT_WAIT_S = 0.05
"""A request that may bring but little, because most of the memory is taken, waits so long for more room."""


@dataclass(slots=True)
class _Count:
    """The batches that one connection brought of late."""

    since: float = float("-inf")
    batches: int = 0
    is_many: bool = False


class FetchSchedule:
    """The moments of each request of a slot. `now` everywhere: seconds of a clock that does not go back."""

    def __init__(self, max_wait_ms: int, bytes_per_s: PerTopic[int | None]) -> None:
        """`max_wait_ms`: how long a broker may keep a request for which it has nothing."""
        self._max_wait_ms = max_wait_ms
        self._counts: dict[Hashable, _Count] = defaultdict(_Count)
        self.rates = RateLimits(bytes_per_s)

    def pause_s(self, connection: Hashable, batches: int, size: int, asked_at: float, now: float) -> float:
        """Count what an answer brought on the connection. Returns the seconds until its broker is asked again.

        If cores are busy, a request takes longer, and the next one brings more. If they are not, the pause is short."""
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
        """How long a broker may keep a request, which may leave out partitions that had to wait."""
        return min(NO_ROOM_WAIT_MS, self._max_wait_ms) if leaves_out else self._max_wait_ms

    def allows(self, topic: str, now: float) -> bool:
        """Whether the limits of bytes a second let the topic be fetched now."""
        return not self.rates.any or self.rates.wait_s(topic, now) <= 0

    def allowed_in_s(self, topics: Iterable[str], now: float) -> float | None:
        """Seconds until the limits let one more of these topics be fetched. None: no topic waits for them."""
        waits = (self.rates.wait_s(topic, now) for topic in topics) if self.rates.any else ()
        return min((wait for wait in waits if wait > 0), default=None)
