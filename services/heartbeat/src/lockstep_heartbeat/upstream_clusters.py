"""The clusters whose heartbeats arrive on the target. Pure.

Heartbeats are mirrored like any topic, and the topic's name has the aliases that they came through. `B.A.heartbeats` on
C has A's heartbeats, by way of B. So the flow B->C is alive, and the one before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_rules.policy import ReplicationPolicy
from lockstep_rules.remote_topics import heartbeats_among, upstream_sources

MOST_UPSTREAMS = 100
"""The greatest number of clusters of which a flow shows heartbeats, the nearest ones."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A cluster whose records reach the target through the flow, `hops` mirrors away.

    `topic` is the topic of the target that shows that the cluster is alive.
    """

    alias: str
    hops: int
    topic: str


def find_upstreams(policy: ReplicationPolicy, topics: Iterable[str], source: str) -> tuple[Upstream, ...]:
    """Return all clusters behind the flow from `source`, nearest first, by the topics on its target.

    The topic of a cluster is that of its own heartbeats by the shortest path, or else of those that came through it.
    """
    nearest: dict[str, int] = {}
    shown_by: dict[str, tuple[bool, int, str]] = {}
    # Checked first for what is cheap: there may be 10,000 others.
    likely = (topic for topic in topics if topic.endswith(policy.heartbeats_topic()))
    for topic in heartbeats_among(policy, likely):
        aliases = tuple(upstream_sources(policy, topic))
        if aliases[:1] != (source,):
            continue
        for hops, alias in enumerate(aliases, start=1):
            nearest[alias] = min(hops, nearest.get(alias, hops))
            better = (hops < len(aliases), hops, topic)
            shown_by[alias] = min(better, shown_by.get(alias, better))
    return tuple(
        Upstream(alias, nearest[alias], shown_by[alias][2]) for alias in sorted(nearest, key=lambda a: (nearest[a], a))
    )


@dataclass(frozen=True, slots=True)
class UpstreamHeartbeat:
    """The newest heartbeat of a topic."""

    sent_ms: int
    """Unix milliseconds by its sender's clock."""
    arrived_ms: int
    """Unix milliseconds by the clock of the service. If it arrived before the service listened, when it was read."""
    latency_ms: int | None = None
    """Milliseconds from sending to arrival, by both clocks. None if it arrived before the service listened."""


def with_heartbeat(
    newest: UpstreamHeartbeat | None, sent_ms: int, read_ms: int, *, new: bool = True
) -> UpstreamHeartbeat:
    """Return the newest heartbeat of a topic after the next one was read.

    An older one, as after a restart of the copy, changes nothing. But the clock of a sender may be ahead, so that the
    known heartbeat is still to come. Then any other one replaces it: else it hides that nothing arrives.

    Args:
        newest: The newest heartbeat before.
        sent_ms: The sender's time of the one that was read.
        read_ms: The present time.
        new: It arrived now, and not before the service listened.
    """
    ahead = newest is not None and newest.sent_ms > read_ms
    if newest is not None and sent_ms <= newest.sent_ms and (sent_ms == newest.sent_ms or not ahead):
        return newest
    if new:
        return UpstreamHeartbeat(sent_ms, read_ms, read_ms - sent_ms)
    return UpstreamHeartbeat(sent_ms, read_ms, None if newest is None or ahead else newest.latency_ms)


def age_seconds(newest: UpstreamHeartbeat | None, listening_since_ms: int, now_ms: int) -> float:
    """Return the age of the newest heartbeat, or the time since the service listens if none has arrived.

    It is at least the time since it arrived, for the clock of its sender may be ahead, and never negative.
    """
    since_ms = listening_since_ms if newest is None else min(newest.sent_ms, newest.arrived_ms)
    return max(0.0, (now_ms - since_ms) / 1e3)
