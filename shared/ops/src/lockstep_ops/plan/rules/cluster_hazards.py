"""The checks that find hazards of what a cluster knows, takes and limits. Pure.

Each function gets the facts of a flow and the forecast of its copy. It yields a subject and a sentence for each place.
"""

from collections.abc import Iterator, Mapping

from lockstep_config.text.values import LONGEST_TOPIC
from lockstep_ops.formatting import count_text
from lockstep_ops.plan.rules.flow_facts import ClusterState, FlowFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast
from lockstep_ops.plan.rules.hazard_checks import Finding
from lockstep_ops.plan.rules.topic_needs import count_copies, count_existing, count_own_topics
from lockstep_rules.clusters.cluster_capabilities import Cost
from lockstep_rules.clusters.cluster_limits import LIMITS, TierLimit, TopicCount
from lockstep_rules.topic_plan import factor_words


def find_refused_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that a cluster would not create."""
    long = {remote for remote in facts.selection.topics.values() if len(remote) > LONGEST_TOPIC}
    own = {topic.name: topic.alias for topic in facts.control_topics}
    for topic, reason in facts.refused.items():
        if topic in own:
            yield topic, f"{topic} on {own[topic]}, a topic of Lockstep without which the flow does not start: {reason}"
        elif topic not in long:
            yield topic, f"{topic}: {reason}"


def find_refused_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of mirrored topics that the target does not take."""
    own = {topic.name for topic in facts.control_topics}
    for remote, refused in facts.refused_configs.items():
        if remote not in own:
            yield remote, f"{remote}: {_refusals(refused)}"


def find_refused_control_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of control topics that a cluster does not take."""
    for topic in facts.control_topics:
        if refused := facts.refused_configs.get(topic.name):
            yield topic.name, f"{topic.name} on {topic.alias} is created without {_refusals(refused)}"


def _refusals(refused: Mapping[str, str]) -> str:
    return "; ".join(f"{key} ({reason})" for key, reason in refused.items())


def find_unfit_clusters(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find clusters that do not know requests without which nothing is copied."""
    for cluster in (facts.source, facts.target):
        if cluster.unfit:
            product = f" ({cluster.product})" if cluster.product else ""
            requests = ", ".join(request.text for request in cluster.unfit)
            yield (
                cluster.alias,
                f"{cluster.alias}{product} does not know what the flow needs in a version that Lockstep knows:"
                f" {requests}",
            )


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


def find_demanded_factors(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics for which a cluster takes another replication factor than the wanted one."""
    own = {topic.name: topic.alias for topic in facts.control_topics}
    for topic, factor in facts.factors.items():
        yield topic, f"{topic}: {own.get(topic, facts.target.alias)} takes {factor_words(factor)}"
