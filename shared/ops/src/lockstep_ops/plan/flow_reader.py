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
from lockstep_kafka.topics.control_topic_faults import TIMESTAMP_TYPE
from lockstep_ops.cluster_snapshot import ClusterSnapshot, ClusterSnapshots, Unknown, or_unknown
from lockstep_ops.needed_topics import ComingTopics, needed_on
from lockstep_ops.plan.group_reader import GroupReading, read_groups
from lockstep_ops.plan.log_reader import LogReading, count_records, read_dated_starts, read_logs
from lockstep_ops.plan.position_reader import Positions, read_positions
from lockstep_ops.plan.rules.acl_changes import acl_changes, acl_resources
from lockstep_ops.plan.rules.flow_facts import AclFacts, ClusterState, FlowFacts, LogFacts, TopicClaim, TopicReading
from lockstep_ops.plan.rules.flow_plan import MOVED, MissingRight
from lockstep_ops.plan.rules.topic_needs import count_of_file
from lockstep_ops.plan.topic_reader import check_creations, missing_control_topics, read_topics
from lockstep_ops.status.report import PausedPart
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.clusters.cluster_capabilities import Role, known_versions, missing_capabilities, needed_apis
from lockstep_rules.topic_plan import NOT_COPIED, name_owners
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.util.clock import now_ms
from lockstep_state.kafka.kafka_apis import unfit_requests
from lockstep_state.rows.state_rows import MirroredTopic, Row

T = TypeVar("T")

NOTHING = LogFacts(begin=0, end=0, size=0)
"""The log of a topic that does not exist yet."""


class FlowReader:
    """A reader of the facts of one flow.

    Args:
        settings: The flow.
        clusters: The clusters, which all flows share.
        coming: `coming_topics` of the file.
        steps: The progress to report to.
        timeout: The seconds to reach a cluster.
        opposite: Whether the file has the flow in the other direction.
    """

    def __init__(
        self,
        settings: FlowSettings,
        clusters: ClusterSnapshots,
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
        self._source, self._target = clusters.source(settings), clusters.target(settings)
        self._coming = coming.get(settings.flow.source, {})
        self._remarks: list[str] = []

    async def topics(self) -> TopicReading:
        """Read the topics, which are the part that a plan relies on.

        Raises:
            ClusterError: A cluster does not answer, or refuses.
        """
        await asyncio.gather(self._source.probe(self._timeout), self._target.probe(self._timeout))
        owners = await self._name_owners() if self._settings.renames else None
        return await read_topics(self._settings, self._source, self._target, self._steps, self._coming, owners)

    async def _name_owners(self) -> Mapping[str, str]:
        """Return the source topic of each copy: a topic that a rename gives the name of another's copy is left out."""
        reading = await or_unknown(read_positions(self._settings, self._source, self._target))
        rows = {} if isinstance(reading, Unknown) else reading.rows
        return name_owners(row for row in rows.values() if isinstance(row, MirroredTopic))

    async def read(self) -> FlowFacts:
        """Read all facts of the flow.

        Raises:
            ClusterError: A cluster does not answer, or refuses the topics.
            NewerVersion: A row is of a newer release.
        """
        settings, source, target = self._settings, self._source, self._target
        topics = await self.topics()
        names = {settings.flow.source: topics.source.names, settings.flow.target: topics.target.names}
        control = missing_control_topics(settings, names)
        clusters = {settings.flow.source: source, settings.flow.target: target}
        check = await check_creations(settings, clusters, topics, control)
        positions = await self._unless_denied(read_positions(settings, source, target), Positions())
        facts = topics.source.topics.items()
        partitions = [(name, number) for name, topic in facts if topic.is_there for number in range(topic.partitions)]
        coming = [(name, number) for name, topic in facts if not topic.is_there for number in range(topic.partitions)]
        reading = await self._unless_denied(read_logs(settings, source, partitions, self._steps), LogReading())
        logs = reading.logs | dict.fromkeys(coming, NOTHING)
        unread = {topic for topic, number in partitions if (topic, number) not in logs}
        groups, acls, rights = GroupReading(), AclFacts(), list(check.rights)
        if settings.enabled:
            groups = await read_groups(settings, source, target, self._steps)
            acls = await self._acls(topics, positions.rows)
            rights = [*await self._rights(topics), *rights]
        source_state, on_source = await self._with_capabilities(source, topics.source, Role.SOURCE)
        target_state, on_target = await self._with_capabilities(target, topics.target, Role.TARGET)
        control_faults = await self._unless_denied(self._control_faults(), ())
        notes = reading.remark, groups.remark, acls.note, on_source, on_target, *positions.unread
        remarks = self._why_nothing_selected(topics), *self._remarks, *notes
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
            batches=reading.batches,
            bytes_basis=reading.basis,
            reached=positions.reached,
            dated=await read_dated_starts(settings, source, logs, positions.reached),
            unaccounted=await self._unaccounted(topics, positions),
            mirror_makers=positions.mirror_makers,
            groups=groups.groups,
            group_count=groups.count,
            acls=acls,
            control_topics=check.control,
            control_faults=control_faults,
            rights=_distinct(rights),
            unreadable={
                **dict.fromkeys(sorted(unread), "its log cannot be read: Read on the topic is needed"),
                **{name: check.hidden[copy] for name, copy in topics.selection.topics.items() if copy in check.hidden},
                **topics.unreadable,
            },
            remarks=tuple(filter(None, remarks)),
            held_back=tuple(
                PausedPart(*paused) for paused in DesiredStateView(positions.rows, settings.states).held_back()
            ),
            former_names=_find_former_names(topics, positions.rows),
            opposite=self._opposite,
        )

    def _why_nothing_selected(self, topics: TopicReading) -> str:
        """Return why the flow has no topic, or "" if it has some."""
        if not self._settings.enabled or topics.selection.topics:
            return ""
        if topics.source.names:
            return f"no topic of {self._source.alias} that we may describe passes topics and topics.exclude"
        remedy = self._source.admin.access.remedy("topic", EVERY, "Read")
        return f"{self._source.alias} shows no topic. It has none, or {remedy}"

    async def _control_faults(self) -> tuple[tuple[str, str, str], ...]:
        control_faults: list[tuple[str, str, str]] = []
        for cluster in (self._source, self._target):
            faults, _ = await cluster.control_topic_faults(needed_on(self._settings, cluster.alias))
            control_faults += [
                (fault.topic, fault.sentence, fault.command(cluster.admin.bootstrap))
                for fault in faults
                if fault.setting != TIMESTAMP_TYPE  # records are kept all the same
            ]
        return tuple(control_faults)

    async def _unless_denied(self, work: Awaitable[T], otherwise: T) -> T:
        """Return what `work` gives, or `otherwise` with a remark if a cluster refuses it."""
        fact = await or_unknown(work)
        if isinstance(fact, Unknown):
            self._remarks.append(str(fact))
            return otherwise
        return fact

    async def _unaccounted(self, topics: TopicReading, positions: Positions) -> dict[str, int]:
        """Return the number of records in remote topics of which no progress is known."""
        reached = {topic for topic, _ in positions.reached} | positions.begun
        copies = topics.target.topics
        return await count_records(
            self._target,
            {
                remote: copies[remote].partitions
                for name, remote in topics.selection.topics.items()
                if name not in reached and remote in copies
            },
        )

    async def _acls(self, topics: TopicReading, rows: Mapping[str, Row]) -> AclFacts:
        if not self._settings.acl_sync.enabled:
            return AclFacts(note="ACLs are not copied: sync.topic.acls.enabled is false")
        resources = acl_resources(self._settings)
        source = await self._source.acls(resources)
        target = source if isinstance(source, Unknown) else await self._target.acls(resources)
        if isinstance(source, Unknown) or isinstance(target, Unknown):
            return AclFacts(note=f"ACLs: {target}")
        return acl_changes(self._settings, topics, rows, source, target)

    async def _rights(self, topics: TopicReading) -> Iterable[MissingRight]:
        settings, selected = self._settings, topics.selection.topics
        rights: list[MissingRight] = []
        for cluster, grants, names in (
            (self._source, source_grants(settings), [*selected]),
            (self._target, target_grants(settings), [*selected.values()]),
        ):
            for remedy in await cluster.missing_rights(grants, names):
                rights.append(MissingRight(cluster=cluster.alias, lacks=remedy.lacks, command=remedy.command))
            if unknown := await cluster.unknown_rights():
                self._remarks.append(unknown)
        return rights

    async def _with_capabilities(
        self, cluster: ClusterSnapshot, state: ClusterState, role: Role
    ) -> tuple[ClusterState, str]:
        """Return the state of a cluster with the requests that it knows, and a remark if these cannot be read."""
        reading = await cluster.versions()
        if isinstance(reading, Unknown):
            return state, f"which requests {state.alias} knows is not known: {reading}"
        transactions, keeps_names = self._settings.data_plane.exactly_once, self._settings.keeps_names
        needed = needed_apis(role, transactions=transactions, keeps_names=keeps_names)
        versions = known_versions(reading.versions, cluster.admin.refused_requests)
        missing = tuple(missing_capabilities(versions, [role]))
        return replace(state, product=reading.kind, lacks=missing, unfit=unfit_requests(versions, needed)), ""


def _find_former_names(topics: TopicReading, rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the topics that were copied to another name than they would have now, each with that name."""
    mirrored = [row for row in rows.values() if isinstance(row, MirroredTopic) and row.phase not in NOT_COPIED]
    names = ((row.source_topic, row.target_topic) for row in mirrored if row.target_topic)
    return {name: former for name, former in names if topics.selection.topics.get(name, former) != former}


def _distinct(rights: Iterable[MissingRight]) -> tuple[MissingRight, ...]:
    """Return one right for each command, because the right to create a prefix is missing for each of its topics."""
    by_command: dict[tuple[str, str], MissingRight] = {}
    for right in rights:
        by_command.setdefault((right.cluster, right.command or right.lacks), right)
    return tuple(by_command.values())


def with_claims(facts: Iterable[FlowFacts]) -> list[FlowFacts]:
    """Return the facts, each with the topics of its target that other flows write to.

    Each also has what all flows of the file create.
    """
    all_facts = list(facts)
    file_topics = count_of_file(all_facts)
    return [
        replace(
            flow,
            file_topics=file_topics,
            claims={
                remote: TopicClaim(
                    str(other.settings.flow),
                    other.source.alias,
                    other.source.topics.get(name),
                    frozenset(group.group for group in other.groups if group.fate in MOVED),
                )
                for other in all_facts
                if other is not flow and other.target.cluster_id == flow.target.cluster_id
                for name, remote in other.selection.topics.items()
            },
            comes_back={
                remote: name
                for other in all_facts
                if _is_opposite(flow, other)
                for name, remote in other.selection.topics.items()
            },
        )
        for flow in all_facts
    ]


def _is_opposite(flow: FlowFacts, other: FlowFacts) -> bool:
    clusters = flow.source.cluster_id, flow.target.cluster_id
    return other is not flow and (other.target.cluster_id, other.source.cluster_id) == clusters
