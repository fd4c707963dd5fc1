"""The remote topics of a cluster by their names, and the clusters that they came from (`mm2-behaviour.md` §3.8). Pure.

Heartbeats are mirrored like any topic and named after each cluster they came through. `B.A.heartbeats` on C says that C
mirrors B, and B mirrors A.
"""

from collections.abc import Iterable, Iterator

from lockstep_rules.policy import ReplicationPolicy


def upstream_sources(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Yield the aliases that `topic` came through, the nearest first, each once.

    It ends where an alias repeats: a policy that keeps names would return the same one for ever.
    """
    aliases: set[str] = set()
    name: str | None = topic
    while name is not None and (source := policy.topic_source(name)) is not None and source not in aliases:
        yield source
        aliases.add(source)
        name = policy.upstream_topic(name)


def hops_of_topic(policy: ReplicationPolicy, topic: str, source_alias: str) -> int | None:
    """Return the number of mirrors between `source_alias` and this cluster by the name of `topic`.

    None if it did not come from there. MM2 returns -1 then.
    """
    for count, source in enumerate(upstream_sources(policy, topic), start=1):
        if source == source_alias:
            return count
    return None


def count_hops(policy: ReplicationPolicy, topics: Iterable[str], source_alias: str) -> int | None:
    """Return the least number of mirrors that heartbeats of `source_alias` came through; None if none came."""
    counts = (hops_of_topic(policy, topic, source_alias) for topic in heartbeats_among(policy, topics))
    return min((count for count in counts if count is not None), default=None)


def find_upstream_clusters(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return every cluster whose heartbeats arrive here, directly or through others."""
    return frozenset(source for topic in heartbeats_among(policy, topics) for source in upstream_sources(policy, topic))


def heartbeats_among(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return the local and mirrored heartbeats topics."""
    return frozenset(topic for topic in topics if policy.is_heartbeats_topic(topic))


def checkpoints_among(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return the checkpoints topics."""
    return frozenset(topic for topic in topics if policy.is_checkpoints_topic(topic))


def remote_among(policy: ReplicationPolicy, topics: Iterable[str], source_alias: str | None = None) -> frozenset[str]:
    """Return the topics from another cluster, or from `source_alias` at the last hop, without internal ones."""
    return frozenset(
        topic
        for topic in topics
        if not policy.is_internal_topic(topic)
        and (source := policy.topic_source(topic)) is not None
        and source_alias in (None, source)
    )
