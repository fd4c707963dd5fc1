"""The topics of Lockstep and MM2 that the services of flows create when they start. Pure."""

from collections.abc import Iterable, Mapping

from lockstep_config import FlowSettings
from lockstep_kafka.topics.control_topics import ControlTopic, flow_topics, service_topics
from lockstep_ops.services import SERVICES

ComingTopics = Mapping[str, Mapping[str, ControlTopic]]
"""Topics by their name, by the alias of their cluster."""


def needed_topics(settings: FlowSettings) -> tuple[tuple[str, ControlTopic], ...]:
    """Return every topic that the flow's services create, once, with the alias of its cluster."""
    control = flow_topics(settings.flow, settings.group_id, settings.control.replication_factor)
    needed = [(settings.flow.target, topic) for topic in control]
    for service, is_needed in SERVICES.items():
        if is_needed(settings):
            needed += [entry for entry in service_topics(settings, service) if entry not in needed]
    return tuple(needed)


def needed_on(settings: FlowSettings, alias: str) -> list[ControlTopic]:
    """Return the topics that the flow's services create on one cluster."""
    return [topic for cluster, topic in needed_topics(settings) if cluster == alias]


def coming_topics(flows: Iterable[FlowSettings]) -> ComingTopics:
    """Return the topics that the services of these flows create, by cluster and name, also those that exist already."""
    topics: dict[str, dict[str, ControlTopic]] = {}
    for settings in flows:
        for alias, topic in needed_topics(settings):
            topics.setdefault(alias, {}).setdefault(topic.name, topic)
    return topics
