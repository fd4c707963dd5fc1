"""Reads the topics of both clusters: names, ids, partitions and configs.

From these follows what topic-sync would do.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import Remedy
from lockstep_config.flow.mirroring_rules import topic_rules
from lockstep_kafka.admin.topic_creation import Creation
from lockstep_kafka.admin.topic_requests import CHANGED_AT_ONCE
from lockstep_kafka.common.admin_types import NewTopic, Outcome, TopicDescription
from lockstep_kafka.common.errors import NotPermitted, RequestUnsupported
from lockstep_kafka.topics.control_topics import KEPT_CONFIGS, ControlTopic
from lockstep_ops.cluster_snapshot import ClusterSnapshot, Unknown
from lockstep_ops.needed_topics import needed_topics
from lockstep_ops.plan.rules.flow_facts import (
    RELIED_ON,
    ClusterState,
    ConfigChange,
    ControlTopicFacts,
    TopicFacts,
    TopicReading,
)
from lockstep_ops.plan.rules.flow_plan import MissingRight
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.topic_plan import (
    Selection,
    TopicRules,
    alterations,
    creation_configs,
    partition_plan,
    possible_factor,
    select_topics,
)
from lockstep_state.topic_config import TopicConfig


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
    settings: FlowSettings,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    steps: WorkProgress,
    coming: Mapping[str, ControlTopic],
    owners: Mapping[str, str] | None = None,
) -> TopicReading:
    """Read the topics of both clusters.

    Args:
        settings: The flow.
        source: The source.
        target: The target.
        steps: The progress to report to.
        coming: Topics that the flows of the file create on the source, by name. Those that do not exist yet count as if
            they did.
        owners: `name_owners` of the flow's rows.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
    """
    steps.begin(f"{settings.flow}: listing topics", 4)
    source_id, target_id = await asyncio.gather(source.cluster_id(), target.cluster_id())
    names, target_names = await asyncio.gather(source.topic_names(), target.topic_names())
    steps.advance(2)
    rules = topic_rules(settings, one_cluster=source_id == target_id)
    copies = settings.enabled and settings.data_plane.enabled
    coming = {name: topic for name, topic in coming.items() if name not in names}
    future_names = {**names, **{name: topic.partitions for name, topic in coming.items()}}
    selection = select_topics(rules, future_names, target=target_names, owners=owners) if copies else Selection({})
    described, remotes = await asyncio.gather(
        source.topics(selection.topics),
        target.topics(remote for remote in selection.topics.values() if remote in target_names),
    )
    steps.advance(2)
    hidden = remotes.troubles()
    unreadable = {name: str(trouble) for name, trouble in described.troubles().items()}
    unreadable |= {name: str(hidden[remote]) for name, remote in selection.topics.items() if remote in hidden}
    plan = partition_plan(
        selection.topics,
        future_names,
        target_names,
        not_now=frozenset(unreadable),
        keeps_counts=settings.topic_sync.keeps_counts,
    )
    configs = _ConfigReading(rules, selection.topics, described, remotes, sync=settings.topic_sync.sync_configs)
    await configs.read(source, target, steps, str(settings.flow))
    configs.expect(coming)
    creations = {new.source for new in plan.create}
    unreadable |= {name: trouble for name, trouble in configs.failed.items() if name in creations}
    return TopicReading(
        source=await _cluster_state(source, configs.source),
        target=replace(
            await _cluster_state(target, configs.target),
            message_max=await _read_number(target, "message.max.bytes"),
            min_insync=await _read_number(target, "min.insync.replicas"),
        ),
        selection=selection,
        partitions=plan,
        config_changes=tuple(configs.changes),
        unreadable=unreadable,
    )


async def _cluster_state(cluster: ClusterSnapshot, topics: Mapping[str, TopicFacts]) -> ClusterState:
    return ClusterState(
        alias=cluster.alias,
        bootstrap=cluster.admin.bootstrap,
        cluster_id=await cluster.cluster_id(),
        brokers=await cluster.broker_count(),
        names=await cluster.topic_names(),
        topics=topics,
    )


async def _read_number(cluster: ClusterSnapshot, key: str) -> int | None:
    """Return a config of the brokers that is a number, or None if it is not known."""
    configs = await cluster.broker_configs()
    value = "" if isinstance(configs, Unknown) else configs.get(key, "")
    return int(value) if value.isdigit() else None


class _ConfigReading:
    """A reading of configs, a piece of topics at a time. All at once are 350,000 values for 10,000 topics."""

    def __init__(
        self,
        rules: TopicRules,
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
        self.source = {name: TopicFacts(topic.topic_id, topic.partitions) for name, topic in described.done.items()}
        self.target = {name: TopicFacts(topic.topic_id, topic.partitions) for name, topic in remotes.done.items()}
        self.changes: list[ConfigChange] = []
        self.failed: dict[str, str] = {}

    async def read(self, source: ClusterSnapshot, target: ClusterSnapshot, steps: WorkProgress, flow: str) -> None:
        names = list(self._described)
        steps.begin(f"{flow}: reading configs", -(-len(names) // CHANGED_AT_ONCE))
        for start in range(0, len(names), CHANGED_AT_ONCE):
            piece = await source.topic_configs(names[start : start + CHANGED_AT_ONCE])
            self.failed |= {
                name: str(trouble)
                for name, trouble in piece.troubles().items()
                if not isinstance(trouble, RequestUnsupported)
            }
            remotes = [self._topics[name] for name in piece.done if self._topics[name] in self._remotes]
            remote_configs = (await target.topic_configs(remotes)).done
            for name, configs in piece.done.items():
                self._compare(name, configs, remote_configs.get(self._topics[name]))
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

    def _compare(self, name: str, configs: Sequence[TopicConfig], remote_configs: Sequence[TopicConfig] | None) -> None:
        topic, remote = self._described[name], self._topics[name]
        own = creation_configs(self._rules, configs)
        self.source[name] = TopicFacts(topic.topic_id, topic.partitions, _relied_on(configs), own)
        if remote_configs is None:
            return
        copy = self._remotes[remote]
        own = {config.name: config.value for config in remote_configs if config.is_topics}
        self.target[remote] = TopicFacts(
            copy.topic_id, copy.partitions, _relied_on(remote_configs), own, replicas=copy.replicas
        )
        if self._sync:
            self.changes += [
                ConfigChange(name, remote, key, own.get(key), after)
                for key, after in alterations(self._rules, configs, remote_configs).items()
            ]


def _relied_on(configs: Iterable[TopicConfig]) -> dict[str, str]:
    return {config.name: config.value for config in configs if config.name in RELIED_ON}


def missing_control_topics(settings: FlowSettings, names: Mapping[str, Mapping[str, int]]) -> list[ControlTopicFacts]:
    """Return the flow's own topics that do not exist yet. `names` are those of each cluster, by its alias."""
    return [
        ControlTopicFacts(alias, topic.name, topic.partitions, topic.replication_factor, topic.creation_configs)
        for alias, topic in needed_topics(settings)
        if topic.name not in names[alias]
    ]


async def check_creations(
    settings: FlowSettings,
    clusters: Mapping[str, ClusterSnapshot],
    reading: TopicReading,
    control: Sequence[ControlTopicFacts],
) -> CreationCheck:
    """Ask for every new topic if it would be created. Nothing is created.

    Args:
        settings: The flow.
        clusters: Both clusters, by alias.
        reading: Their topics.
        control: The control topics to create.

    Raises:
        ClusterUnreachable: A cluster does not answer.
    """
    check, facts = CreationCheck(), reading.source.topics
    factor = possible_factor(settings.topic_sync.replication_factor, reading.target.brokers)
    copies = [
        NewTopic(new.target, new.partitions, factor, dict(facts[new.source].own) if new.source in facts else {})
        for new in reading.partitions.create
    ]
    for state in (reading.source, reading.target):
        cluster, new_topics = clusters[state.alias], list[NewTopic]()
        for topic in control:
            if topic.alias == state.alias:
                factor = possible_factor(topic.replication_factor, state.brokers)
                new_topics.append(NewTopic(topic.name, topic.partitions, factor, dict(topic.configs)))
        _take_in(check, state.alias, await cluster.try_creation(new_topics, KEPT_CONFIGS))
        if state is reading.target:
            _take_in(check, state.alias, await cluster.try_creation(copies))
    hidden = [topic for topic in control if topic.name in check.hidden]
    for topic in hidden:
        remedy = clusters[topic.alias].admin.access.remedy("topic", topic.name, "Describe")
        check.rights.append(MissingRight(cluster=topic.alias, lacks=remedy.lacks, command=remedy.command))
    return replace(check, control=tuple(_as_created(topic, check) for topic in control if topic not in hidden))


def _take_in(check: CreationCheck, alias: str, creation: Creation) -> None:
    for name, trouble in creation.failed.items():
        if isinstance(trouble, NotPermitted):
            remedy = trouble.remedy or Remedy(str(trouble), "")
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
