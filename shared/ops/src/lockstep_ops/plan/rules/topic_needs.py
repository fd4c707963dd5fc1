"""The number of topics and partitions that flows create on each cluster. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from lockstep_ops.plan.rules.flow_facts import ClusterState, FlowFacts
from lockstep_rules.clusters.cluster_limits import TopicCount


def count_own_topics(facts: FlowFacts, cluster: ClusterState) -> TopicCount:
    """Count the topics of Lockstep and of MirrorMaker 2 that the flow creates on a cluster."""
    return _sum(count for name, count in _creations(facts, cluster) if name not in facts.selection.topics.values())


def count_copies(facts: FlowFacts, cluster: ClusterState) -> TopicCount:
    """Count the copies of topics, and the partitions that existing ones get, on a cluster."""
    grown = (grow.total - grow.before for grow in facts.partitions.grow if cluster is facts.target)
    copies = (count for name, count in _creations(facts, cluster) if name in facts.selection.topics.values())
    return _sum(copies) + TopicCount(partitions=sum(grown))


def count_existing(cluster: ClusterState) -> TopicCount:
    """Count the topics that a cluster has, as far as they may be described. Which are compacted is not known."""
    return TopicCount(
        topics=len(cluster.names),
        partitions=sum(cluster.names.values()),
        largest=max(cluster.names.values(), default=0),
    )


def count_of_file(flows: Iterable[FlowFacts]) -> Mapping[str, TopicCount]:
    """Count the topics and partitions that all flows of a file create on each cluster, by its id.

    A topic that two of them need counts once.
    """
    created: dict[str, dict[str, TopicCount]] = {}
    for facts in flows:
        for cluster in (facts.source, facts.target):
            created.setdefault(cluster.cluster_id, {}).update(_creations(facts, cluster))
    return {cluster_id: _sum(topics.values()) for cluster_id, topics in created.items()}


def _creations(facts: FlowFacts, cluster: ClusterState) -> Iterator[tuple[str, TopicCount]]:
    for control in facts.control_topics:
        if control.alias == cluster.alias:
            yield control.name, _count(control.partitions, control.configs)
    if cluster is facts.target:
        for new in facts.partitions.create:
            source_topic = facts.source.topics.get(new.source)
            yield new.target, _count(new.partitions, {} if source_topic is None else source_topic.own)


def _count(partitions: int, configs: Mapping[str, str]) -> TopicCount:
    compacted = partitions if "compact" in configs.get("cleanup.policy", "") else 0
    return TopicCount(topics=1, partitions=partitions, compacted=compacted, largest=partitions)


def _sum(counts: Iterable[TopicCount]) -> TopicCount:
    return sum(counts, TopicCount())
