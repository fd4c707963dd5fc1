"""Reads the topics of both clusters: names, ids, partitions and configs.

From these follows what topic-sync would do.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import Remedy
from lockstep_config.flow.mirroring_rules import topic_rules
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.request_pieces import together
from lockstep_kafka.admin.topic_creation import Creation, create_fitting_topics
from lockstep_kafka.admin.topic_requests import CHANGED_AT_ONCE
from lockstep_kafka.common.admin_types import NewTopic, Outcome, TopicDescription
from lockstep_kafka.common.errors import NotPermitted, RequestUnsupported
from lockstep_kafka.topics.control_topics import KEPT_CONFIGS, ControlTopic, flow_topics, service_topics
from lockstep_ops.plan.rules.flow_facts import RELIED_ON, ClusterState, ConfigChange, ControlTopicFacts, TopicFacts
from lockstep_ops.plan.rules.flow_plan import MissingRight
from lockstep_ops.services import SERVICES
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.topic_plan import (
    Rules,
    Selection,
    TopicSyncPlan,
    alterations,
    creation_configs,
    partition_plan,
    possible_factor,
    selected,
)
from lockstep_state.topic_config import TopicConfig

ComingTopics = Mapping[str, Mapping[str, ControlTopic]]
"""Topics by their name, by the alias of their cluster."""


@dataclass(frozen=True, slots=True)
class TopicReading:
    """The topics that were found, and what topic-sync makes of them."""

    source: ClusterState
    target: ClusterState
    selection: Selection
    partitions: TopicSyncPlan
    config_changes: tuple[ConfigChange, ...]
    unreadable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreationCheck:
    """The clusters' answers about the topics that would be created."""

    control: tuple[ControlTopicFacts, ...] = ()
    """Control topics to create, without those that are in `hidden`."""
    refused: dict[str, str] = field(default_factory=dict)
    refused_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Configs that a cluster would leave out, each with its words, by topic."""
    factors: dict[str, int] = field(default_factory=dict)
    """Replication factors that a cluster takes instead of the wanted ones, by topic."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Topics that exist and that we may not describe."""
    rights: list[MissingRight] = field(default_factory=list)


async def read_topics(
    settings: FlowSettings, source: Admin, target: Admin, steps: WorkProgress, coming: Mapping[str, ControlTopic]
) -> TopicReading:
    """Read the topics of both clusters.

    Args:
        settings: The flow.
        source: The source.
        target: The target.
        steps: The progress to report to.
        coming: Topics that the flows of the file create on the source, by name. Those that do not exist yet count as if
            they did.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
    """
    steps.begin(f"{settings.flow}: listing topics", 4)
    ids = await asyncio.gather(source.cluster_id(), target.cluster_id())
    brokers = await asyncio.gather(source.broker_count(), target.broker_count())
    names, there = await asyncio.gather(source.topic_names(), target.topic_names())
    steps.advance(2)
    rules = topic_rules(settings, one_cluster=ids[0] == ids[1])
    copies = settings.enabled and settings.data_plane.enabled
    coming = {name: topic for name, topic in coming.items() if name not in names}
    to_be = {**names, **{name: topic.partitions for name, topic in coming.items()}}
    selection = selected(rules, to_be, target=there) if copies else Selection({})
    described, remotes = await asyncio.gather(
        source.topics(selection.topics),
        target.topics(remote for remote in selection.topics.values() if remote in there),
    )
    steps.advance(2)
    hidden = remotes.troubles()
    unreadable = {name: str(why) for name, why in described.troubles().items()}
    unreadable |= {name: str(hidden[remote]) for name, remote in selection.topics.items() if remote in hidden}
    plan = partition_plan(
        selection.topics,
        to_be,
        there,
        not_now=frozenset(unreadable),
        keeps_counts=settings.topic_sync.keeps_counts,
    )
    configs = _ConfigReading(rules, selection.topics, described, remotes, sync=settings.topic_sync.sync_configs)
    await configs.read(source, target, steps, str(settings.flow))
    configs.expect(coming)
    creations = {new.source for new in plan.create}
    unreadable |= {name: why for name, why in configs.failed.items() if name in creations}
    limit = await target.broker_config("message.max.bytes")
    least = await target.broker_config("min.insync.replicas")
    return TopicReading(
        source=ClusterState(
            alias=source.alias,
            bootstrap=source.bootstrap,
            cluster_id=ids[0],
            brokers=brokers[0],
            names=names,
            topics=configs.source,
        ),
        target=ClusterState(
            alias=target.alias,
            bootstrap=target.bootstrap,
            cluster_id=ids[1],
            brokers=brokers[1],
            names=there,
            topics=configs.target,
            message_max=int(limit) if limit and limit.isdigit() else None,
            min_insync=int(least) if least and least.isdigit() else None,
        ),
        selection=selection,
        partitions=plan,
        config_changes=tuple(configs.changes),
        unreadable=unreadable,
    )


class _ConfigReading:
    """A reading of configs, a piece of topics at a time. All at once are 350,000 values for 10,000 topics."""

    def __init__(
        self,
        rules: Rules,
        topics: Mapping[str, str],
        described: Outcome[TopicDescription],
        remotes: Outcome[TopicDescription],
        *,
        sync: bool,
    ) -> None:
        self._rules = rules
        self._topics = topics
        self._described = described.done
        self._remotes = remotes.done
        self._sync = sync
        self.source: dict[str, TopicFacts] = {
            name: TopicFacts(one.topic_id, one.partitions) for name, one in described.done.items()
        }
        self.target: dict[str, TopicFacts] = {
            name: TopicFacts(one.topic_id, one.partitions) for name, one in remotes.done.items()
        }
        self.changes: list[ConfigChange] = []
        self.failed: dict[str, str] = {}

    async def read(self, source: Admin, target: Admin, steps: WorkProgress, flow: str) -> None:
        steps.begin(f"{flow}: reading configs", -(-len(self._described) // CHANGED_AT_ONCE))
        async for piece in source.config_pieces(self._described):
            troubles = piece.troubles().items()
            self.failed |= {name: str(why) for name, why in troubles if not isinstance(why, RequestUnsupported)}
            remotes = [self._topics[name] for name in piece.done if self._topics[name] in self._remotes]
            there = await together(target.config_pieces(remotes))
            for name, configs in piece.done.items():
                self._compare(name, configs, there.done.get(self._topics[name]))
            steps.advance()

    def expect(self, coming: Mapping[str, ControlTopic]) -> None:
        """Add the mirrored topics of `coming` as they will be created."""
        for name in self._topics.keys() & coming.keys():
            configs = [
                TopicConfig(key, value, is_default=False, is_topics=True)
                for key, value in coming[name].creation_configs.items()
            ]
            own = creation_configs(self._rules, configs)
            self.source[name] = TopicFacts("", coming[name].partitions, _relied_on(configs), own, is_there=False)

    def _compare(self, name: str, configs: Sequence[TopicConfig], there: Sequence[TopicConfig] | None) -> None:
        known, remote = self._described[name], self._topics[name]
        own = creation_configs(self._rules, configs)
        self.source[name] = TopicFacts(known.topic_id, known.partitions, _relied_on(configs), own)
        if there is None:
            return
        copy = self._remotes[remote]
        own = {one.name: one.value for one in there if one.is_topics}
        self.target[remote] = TopicFacts(copy.topic_id, copy.partitions, _relied_on(there), own, replicas=copy.replicas)
        if self._sync:
            self.changes += [
                ConfigChange(name, remote, key, own.get(key), after)
                for key, after in alterations(self._rules, configs, there).items()
            ]


def _relied_on(configs: Iterable[TopicConfig]) -> dict[str, str]:
    return {one.name: one.value for one in configs if one.name in RELIED_ON}


def needed_topics(settings: FlowSettings) -> tuple[tuple[str, ControlTopic], ...]:
    """Return every topic of Lockstep and MM2 that the flow's services create when they start.

    Each is there once, with the alias of its cluster.
    """
    control = flow_topics(settings.flow, settings.group_id, settings.control.replication_factor)
    needed = [(settings.flow.target, one) for one in control]
    for service, is_needed in SERVICES.items():
        if is_needed(settings):
            needed += [one for one in service_topics(settings, service) if one not in needed]
    return tuple(needed)


def coming_topics(flows: Iterable[FlowSettings]) -> ComingTopics:
    """Return the topics that the services of these flows create, by cluster and name, also those that exist already."""
    found: dict[str, dict[str, ControlTopic]] = {}
    for settings in flows:
        for alias, topic in needed_topics(settings):
            found.setdefault(alias, {}).setdefault(topic.name, topic)
    return found


def missing_control_topics(settings: FlowSettings, names: Mapping[str, Mapping[str, int]]) -> list[ControlTopicFacts]:
    """Return the flow's own topics that do not exist yet. `names` are those of each cluster, by its alias."""
    return [
        ControlTopicFacts(alias, one.name, one.partitions, one.replication_factor, one.creation_configs)
        for alias, one in needed_topics(settings)
        if one.name not in names[alias]
    ]


async def check_creations(
    settings: FlowSettings, clusters: Mapping[str, Admin], reading: TopicReading, control: Sequence[ControlTopicFacts]
) -> CreationCheck:
    """Ask for every new topic if it would be created. Nothing is created.

    Raises:
        ClusterUnreachable: A cluster does not answer.
    """
    check = CreationCheck()
    factor = possible_factor(settings.topic_sync.replication_factor, reading.target.brokers)
    facts = reading.source.topics
    mirrored: dict[str, NewTopic] = {}
    for new in reading.partitions.create:
        configs = dict(facts[new.source].own) if new.source in facts else {}
        mirrored[new.target] = NewTopic(new.target, new.partitions, factor, configs)
    brokers = {settings.flow.source: reading.source.brokers, settings.flow.target: reading.target.brokers}
    own = {settings.flow.source: list[NewTopic](), settings.flow.target: list[NewTopic]()}
    for one in control:
        factor = possible_factor(one.replication_factor, brokers[one.alias])
        own[one.alias].append(NewTopic(one.name, one.partitions, factor, dict(one.configs)))
    for alias, cluster in clusters.items():
        ours = await create_fitting_topics(cluster, own[alias], kept=KEPT_CONFIGS, validate_only=True)
        _take_in(check, alias, ours)
        if alias == settings.flow.target:
            _take_in(check, alias, await create_fitting_topics(cluster, list(mirrored.values()), validate_only=True))
    hidden = [one for one in control if one.name in check.hidden]
    for one in hidden:
        remedy = clusters[one.alias].access.remedy("topic", one.name, "Describe")
        check.rights.append(MissingRight(cluster=one.alias, lacks=remedy.lacks, command=remedy.command))
    return replace(check, control=tuple(_as_created(one, check) for one in control if one not in hidden))


def _take_in(check: CreationCheck, alias: str, creation: Creation) -> None:
    for name, trouble in creation.failed.items():
        if isinstance(trouble, NotPermitted):
            remedy = Remedy(str(trouble), "") if trouble.remedy is None else trouble.remedy
            check.rights.append(MissingRight(cluster=alias, lacks=remedy.lacks, command=remedy.command))
        else:
            check.refused[name] = trouble.message
    check.hidden.update({name: f"{name} exists on {alias}, and it may not be described" for name in creation.existed})
    check.refused_configs.update(creation.refused)
    check.factors.update(creation.factors)


def _as_created(topic: ControlTopicFacts, check: CreationCheck) -> ControlTopicFacts:
    refused = check.refused_configs.get(topic.name, {})
    configs = {key: value for key, value in topic.configs.items() if key not in refused}
    return replace(topic, configs=configs)
