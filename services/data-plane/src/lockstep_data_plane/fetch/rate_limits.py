"""`lockstep.max.bytes.per.second` in one slot: the flow's limit and the topics', each shared out by partitions (no
I/O).

Slots do not talk to each other: each takes of a limit what its partitions are of all partitions that the limit is
for."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep_config.keys.per_topic import PerTopic
from lockstep_data_plane.fetch.token_bucket import TokenBucket


class RateLimits:
    """The throttles of a slot. `now` everywhere: seconds of a clock that does not go back."""

    def __init__(self, limits: PerTopic[int | None]) -> None:
        self._limits = limits
        self._flow: TokenBucket | None = None
        self._topics: dict[str, TokenBucket] = {}
        self.any = limits.default is not None or bool(limits.others)

    def share(self, mine: Mapping[str, int], all_: Mapping[str, int]) -> None:
        """How many partitions of each topic this slot has, and how many there are in the flow."""
        ours, total = sum(mine.values()), sum(all_.values())
        limit = self._limits.default
        self._flow = _at(self._flow, limit * ours / total if limit is not None and ours and total else None)
        for topic in {*mine, *self._topics}:
            own = next((value for names, value in self._limits.others if names.matches(topic)), None)
            count = mine.get(topic, 0)
            throttle = _at(
                self._topics.get(topic), own * count / max(count, all_.get(topic, 0)) if own and count else None
            )
            if throttle is None:
                self._topics.pop(topic, None)
            else:
                self._topics[topic] = throttle

    def on_fetched(self, topic: str, size: int, now: float) -> None:
        """So many bytes of a topic came. A topic with a limit of its own counts for the flow's as well."""
        for throttle in (self._flow, self._topics.get(topic)):
            if throttle is not None:
                throttle.consume(size, now)

    def wait(self, topic: str, now: float) -> float:
        """Seconds until more of the topic may come; 0: now."""
        return max((t.wait(now) for t in (self._flow, self._topics.get(topic)) if t is not None), default=0.0)


def _at(throttle: TokenBucket | None, per_s: float | None) -> TokenBucket | None:
    if per_s is None:
        return None
    if throttle is None:
        return TokenBucket(per_s)
    throttle.per_s = per_s
    return throttle
