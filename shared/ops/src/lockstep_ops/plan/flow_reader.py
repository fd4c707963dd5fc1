"""Reads everything that the plan of one flow depends on. Nothing is changed, and no service has to run.

What one cluster does not permit is a missing right and a remark, and the rest is read all the same. A cluster that
cannot be reached ends the reading.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import EVERY, source_grants, target_grants
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.topics.control_topic_faults import TIMESTAMP_TYPE, read_faults
from lockstep_ops.permission_reader import missing_rights, unknown_rights
from lockstep_ops.plan.acl_facts_reader import read_acl_facts
from lockstep_ops.plan.capability_reader import add_capabilities
from lockstep_ops.plan.group_reader import GroupReading, read_groups
from lockstep_ops.plan.log_reader import read_logs
from lockstep_ops.plan.position_reader import Positions, read_positions
from lockstep_ops.plan.rules.flow_facts import AclFacts, FlowFacts, LogFacts, TopicClaim
from lockstep_ops.plan.rules.flow_plan import MOVED, MissingRight
from lockstep_ops.plan.rules.topic_needs import count_of_file
from lockstep_ops.plan.shared_cluster import SharedClusters
from lockstep_ops.plan.topic_reader import (
    ComingTopics,
    TopicReading,
    check_creations,
    missing_control_topics,
    needed_topics,
    read_topics,
)
from lockstep_ops.status.report import PausedPart
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.clusters.cluster_capabilities import Role
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.util.clock import now_ms
from lockstep_state.offsets import TopicPartition

T = TypeVar("T")

NOTHING = LogFacts(begin=0, end=0, size=0)
"""The log of a topic that does not exist yet."""


class FlowReader:
    """A reader of the facts of one flow.

    Args:
        settings: The flow.
        clusters: The clusters, which all flows share.
        coming: `coming_topics` of the file.
        timeout: The seconds to reach a cluster.
        opposite: Whether the file has the flow in the other direction.
    """

    def __init__(
        self,
        settings: FlowSettings,
        clusters: SharedClusters,
        coming: ComingTopics,
        steps: WorkProgress,
        timeout: float,
        *,
        opposite: bool = False,
    ) -> None:
        self._settings = settings
        self._opposite = opposite
        self._steps = steps
        self._timeout = timedelta(seconds=timeout)
        self.source, self.target = clusters.source(settings), clusters.target(settings)
        self._coming = coming.get(settings.flow.source, {})
        self._remarks: list[str] = []

    async def topics(self) -> TopicReading:
        """Read the topics, which are the part that a plan relies on.

        Raises:
            ClusterError: A cluster does not answer, or refuses.
        """
        await asyncio.gather(self.source.probe(self._timeout), self.target.probe(self._timeout))
        return await read_topics(self._settings, self.source, self.target, self._steps, self._coming)

    async def read(self) -> FlowFacts:
        """Read all facts of the flow.

        Raises:
            ClusterUnreachable: A cluster does not answer.
            NewerVersion: A row is of a newer release.
        """
        settings = self._settings
        topics = await self.topics()
        names = {settings.flow.source: topics.source.names, settings.flow.target: topics.target.names}
        control = missing_control_topics(settings, names)
        check = await check_creations(settings, self._clusters(), topics, control)
        positions = await self._unless_denied(
            read_positions(settings, self.source, self.target, topics.target.names), Positions()
        )
        known = topics.source.topics.items()
        partitions = [(name, number) for name, one in known if one.is_there for number in range(one.partitions)]
        nothing: tuple[dict[TopicPartition, LogFacts], str, str] = ({}, "unknown", "")
        logs, basis, remark = await self._unless_denied(
            read_logs(settings, self.source, partitions, self._steps), nothing
        )
        logs |= {(name, number): NOTHING for name, one in known if not one.is_there for number in range(one.partitions)}
        unread = {topic for topic, number in partitions if (topic, number) not in logs}
        groups, acls, rights = GroupReading(), AclFacts(), list(check.rights)
        if settings.enabled:
            groups = await read_groups(settings, self.source, self.target, self._steps)
            acls = await read_acl_facts(settings, self.source, self.target, topics, positions.rows)
            rights = [*await self._rights(topics), *rights]
        source_state, on_source = await add_capabilities(settings, self.source, topics.source, Role.SOURCE)
        target_state, on_target = await add_capabilities(settings, self.target, topics.target, Role.TARGET)
        return FlowFacts(
            settings=settings,
            at_ms=now_ms(),
            source=source_state,
            target=target_state,
            selection=topics.selection,
            partitions=topics.partitions,
            refused=check.refused,
            refused_configs=check.refused_configs,
            factors=check.factors,
            config_changes=topics.config_changes,
            logs=logs,
            bytes_basis=basis,
            reached=positions.reached,
            dated=await self._dated(logs, positions),
            unaccounted=await self._unaccounted(topics, positions),
            mirror_makers=positions.mirror_makers,
            groups=groups.groups,
            group_count=groups.count,
            acls=acls,
            control_topics=check.control,
            control_faults=await self._unless_denied(self._control_faults(), ()),
            rights=_distinct(rights),
            unreadable={
                **dict.fromkeys(sorted(unread), "its log cannot be read: Read on the topic is needed"),
                **_hidden(topics, check.hidden),
                **topics.unreadable,
            },
            remarks=tuple(
                filter(
                    None,
                    (
                        self._nothing_selected(topics),
                        *self._remarks,
                        remark,
                        groups.remark,
                        acls.note,
                        on_source,
                        on_target,
                        *positions.unread,
                    ),
                )
            ),
            held_back=tuple(PausedPart(*one) for one in DesiredStateView(positions.rows, settings.states).held_back()),
            opposite=self._opposite,
        )

    def _nothing_selected(self, topics: TopicReading) -> str:
        """Return why the flow has no topic, or "" if it has some."""
        if not self._settings.enabled or topics.selection.topics:
            return ""
        if topics.source.names:
            return f"no topic of {self.source.alias} that we may describe passes topics and topics.exclude"
        remedy = self.source.access.remedy("topic", EVERY, "Read")
        return f"{self.source.alias} shows no topic. It has none, or {remedy}"

    async def _control_faults(self) -> tuple[tuple[str, str, str], ...]:
        control_faults: list[tuple[str, str, str]] = []
        for alias, admin in self._clusters().items():
            topics = [topic for topic_alias, topic in needed_topics(self._settings) if topic_alias == alias]
            faults, _ = await read_faults(admin, topics)
            control_faults += [
                (fault.topic, fault.sentence, fault.command(admin.bootstrap))
                for fault in faults
                if fault.setting != TIMESTAMP_TYPE  # records are kept all the same
            ]
        return tuple(control_faults)

    def _clusters(self) -> Mapping[str, Admin]:
        return {self._settings.flow.source: self.source, self._settings.flow.target: self.target}

    async def _unless_denied(self, work: Awaitable[T], otherwise: T) -> T:
        """Return what `work` gives, or `otherwise` with a remark if a cluster refuses it."""
        try:
            return await work
        except ClusterUnreachable:
            raise
        except ClusterError as why:
            self._remarks.append(str(why))
            return otherwise

    async def _dated(self, logs: Mapping[TopicPartition, LogFacts], positions: Positions) -> dict[TopicPartition, int]:
        """Return the first offsets by `lockstep.start.timestamp`."""
        moments: dict[int, list[TopicPartition]] = {}
        for tp in logs:
            moment = self._settings.data_plane.start_timestamp.for_topic(tp[0])
            if moment is not None and tp not in positions.reached:
                moments.setdefault(moment, []).append(tp)
        found: dict[TopicPartition, int] = {}
        for moment, partitions in moments.items():
            since = await self.source.offsets_since(partitions, moment)
            found |= {tp: logs[tp].end if since.get(tp, -1) < 0 else since[tp] for tp in partitions}
        return found

    async def _unaccounted(self, topics: TopicReading, positions: Positions) -> dict[str, int]:
        """Return the number of records in remote topics of which no progress is known."""
        reached = {topic for topic, _ in positions.reached} | positions.begun
        remotes = {
            remote: topics.target.topics[remote].partitions
            for name, remote in topics.selection.topics.items()
            if name not in reached and remote in topics.target.topics
        }
        partitions = [(remote, number) for remote, count in remotes.items() for number in range(count)]
        begins, ends = await asyncio.gather(self.target.begin_offsets(partitions), self.target.end_offsets(partitions))
        records: dict[str, int] = {}
        for tp, end in ends.items():
            if end > begins.get(tp, end):
                records[tp[0]] = records.get(tp[0], 0) + end - begins[tp]
        return records

    async def _rights(self, topics: TopicReading) -> Iterable[MissingRight]:
        settings = self._settings
        selected = topics.selection.topics
        found: list[MissingRight] = []
        for cluster, grants, every, there in (
            (self.source, source_grants(settings), [*selected], topics.source.names),
            (self.target, target_grants(settings), [*selected.values()], topics.target.names),
        ):
            for remedy in await missing_rights(cluster, grants, every, there):
                found.append(MissingRight(cluster=cluster.alias, lacks=remedy.lacks, command=remedy.command))
            if unknown := await unknown_rights(cluster):
                self._remarks.append(unknown)
        return found


def _hidden(topics: TopicReading, hidden: Mapping[str, str]) -> dict[str, str]:
    """Return the topics that we may not describe, by source topic."""
    return {name: hidden[remote] for name, remote in topics.selection.topics.items() if remote in hidden}


def _distinct(rights: Iterable[MissingRight]) -> tuple[MissingRight, ...]:
    """Return one right for each command, because the right to create a prefix is missing for each of its topics."""
    found: dict[tuple[str, str], MissingRight] = {}
    for one in rights:
        found.setdefault((one.cluster, one.command or one.lacks), one)
    return tuple(found.values())


def with_claims(facts: Iterable[FlowFacts]) -> list[FlowFacts]:
    """Return the facts, each with the topics of its target that other flows write to.

    Each also has what all flows of the file create.
    """
    every = list(facts)
    file_topics = count_of_file(every)
    return [
        replace(
            one,
            file_topics=file_topics,
            claims={
                remote: TopicClaim(
                    str(other.settings.flow),
                    other.source.alias,
                    other.source.topics.get(name),
                    frozenset(group.group for group in other.groups if group.fate in MOVED),
                )
                for other in every
                if other is not one and other.target.cluster_id == one.target.cluster_id
                for name, remote in other.selection.topics.items()
            },
        )
        for one in every
    ]
