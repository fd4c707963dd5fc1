"""The rounds of the checkpoint service in one flow.

Each flow runs three tasks. Two replay and follow a topic: the checkpoints topic and the offset-syncs topic. The third
runs rounds over the groups. Replicas divide the groups among themselves (`FlowContext.owns`). Each of them follows both
topics whole.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from lockstep_checkpoint import metrics
from lockstep_checkpoint.checkpoint_latency import CheckpointLatencies
from lockstep_checkpoint.checkpoint_store import CheckpointStore
from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_checkpoint.log_bounds import read_begins
from lockstep_checkpoint.offset_sync_follower import OffsetSyncFollower
from lockstep_checkpoint.plan import beyond_log_end, plan_checkpoints, split_by_log_end
from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_checkpoint.source_groups import SourceGroupOffsets, SourceGroups
from lockstep_checkpoint.source_reader import SourceReader
from lockstep_checkpoint.target_group_sync import TargetGroupSync
from lockstep_config.flow import client_settings
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_config.keys.python_classes import ClassFailed
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.common.tracing import set_attributes
from lockstep_kafka.groups.group_protocols import list_group_protocols
from lockstep_kafka.topics.control_topics import checkpoints_topic
from lockstep_rules.groups.group_selection import Committed, reverse_source_topic
from lockstep_rules.offsets.offset_translator import OffsetTranslator
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_runtime.flow.connect_offsets import ConnectOffsets
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.codecs.mm2_codec import Checkpoint, encode_checkpoint
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import SYNC_GROUPS, VERBS, Connector, Scope
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    GroupStatus,
    MirroredTopic,
    OffsetRuns,
    PartitionProgress,
    Row,
    SourceGroupsStatus,
)

REQUESTS_PER_TASK = 4
"""Concurrent requests about groups on each cluster, for each task of `tasks.max`. Each cluster has a limit of its own,
so a cluster that does not answer holds up none on the other."""

PROTOCOLS_S = 10.0
"""Seconds that brokers have to list all their groups."""

EMISSION = "checkpoint emission"
GROUP_SYNC = "group sync"

SYNC_ARGUMENTS: Mapping[str, type] = {"share": int, "source": bool, "rewind": bool}
"""The arguments of the command `sync-groups`, with their types."""


class CheckpointFlow:
    """The checkpoints of one flow, and the offsets of its groups on the target. See `FlowService`."""

    wants: ClassVar[frozenset[type[Row]]] = frozenset(
        {GroupStatus, MirroredTopic, PartitionProgress, OffsetRuns, SourceGroupsStatus}
    )

    def __init__(self, ctx: FlowContext) -> None:
        settings = ctx.settings
        self._ctx = ctx
        self._settings = settings.checkpoint
        if (tasks := self._settings.tasks_max) is not None:
            for cluster in (ctx.source, ctx.target):
                cluster.bound_groups(REQUESTS_PER_TASK * tasks)
        reverse_topic = self._settings.opposite
        self._reverse_flow = None if reverse_topic is None else ReverseFlow(ctx, reverse_topic)
        self._rule = checkpoint_rule(settings)
        refresh_every = self._settings.refresh_groups_every if self._settings.refresh_groups else None
        self._groups = SourceGroups(ctx.source, self._protocols, settings.groups, self._rule, refresh_every, ctx.state)
        self._checkpoints = CheckpointStore(ctx, checkpoints_topic(settings))
        self._offsets = ConnectOffsets(ctx, Connector.CHECKPOINT)
        self._syncs = OffsetSyncFollower(ctx, lambda: self._checkpoints.is_denied)
        self._report = GroupReport(ctx, lambda group: self._checkpoints.written.for_group(group))
        followed = [follower.verify for follower in (self._syncs, self._reverse_flow) if follower is not None]
        self._runs = RunTranslator()
        self._reader = SourceReader(ctx, self._groups, self._report, followed, self._rule, self._runs)
        self._group_sync = TargetGroupSync(ctx, self._report, self._checkpoints, self._reverse_flow)
        self._not_replicated: frozenset[str] | None = None
        ctx.state.listen(self._runs.apply)
        self._reading, self._writing = asyncio.Lock(), asyncio.Lock()
        """A command may ask for a round while one runs, so readings and writes are serialized apart. The round of a
        failover asks nothing of the source, and does not wait for a reading: the source may never answer."""
        self._planned: dict[str, tuple[object, TranslationState]] = {}
        self._committed: dict[str, tuple[Committed, ...]] = {}
        """The offsets that each group had committed on the source when that answered last."""
        self._emitted = ctx.metrics.series(metrics.EMITTED, str(ctx.flow))
        self._latencies = CheckpointLatencies(ctx.flow)
        ctx.metrics.ask(self._samples)

    def _require_share(self, share: int) -> None:
        """Raise ValueError if another replica owns the groups of this share."""
        if not self._ctx.is_acting or share not in self._ctx.leadership.leading():
            raise ValueError(f"another replica has the groups of commands partition {share} now: ask again")

    def _require_running(self) -> None:
        """Raise ValueError if the connector is not to run."""
        if not self._ctx.should_run:
            raise ValueError(
                f"the {self._ctx.connector.value} is {self._ctx.desired_state.describe(self._ctx.connector)}"
            )

    async def run(self) -> None:
        self._runs.load(self._ctx.state.rows.values())
        self._planned.clear()
        self._committed.clear()
        self._reader.reset()
        self._group_sync.reset()
        self._report.reset()
        self._latencies.keep_only(())
        followers = (self._reverse_flow, self._group_sync.siblings)
        following = [follower.run() for follower in followers if follower is not None]
        # Offset syncs are read only when it is known whether checkpoints can be.
        await _run_together(
            self._checkpoints.run(), self._syncs.run(self._checkpoints.wait_loaded), self._rounds(), *following
        )

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        if command.verb == SYNC_GROUPS:
            for name, value in command.arguments.items():
                if type(value) is not SYNC_ARGUMENTS.get(name):
                    raise ValueError(f"{SYNC_GROUPS} takes share, a number, and source and rewind, true or false")
            return await self._sync_now(**command.arguments)
        return await self._offsets.carry_out(command)

    async def _sync_now(self, share: int = 0, source: bool = True, rewind: bool = False) -> Answer:
        """Move the groups of one share to their checkpoints on the target.

        Args:
            share: The commands partition whose groups are meant.
            source: Read the groups' offsets on the source first.
            rewind: Also set groups back on the target that went back on the source.

        Raises:
            ValueError: This replica cannot do it now. The text is a sentence for the operator.
            ClusterError: A cluster did not answer, or refused.
        """
        self._require_running()
        if not self._settings.sync_group_offsets:
            raise ValueError("sync.group.offsets.enabled is false, so groups on the target are not moved")

        def owned(group: str) -> bool:
            return self._ctx.owns(group) and self._ctx.share_partition(group) == share

        self._require_share(share)
        if source:
            await self._emit({share}, owned)
            self._require_running()  # the source may have answered late, when the flow was stopped since
        else:
            await self._emit_committed(owned)
        await self._group_sync.sync_now(owned, rewind=rewind, failover=not source)
        self._require_share(share)
        return Answer(VERBS[SYNC_GROUPS].answer, {"groups": sum(map(owned, self._report.groups()))})

    def status(self) -> Mapping[str, Any]:
        store, checkpoints = self._syncs.fold, self._checkpoints
        return {
            "groups": dict(self._report.phases()),
            "places": dict(self._report.count_partitions()),
            "group_offsets_synced": self._settings.sync_group_offsets,
            "left_alone": dict(self._report.left_alone()),
            "held": dict(self._report.count_held()),
            "not_replicated": None if self._not_replicated is None else sorted(self._not_replicated),
            "offset_syncs": {
                "read": store is not None,
                "trouble": self._syncs.trouble,
                "position": -1 if store is None else store.position,
                "partitions": 0 if store is None else len(store.histories),
                "readings": self._syncs.readings,
                "malformed": self._syncs.malformed,
            },
            "opposite": None if self._reverse_flow is None else self._reverse_flow.status(),
            "checkpoints": {"read": checkpoints.fold is not None, "malformed": checkpoints.written.malformed},
        }

    def _samples(self) -> Iterator[Sample]:
        ctx, flow = self._ctx, str(self._ctx.flow)
        if not ctx.is_acting:
            return
        for phase, count in self._report.phases().items():
            yield Sample(metrics.GROUPS, (flow, phase), count)
        for accuracy, count in self._report.count_partitions().items():
            yield Sample(metrics.PLACES, (flow, accuracy), count)
        store = self._syncs.fold
        yield Sample(metrics.HISTORIES, (flow,), 0 if store is None else len(store.histories))
        yield Sample(metrics.SYNCED_GROUPS, (flow,), self._report.synced_groups())
        yield Sample(metrics.LEFT_ALONE, (flow,), len(self._report.left_alone()))
        for reason, count in self._report.count_held().items():
            yield Sample(metrics.HELD, (flow, reason), count)
        yield from self._latencies.samples(ctx.clock.wall_ms())

    async def _rounds(self) -> None:
        await self._checkpoints.wait_loaded()
        works = [self._emissions(), self._reader.watch()]
        if self._settings.sync_group_offsets:
            interval = self._settings.sync_group_offsets_every
            works.append(self._ctx.periodic.every(GROUP_SYNC, interval, self._group_sync.sync))
        await _run_together(*works)

    async def _emissions(self) -> None:
        await self._syncs.wait_judged()  # else the first look would find nothing translatable
        if self._reverse_flow is not None:
            await self._reverse_flow.wait_judged()
        await self._ctx.periodic.every(EMISSION, self._settings.emit_every, self._emit_all)

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    async def _emit_all(self) -> None:
        """Run a round over all owned groups, and record an error of the source in the state topic."""
        shares = self._ctx.leadership.leading()
        try:
            await self._emit(shares)
        except ClusterUnreachable:
            raise
        except (ClusterError, ClassFailed) as trouble:
            await self._report.record_failure(shares, trouble.to_reason())
            raise

    async def _emit(self, shares: Collection[int], owned: Callable[[str], bool] | None = None) -> None:
        """Read the owned groups on the source, write their due checkpoints, and record when the groups were read.

        Args:
            shares: The commands partitions of the groups.
            owned: Accepts exactly the groups of these shares. None: all groups that this replica owns.
        """
        async with self._reading:
            if owned is not None:  # a command wants to know of each group now
                self._groups.forget_uninteresting()
            began = await self._emit_owned(owned or self._ctx.owns)
            await self._report.record_reading(shares, began.wall_ms, self._groups.count)

    async def _emit_owned(self, owned: Callable[[str], bool]) -> ReadingTime:
        await self._checkpoints.verify()
        await self._checkpoints.wait_loaded()
        self._ctx.must_act()
        began, group_offsets = await self._reader.read(owned)
        async with self._writing:
            unowned = {group: committed for group, committed in self._committed.items() if not owned(group)}
            self._committed = unowned | dict(group_offsets.committed)
            states, refused = await self._write(group_offsets, owned)
            failed = {**{group: trouble.to_reason() for group, trouble in group_offsets.failed.items()}, **refused}
            set_attributes(groups=len(group_offsets.committed), groups_failing=len(failed))
            new_groups = await self._report.on_source_read(states, failed, group_offsets.requested.__contains__, began)
        if new_groups:
            self._ctx.periodic.trigger(GROUP_SYNC)  # its first look need not wait for the interval
        await self._name_not_replicated(group_offsets.not_replicated)
        return began

    async def _emit_committed(self, owned: Callable[[str], bool]) -> None:
        """Write the checkpoints that are due by the offsets read last, without asking the source.

        More may have been copied since. A group whose offsets this replica has not read yet stays as it is.
        """
        async with self._writing:
            await self._checkpoints.wait_loaded()
            self._ctx.must_act()
            committed_offsets = {group: offsets for group, offsets in self._committed.items() if owned(group)}
            states, refused = await self._write(SourceGroupOffsets(committed_offsets), committed_offsets.__contains__)
            await self._report.on_source_read(states, refused, committed_offsets.__contains__, None)

    async def _protocols(self) -> Mapping[str, str]:
        settings = self._ctx.settings
        properties = settings.clients.source_admin
        name = client_settings.client_id(settings, "group-protocols-source-admin", properties)
        return await list_group_protocols(settings.source.alias, properties, name, PROTOCOLS_S)

    async def _name_not_replicated(self, groups: frozenset[str] | None) -> None:
        """Append one event for each owned group whose protocol has no offsets to translate."""
        if groups is None:
            return
        new = [group for group in sorted(groups - (self._not_replicated or frozenset())) if self._ctx.owns(group)]
        text = "a share group, or one of Kafka Streams' own protocol, has no offsets to translate"
        await asyncio.gather(*(self._ctx.event("GroupNotReplicated", group, f"{group}: {text}") for group in new))
        self._not_replicated = groups

    async def _write(
        self, group_offsets: SourceGroupOffsets, owned: Callable[[str], bool]
    ) -> tuple[dict[str, TranslationState], dict[str, Reason]]:
        """Append the due checkpoints of these groups.

        A group is planned again only if its offsets, its checkpoints or what translates them have changed. Returns the
        translated offsets of each group, and why the checkpoints of other groups do not fit MM2's format.
        """
        planned_at = self._ctx.clock.wall_ms()
        store = self._syncs.fold
        reverse = None if self._reverse_flow is None else self._reverse_flow.translation()
        begins = await read_begins(self._ctx.target, group_offsets.committed, self._rule, self._runs)
        origin = partial(reverse_source_topic, self._rule)
        translator = OffsetTranslator(self._runs, store, self._syncs.trouble, reverse, origin, begins)
        syncs = self._syncs.trouble if store is None else store.position
        translation = (self._checkpoints.readings, self._syncs.readings, syncs)
        due: list[Checkpoint] = []
        refused: dict[str, Reason] = {}
        planned: dict[str, tuple[object, TranslationState]] = {}
        for group, committed in group_offsets.committed.items():
            log_begins = tuple(begins.get(position.tp) for position in committed)
            inputs = (committed, log_begins, translation, *self._changes(position.topic for position in committed))
            if group in self._planned and self._planned[group][0] == inputs:
                planned[group] = self._planned[group]
                continue
            written = self._checkpoints.written.for_group(group)
            plan = plan_checkpoints(group, committed, written, self._rule, translator.translate)
            try:
                list(map(encode_checkpoint, plan.due))  # each has to fit into MM2's format
            except ValueError as exc:
                refused[group] = ReasonCode.CHECKPOINT_TOO_LONG.to_reason(text=str(exc))
                continue
            due.extend(plan.due)
            planned[group] = (inputs, TranslationState(plan.translated_offsets))
        states = {group: state for group, (_, state) in planned.items()}
        for group, kept_back in (await self._append(due, planned_at)).items():
            del planned[group]  # the next round compares again, although nothing else changes
            states[group] = states[group].keep_back(kept_back)
        self._planned = {group: plan for group, plan in self._planned.items() if not owned(group)} | planned
        self._latencies.keep_only(self._planned.keys() | group_offsets.committed.keys())
        return states, refused

    def _changes(self, topics: Iterable[str]) -> tuple[object, ...]:
        """Return a value that changes whenever offset runs of these source topics change."""
        names = set(topics)
        changes = self._runs.changes(names)
        if self._reverse_flow is None:
            return (changes,)
        reverse_topics = (reverse_source_topic(self._rule, name) for name in names)
        return changes, self._reverse_flow.changes(filter(None, reverse_topics))

    async def _append(
        self, due: list[Checkpoint], planned_at: int
    ) -> dict[str, dict[TopicPartition, TranslatedOffset]]:
        """Append the due checkpoints that are within the target's logs now. Returns the other ones, by group."""
        if not due:
            return {}
        ends, troubles = await self._ctx.target.end_offsets_or_troubles({checkpoint.tp for checkpoint in due})
        kept, beyond_end = split_by_log_end(due, ends)
        if kept:
            self._ctx.must_act()
            await self._checkpoints.append(kept, [encode_checkpoint(checkpoint) for checkpoint in kept])
            now = self._ctx.clock.wall_ms()
            self._latencies.acknowledged(kept, now - planned_at, now)
            self._emitted.increase(len(kept))
            set_attributes(checkpoints=len(kept))
            self._ctx.log.debug("checkpoints emitted", f"{len(kept)} checkpoints")
        kept_back: dict[str, dict[TopicPartition, TranslatedOffset]] = {}
        for checkpoint in beyond_end:
            states = kept_back.setdefault(checkpoint.group, {})
            states[checkpoint.tp] = beyond_log_end(checkpoint, ends, troubles)
        return kept_back


async def _run_together(*works: Awaitable[None]) -> None:
    """Run all until one raises, then cancel the others. The first error passes through unchanged."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancelled(tasks)
