"""What the heartbeats that arrive on the target say of the clusters they come from. Pure.

They are mirrored like any topic, and the topic's name is the way they came: `B.A.heartbeats` on C holds A's heartbeats,
by way of B. So the flow B->C lives, and the one before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_protocol.policy import ReplicationPolicy
from lockstep_protocol.topics import heartbeats_among, upstream_sources

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
    """The newest heartbeat of a topic. When it was sent, by its sender's clock (Unix milliseconds), and how long before
    it was there, by both clocks. None if it was there before we listened."""

    sent_ms: int
    latency_ms: int | None = None


def with_heartbeat(known: UpstreamHeartbeat | None, sent_ms: int, arrived_ms: int | None) -> UpstreamHeartbeat:
    """With one more heartbeat. An older one, as after a restart of the copy, changes nothing."""
    if known is not None and sent_ms <= known.sent_ms:
        return known
    if arrived_ms is None:
        return UpstreamHeartbeat(sent_ms, None if known is None else known.latency_ms)
    return UpstreamHeartbeat(sent_ms, arrived_ms - sent_ms)


def age_seconds(known: UpstreamHeartbeat | None, listening_since_ms: int, now_ms: int) -> float:
    """How old the newest heartbeat is; where there has been none, since when there has been none. Never negative, for
    clocks may differ."""
    return max(0.0, (now_ms - (listening_since_ms if known is None else known.sent_ms)) / 1e3)
