"""`lockstep.max.bytes.per.second` in one slot: the flow's limit and the topics' (no I/O; time comes from outside).

Slots do not talk to each other. Each takes that part of a limit which its partitions are of all partitions that the
limit is for."""

from collections.abc import Iterator, Mapping

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
