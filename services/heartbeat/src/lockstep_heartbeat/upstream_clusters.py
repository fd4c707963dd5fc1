"""What the heartbeats that arrive on the target say of the clusters they come from. Pure.

They are mirrored like any topic, and the topic's name is the way they came: `B.A.heartbeats` on C holds A's heartbeats,
by way of B. So the flow B->C lives, and the one before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_rules.policy import ReplicationPolicy
from lockstep_rules.topics import heartbeats_among, upstream_sources

MOST_UPSTREAMS = 100
"""Clusters of which a flow shows heartbeats; of more the nearest."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A cluster whose records reach the target through the flow, `hops` mirrors away, and the topic on the target that
    shows that it lives."""

    alias: str
    hops: int
    topic: str


def upstreams(policy: ReplicationPolicy, topics: Iterable[str], source: str) -> tuple[Upstream, ...]:
    """All clusters behind the flow from `source`, nearest first, by the topics on its target.

    A cluster is shown by what was written on it, and came the shortest way; where nothing was, by what came through it.
    """
    nearest: dict[str, int] = {}
    shown_by: dict[str, tuple[bool, int, str]] = {}
    # Checked first for what is cheap: there may be 10,000 others.
    likely = (topic for topic in topics if topic.endswith(policy.heartbeats_topic()))
    for topic in heartbeats_among(policy, likely):
        way = tuple(upstream_sources(policy, topic))
        if way[:1] != (source,):
            continue
        for hops, alias in enumerate(way, start=1):
            nearest[alias] = min(hops, nearest.get(alias, hops))
            better = (hops < len(way), hops, topic)
            shown_by[alias] = min(better, shown_by.get(alias, better))
    return tuple(
        Upstream(alias, nearest[alias], shown_by[alias][2]) for alias in sorted(nearest, key=lambda a: (nearest[a], a))
    )


@dataclass(frozen=True, slots=True)
class UpstreamHeartbeat:
    """The newest heartbeat of a topic."""

    sent_ms: int
    """When it was sent, by its sender's clock (Unix milliseconds)."""
    arrived_ms: int
    """When it arrived, by the clock of the service. If it was there before the service listened, when it was read."""
    latency_ms: int | None = None
    """How long before its arrival it was sent, by both clocks. None if it was there before the service listened."""


def with_heartbeat(
    newest: UpstreamHeartbeat | None, sent_ms: int, read_ms: int, *, new: bool = True
) -> UpstreamHeartbeat:
    """With one more heartbeat, the next one of the topic, which is read now. `new`: it arrives now, and was not there
    before the service listened.

    An older one, as after a restart of the copy, changes nothing. But the time of the known one may still be to come,
    for the clock of its sender was ahead. Then it gives way to any other: else it hides that nothing arrives."""
    ahead = newest is not None and newest.sent_ms > read_ms
    if newest is not None and sent_ms <= newest.sent_ms and (sent_ms == newest.sent_ms or not ahead):
        return newest
    if new:
        return UpstreamHeartbeat(sent_ms, read_ms, read_ms - sent_ms)
    return UpstreamHeartbeat(sent_ms, read_ms, None if newest is None or ahead else newest.latency_ms)


def age_seconds(newest: UpstreamHeartbeat | None, listening_since_ms: int, now_ms: int) -> float:
    """How old the newest heartbeat is; where there has been none, since when there has been none. At least the time
    since it arrived, for the clock of its sender may be ahead. Never negative."""
    since_ms = listening_since_ms if newest is None else min(newest.sent_ms, newest.arrived_ms)
    return max(0.0, (now_ms - since_ms) / 1e3)
