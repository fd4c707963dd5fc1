"""The rules by which topics and groups of a flow are mirrored, from its settings.

Services act by them, and commands say beforehand what the services would do. This module is pure.
"""

from collections.abc import Collection, Iterable, Mapping

from lockstep_config.flow.model import FlowSettings
from lockstep_rules.groups.group_selection import CheckpointRule
from lockstep_rules.topic_plan import TopicRules, select_topics


def topic_rules(settings: FlowSettings, *, one_cluster: bool) -> TopicRules:
    """Return the rules by which topics are mirrored.

    Args:
        settings: The flow.
        one_cluster: Source and target have turned out to be the same cluster.
    """
    return TopicRules(
        flow=settings.aliases,
        policy=settings.policy,
        topics=settings.topics,
        config_properties=settings.config_properties,
        replication_factor=settings.topic_sync.replication_factor,
        heartbeats_replicated=settings.topic_sync.heartbeats_replicated,
        cycle_by_source=settings.rules.cycle_by_source,
        cycles_exact=settings.topic_sync.cycles_exact,
        aliases=settings.topic_sync.aliases,
        same_cluster=one_cluster,
    )


def mirrored_topics(settings: FlowSettings, names: Iterable[str], target: Collection[str]) -> Mapping[str, str]:
    """Return the source's topics that are mirrored, each with its copy.

    Args:
        settings: The flow.
        names: The topics of the source.
        target: The topics of the target.
    """
    return select_topics(topic_rules(settings, one_cluster=False), names, target=target).topics


def checkpoint_rule(settings: FlowSettings) -> CheckpointRule:
    """Return the rule by which groups get checkpoints."""
    fails_back = settings.checkpoint.opposite is not None
    return CheckpointRule(settings.aliases, settings.policy, settings.topics, fails_back=fails_back)
