"""What decides about topics and groups of a flow, from its settings. Services act by it, and commands say beforehand
what the services would do. Pure.
"""

from collections.abc import Collection, Iterable, Mapping

from lockstep_config.flow.model import FlowSettings
from lockstep_rules.groups.group_selection import CheckpointRule
from lockstep_rules.topic_plan import Rules, selected


def topic_rules(settings: FlowSettings, *, one_cluster: bool) -> Rules:
    """Which topics are mirrored, and how. `one_cluster`: source and target have turned out to be one."""
    return Rules(
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
    """The source's topics that are mirrored, with their copies; `target`: the topics that are there."""
    return selected(topic_rules(settings, one_cluster=False), names, target=target).topics


def checkpoint_rule(settings: FlowSettings) -> CheckpointRule:
    """Which groups get checkpoints."""
    fails_back = settings.checkpoint.opposite is not None
    return CheckpointRule(settings.aliases, settings.policy, settings.topics, fails_back=fails_back)
