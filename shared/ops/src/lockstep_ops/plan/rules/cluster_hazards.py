"""The hazards of clusters that do not know all requests, or take few topics. Pure.

The functions are like those of `hazard_checks.py`.
"""

from collections.abc import Iterator

from lockstep_ops.formatting import count_text
from lockstep_ops.plan.rules.flow_facts import ClusterState, FlowFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast
from lockstep_ops.plan.rules.hazard_checks import Finding
from lockstep_ops.plan.rules.topic_needs import count_copies, count_existing, count_own_topics
from lockstep_rules.clusters.cluster_capabilities import Cost
from lockstep_rules.clusters.cluster_limits import LIMITS, TierLimit, TopicCount
from lockstep_state.kafka.kafka_apis import UnfitRequest
from lockstep_state.kafka.kafka_requests import KafkaRequest


def find_unfit_clusters(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find clusters that do not know requests without which nothing is copied."""
    for cluster in (facts.source, facts.target):
        if unfit := [request for request in cluster.unfit if not _marks_copies(facts, cluster, request)]:
            product = f" ({cluster.product})" if cluster.product else ""
            requests = ", ".join(request.text for request in unfit)
            yield (
                cluster.alias,
                f"{cluster.alias}{product} does not know what the flow needs in a version that Lockstep knows:"
                f" {requests}",
            )


def find_unmarked_copies(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find a target without producer ids, if these alone say which records are copies."""
    target, flow = facts.target, facts.settings.flow
    if any(_marks_copies(facts, target, request) for request in target.unfit):
        yield (
            target.alias,
            f"{target.alias} ({target.product}) gives no producer ids (InitProducerId), and topics of {flow} keep "
            f"their names: a flow from {target.alias} could not tell copies from its own records",
        )


def _marks_copies(facts: FlowFacts, cluster: ClusterState, request: UnfitRequest) -> bool:
    """Return whether the flow needs a request only to know copies again, which LS037 is about."""
    is_producer_id = request.api.key == KafkaRequest.INIT_PRODUCER_ID
    return is_producer_id and cluster is facts.target and not facts.settings.data_plane.exactly_once


def find_missing_requests(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find requests that a cluster does not know, and without which a part of the work is not done, or otherwise."""
    for cluster in (facts.source, facts.target):
        for capability in cluster.lacks:
            if capability.cost is Cost.WORK:
                yield (
                    cluster.alias,
                    f"{cluster.alias} ({cluster.product}) does not know {capability.name}: {capability.without}",
                )


def find_few_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find clusters with limits of topics and partitions, with what the flow and the file create on them."""
    for cluster, tiers in _limited_clusters(facts):
        own, copies = count_own_topics(facts, cluster), count_copies(facts, cluster)
        created, existing = own + copies, count_existing(cluster)
        if created.partitions:
            file = facts.file_topics.get(cluster.cluster_id, created)
            yield (
                cluster.alias,
                f"On {cluster.alias} ({cluster.product}) {facts.settings.flow} creates {_count_words(created)}: "
                f"{own.topics} of Lockstep's own, {count_text(copies.topics, 'copy', 'copies')}. "
                f"All flows of the file create {_count_words(file)}. It has {_count_words(existing)}. "
                f"{'. '.join(tier.text for tier in tiers)}",
            )


def find_exceeded_limits(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find tiers of services that take fewer topics or partitions than the file creates."""
    for cluster, tiers in _limited_clusters(facts):
        created = count_own_topics(facts, cluster) + count_copies(facts, cluster)
        total = count_existing(cluster) + facts.file_topics.get(cluster.cluster_id, created)
        for tier in tiers if created.partitions else ():
            for kind, number, limit in tier.exceeded_by(total):
                yield (
                    cluster.alias,
                    f"{cluster.alias} would have {number:,} {kind}. {cluster.product}, {tier.tier}, takes {limit:,}",
                )


def _limited_clusters(facts: FlowFacts) -> Iterator[tuple[ClusterState, tuple[TierLimit, ...]]]:
    for cluster in (facts.source, facts.target):
        if tiers := LIMITS.get(cluster.product):
            yield cluster, tiers


def _count_words(count: TopicCount) -> str:
    words = f"{count_text(count.topics, 'topic')} with {count_text(count.partitions, 'partition')}"
    return f"{words}, {count.compacted:,} of them compacted" if count.compacted else words
