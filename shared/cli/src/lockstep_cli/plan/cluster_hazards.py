"""How hazards are found that come from what a cluster knows, takes and limits. Pure.

A check gets what was found and what is copied, and returns (subject, sentence) pairs.
"""

from collections.abc import Iterator, Mapping

from lockstep_cli.formatting import count_text
from lockstep_cli.plan.flow_facts import FlowFacts
from lockstep_cli.plan.flow_plan import CopyForecast
from lockstep_cli.plan.hazard_checks import Finding
from lockstep_config.text.values import LONGEST_TOPIC
from lockstep_protocol.cluster_capabilities import TOPICS_ARE_FEW, Cost
from lockstep_protocol.topic_plan import factor_words


def find_refused_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that a cluster would not create."""
    long = {remote for remote in facts.selection.topics.values() if len(remote) > LONGEST_TOPIC}
    own = {one.name: one.alias for one in facts.control_topics}
    for topic, why in facts.refused.items():
        if topic in own:
            yield topic, f"{topic} on {own[topic]}, a topic of Lockstep without which the flow does not start: {why}"
        elif topic not in long:
            yield topic, f"{topic}: {why}"


def find_refused_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of mirrored topics that the target does not take."""
    own = {one.name for one in facts.control_topics}
    for remote, refused in facts.refused_configs.items():
        if remote not in own:
            yield remote, f"{remote}: {_refusals(refused)}"


def find_refused_control_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of control topics that a cluster does not take."""
    for one in facts.control_topics:
        if refused := facts.refused_configs.get(one.name):
            yield one.name, f"{one.name} on {one.alias} is created without {_refusals(refused)}"


def _refusals(refused: Mapping[str, str]) -> str:
    return "; ".join(f"{key} ({why})" for key, why in refused.items())


def find_unfit_clusters(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find clusters that do not know requests without which nothing is copied."""
    for cluster in (facts.source, facts.target):
        if cluster.unfit:
            product = f" ({cluster.product})" if cluster.product else ""
            yield cluster.alias, f"{cluster.alias}{product} does not know {', '.join(cluster.unfit)} in our versions"


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
    """Find clusters on which topics are few, with how many the flow needs there."""
    for cluster in (facts.source, facts.target):
        own = sum(one.alias == cluster.alias for one in facts.control_topics)
        copies = len(facts.partitions.create) if cluster is facts.target else 0
        if cluster.product in TOPICS_ARE_FEW and own + copies:
            yield (
                cluster.alias,
                f"{cluster.alias} ({cluster.product}) needs {count_text(own + copies, 'more topic')}: "
                f"{own} of Lockstep's own, {count_text(copies, 'copy', 'copies')}; it has {len(cluster.names)}",
            )


def find_demanded_factors(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics for which a cluster takes another replication factor than the wanted one."""
    own = {one.name: one.alias for one in facts.control_topics}
    for topic, factor in facts.factors.items():
        yield topic, f"{topic}: {own.get(topic, facts.target.alias)} takes {factor_words(factor)}"
