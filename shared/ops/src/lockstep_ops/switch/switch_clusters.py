"""The requests of a switch to both clusters, and to the services of a flow."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from lockstep_config import FlowSettings
from lockstep_kafka.admin.replicas import count_replicas
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.clusters import source_client, target_client
from lockstep_ops.command_client import ask_all
from lockstep_ops.command_request import CommandReply, CommandRequest, command_request, exit_code
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import count_text, shorten
from lockstep_ops.services import DATA_PLANE
from lockstep_ops.switch.group_positions import GroupAtSource
from lockstep_ops.switch.switch_positions import NAMED
from lockstep_ops.takeover.migration import FlowState
from lockstep_state.commands.command_vocabulary import FLOW, SYNC_GROUPS, Scope
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Row

PROBED_WITHIN_S = 3.0
"""A cluster that does not answer within this many seconds counts as gone."""

CHECK_AGAIN_S = 0.25
"""The seconds between two looks of a step at what it waits for."""


class StepFailed(Exception):
    """A step did not come to its end. It can be done again. The message is the sentence of `reason`."""

    def __init__(self, reason: Reason | str) -> None:
        """Take the reason of the failure, or a sentence if nothing decides by it."""
        self.reason = reason if isinstance(reason, Reason) else ReasonCode.REPORTED.to_reason(text=reason)
        super().__init__(format_sentence(self.reason))


@dataclass(frozen=True, slots=True)
class SourceState:
    """The answer of a flow's source, or the reason why there is none."""

    error: ClusterError | None = None
    """The reason why the cluster does not answer. None: it does."""
    asked: int = 0
    """The number of partitions about which the cluster was asked."""
    silent: tuple[TopicPartition, ...] = ()
    """Partitions about which the cluster does not answer."""

    @property
    def answers(self) -> bool:
        """Return whether it answers about every partition."""
        return self.error is None and not self.silent

    def note(self, alias: str) -> str:
        """Return sentences about the partitions without an answer, or "" if it answers about all, or about none."""
        if not self.silent:
            return ""
        named = shorten([f"{topic}-{number}" for topic, number in self.silent], NAMED)
        count = f"{len(self.silent)} of {count_text(self.asked, 'partition')}"
        return (
            f"{alias} does not answer about {count} ({named}), so a switchover is not possible. What producers still "
            f"write to the others is not copied once the failover has begun"
        )


class NotFoundYet(StepFailed):
    """The source has a topic, or a partition, that the flow selects and has not found yet. Waiting can help."""


class SwitchClusters:
    """Both clusters of one flow, and its services.

    Each method asks the cluster when it is called, and nothing is remembered: a step compares two answers to one
    question, and never decides by what an earlier step was told. So there is no `ClusterSnapshot` here.
    """

    def __init__(
        self, settings: FlowSettings, answered_within_s: float, by: str | None = None, refused_s: float = inf
    ) -> None:
        """Take the flow, and how it is asked.

        Args:
            settings: The flow.
            answered_within_s: The seconds within which services have to answer.
            by: Who asks them (`command_request`).
            refused_s: As of `AdminRequests`. A step waits for a broker that restarts, and a plan does not.
        """
        self.settings = settings
        self.source = source_client(settings, refused_s=refused_s)
        self.target = target_client(settings, refused_s=refused_s)
        self._within_s = answered_within_s
        self._by = by

    # -- services ------------------------------------------------------------------------------------------------------

    async def command(self, verb: str, scope: Scope = FLOW, **arguments: object) -> None:
        """Ask the flow's services, and wait for their answers.

        Raises:
            StepFailed: Some refused or did not answer. The message has what they answered.
        """
        await self._ask([command_request(self.settings, verb, scope, arguments, by=self._by)])

    async def command_each(self, verb: str, scopes: Iterable[Scope]) -> None:
        """Ask about several scopes at the same time. Raises as `command`."""
        await self._ask([command_request(self.settings, verb, scope, by=self._by) for scope in scopes])

    async def sync_groups(self, *, source: bool, rewind: bool) -> None:
        """Have every group translated and moved now, each share of the work by the replica that has it.

        Raises:
            StepFailed: Some refused or did not answer.
        """
        requests = []
        for share in range(COMMANDS_PARTITIONS):
            arguments = {"share": share, "source": source, "rewind": rewind}
            requests.append(
                command_request(self.settings, SYNC_GROUPS, FLOW, arguments, commands_partition=share, by=self._by)
            )
        await self._ask(requests)

    async def _ask(self, requests: Iterable[CommandRequest]) -> None:
        replies = [CommandReply(request) for request in requests]
        await ask_all(self.settings, replies, self._within_s)
        if exit_code(replies) is not Exit.FINE:
            lines = [line for reply in replies if exit_code([reply]) is not Exit.FINE for line in reply.as_lines()]
            raise StepFailed("; ".join(dict.fromkeys(lines)))

    async def still_copies(self, rows: Mapping[str, Row]) -> Reason:
        """Return why the data plane, which is to stop, has not drained yet, or NO_REASON once it has."""
        from lockstep_ops.takeover.handback import not_drained  # loaded while the flow stops

        replicas = await count_replicas(self.target, self.settings, [DATA_PLANE])
        count = replicas.get(DATA_PLANE, 0)
        return not_drained(FlowState(flow=self.settings.flow, rows=rows, states=self.settings.states, replicas=count))

    # -- logs ----------------------------------------------------------------------------------------------------------

    async def source_error(self) -> ClusterError | None:
        """Return why the source does not answer, or None if it does."""
        try:
            await self.source.require_open()
            await self.source.probe(timedelta(seconds=PROBED_WITHIN_S))
        except ClusterError as exc:
            return exc
        return None

    async def source_state(self, topics: Iterable[MirroredTopic]) -> SourceState:
        """Return whether the source answers, and about which partitions of these topics it does not."""
        asked_partitions, within = partitions(topics), timedelta(seconds=PROBED_WITHIN_S)
        if (error := await self.source_error()) is not None:
            return SourceState(error)
        try:
            ends = await self.source.reachable_end_offsets(asked_partitions, within=within)
        except ClusterError as exc:
            return SourceState(exc)
        return SourceState(asked=len(asked_partitions), silent=tuple(tp for tp in asked_partitions if tp not in ends))

    async def source_ends(self, topics: Iterable[MirroredTopic]) -> dict[TopicPartition, int]:
        """Return where the source's logs end for this flow.

        With `read_committed` a log ends before the first open transaction.
        """
        topics = list(topics)
        await self._require_known_partitions(topics)
        committed = self.settings.data_plane.reads_committed
        source_partitions = partitions(topics)
        ends = await self.source.end_offsets(source_partitions, read_committed=committed)
        return _complete(ends, source_partitions, self.settings.flow.source)

    async def _require_known_partitions(self, topics: Iterable[MirroredTopic]) -> None:
        """Check that the flow has heard of all partitions of these topics on the source.

        Raises:
            NotFoundYet: The source has more.
        """
        counts = {topic.source_topic: topic.partitions for topic in topics}
        described = (await self.source.topics(counts)).require_done()
        for name, topic in described.items():
            if topic.partitions > counts[name]:
                raise NotFoundYet(
                    RefusalCode.PARTITIONS_NOT_FOUND.to_reason(
                        topic=name, partitions=topic.partitions, source=self.settings.flow.source, known=counts[name]
                    )
                )

    async def require_found(self, rows: Mapping[str, Row], names: Iterable[str]) -> None:
        """Check that the flow has a row of each topic of the source that it selects.

        Args:
            rows: The flow's rows.
            names: The only topics to check. Empty: all.

        Raises:
            NotFoundYet: A topic has no row yet.
        """
        settings, wanted = self.settings, set(names)
        mirrored = {row.source_topic for row in rows.values() if isinstance(row, MirroredTopic)}
        for name in sorted(await self.source.topic_names()):
            if name in mirrored or (wanted and name not in wanted) or settings.policy.is_heartbeats_topic(name):
                continue
            if settings.replicates(name):
                raise NotFoundYet(RefusalCode.TOPIC_NOT_FOUND.to_reason(flow=str(settings.flow), topic=name))

    async def source_starts(self, topics: Iterable[MirroredTopic]) -> dict[TopicPartition, int]:
        source_partitions = partitions(topics)
        starts = await self.source.begin_offsets(source_partitions)
        return _complete(starts, source_partitions, self.settings.flow.source)

    async def ends_at(self, topics: Iterable[MirroredTopic], moment_ms: int) -> dict[TopicPartition, int]:
        """Return the offset of the first record of that time or later in each source partition.

        It is the partition's end if there is no such record.
        """
        ends = await self.source_ends(topics)
        since = _complete(await self.source.offsets_since(ends, moment_ms), ends, self.settings.flow.source)
        return {tp: min(ends[tp], offset) if offset >= 0 else ends[tp] for tp, offset in since.items()}

    async def open_transactions(self, topics: Iterable[MirroredTopic]) -> list[TopicPartition]:
        """Return the partitions of the source with an open transaction that the flow waits for."""
        if not self.settings.data_plane.reads_committed:
            return []
        source_partitions = partitions(topics)
        stable, ends = await asyncio.gather(
            self.source.end_offsets(source_partitions, read_committed=True), self.source.end_offsets(source_partitions)
        )
        return [tp for tp in source_partitions if stable.get(tp, -1) < ends.get(tp, 0)]

    async def target_ends(self, topics: Iterable[MirroredTopic]) -> dict[TopicPartition, int]:
        """Return the ends of the target's logs, by the names of the target. Those that it has not are absent."""
        copies = [(topic.target_topic, number) for topic in topics for number in range(topic.partitions)]
        return await self.target.end_offsets(copies)

    # -- groups --------------------------------------------------------------------------------------------------------

    async def groups_at_source(
        self, groups: Iterable[str], topics: Iterable[MirroredTopic]
    ) -> dict[str, GroupAtSource]:
        """Return the offsets that each group has committed in these topics, and its members.

        Raises:
            ClusterError: The source does not answer, or refuses.
        """
        names, source_topics = sorted(groups), {topic.source_topic for topic in topics}
        described = (await self.source.describe_groups(names)).require_done()
        offsets = await asyncio.gather(*(self.source.group_offsets(name) for name in names))
        return {
            name: GroupAtSource(
                {tp: committed.offset for tp, committed in group_offsets.items() if tp[0] in source_topics},
                described[name].member_names if described[name].members else (),
            )
            for name, group_offsets in zip(names, offsets, strict=True)
        }

    async def members_at_target(self, groups: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return client ids and hosts of the groups that have members on the target.

        Raises:
            ClusterError: The target does not answer, or refuses.
        """
        described = (await self.target.describe_groups(groups)).require_done()
        return {name: group.member_names for name, group in described.items() if group.members}


def partitions(topics: Iterable[MirroredTopic]) -> list[TopicPartition]:
    """Return the source partitions of these topics."""
    return [(topic.source_topic, number) for topic in topics for number in range(topic.partitions)]


def known_groups(rows: Mapping[str, Row]) -> list[GroupStatus]:
    """Return the groups that the flow translates."""
    return [row for _, row in sorted(rows.items()) if isinstance(row, GroupStatus) and not row.is_gone]


def _complete(
    offsets: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition], alias: str
) -> dict[TopicPartition, int]:
    """Return the answers for all wanted partitions.

    Raises:
        StepFailed: A partition was not answered. What is not known is not taken for nothing.
    """
    missing = [tp for tp in wanted if tp not in offsets]
    if missing:
        topic, number = missing[0]
        partition, count = f"{topic}-{number}", len(missing)
        raise StepFailed(RefusalCode.ENDS_UNKNOWN.to_reason(cluster=alias, count=count, partition=partition))
    return dict(offsets)
