"""Moves groups of the target to their checkpoints, round by round (`group_sync.py` decides)."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from lockstep_checkpoint import metrics
from lockstep_checkpoint.checkpoint_store import CheckpointStore
from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.plan import beyond, within
from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_checkpoint.sibling_flow import SiblingFlows
from lockstep_checkpoint.target_groups import commit, read_groups
from lockstep_checkpoint.target_topics import MissingPartitions, find_missing
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.common.tracing import add_event, set_attributes
from lockstep_rules.groups.group_selection import GroupMembership
from lockstep_rules.groups.group_sync import (
    IN_USE,
    REFUSED,
    GroupSync,
    TargetGroupState,
    find_foremost,
    plan_group_sync,
    with_writes,
)
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.state_rows import MirroredTopic

SECOND_CHECK_S = 0.5
"""A command waits so long between the two comparisons that move a group."""


@dataclass(frozen=True, slots=True)
class _How:
    """What a round may do: see `TargetGroupSync.sync_now`. `at_once`: it need not wait for the interval."""

    at_once: bool = False
    rewind: bool = False
    failover: bool = False


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round compares: the topics of the target with their number of partitions, and each group's checkpoints.
    `ends` are those of the logs that commits depend on. They were read after these checkpoints were written."""

    partitions: Mapping[str, int]
    written: Mapping[str, Mapping[TopicPartition, Checkpoint]]
    ends: Mapping[TopicPartition, int]
    troubles: Mapping[TopicPartition, ClusterError]
    missing: MissingPartitions


class TargetGroupSync:
    """The groups of one flow on its target, and what the last round found of each."""

    def __init__(
        self, ctx: FlowContext, report: GroupReport, memory: CheckpointStore, opposite: ReverseFlow | None = None
    ) -> None:
        self._ctx = ctx
        self._settings = ctx.settings.checkpoint
        self._report = report
        self._memory = memory
        self._opposite = opposite
        self.siblings = SiblingFlows(ctx, self._settings.siblings)
        """To be run with the flow."""
        self._syncing = asyncio.Lock()
        self._last_states: dict[str, tuple[float, TargetGroupState]] = {}
        self._moved = ctx.metrics.series(metrics.SYNCED, str(ctx.flow))

    def reset(self) -> None:
        """Forget what earlier rounds found: somebody else may have acted since."""
        self._last_states.clear()

    async def sync(self) -> None:
        """A round at its time: of all groups that are ours."""
        async with self._syncing:
            await self._sync(self._ctx.owns, _How())

    async def sync_now(self, owned: Callable[[str], bool], *, rewind: bool, failover: bool = False) -> None:
        """A round of some groups, however soon after the last one. A second one follows at once if some of them need
        another comparison. `rewind`: a group that went back on the source goes back on the target too. `failover`: the
        source is not asked, so that the flow in the opposite direction may be unknown for good."""
        how = _How(at_once=True, rewind=rewind, failover=failover)
        async with self._syncing:
            if await self._sync(owned, how):
                await asyncio.sleep(SECOND_CHECK_S)
                await self._sync(owned, how)

    async def _sync(self, owned: Callable[[str], bool], how: _How) -> bool:
        """Compare the groups on the target, and move those that two comparisons found alone and unchanged. Whether
        another comparison would decide about more of them."""
        groups = [group for group in self._report.groups() if owned(group) and self._ctx.settings.groups.matches(group)]
        set_attributes(groups=len(groups))
        states, failed = await read_groups(self._ctx.target, groups)
        facts = await self._begin(states)
        for group, trouble in failed.items():
            self._last_states.pop(group, None)
            await self._report.held(group, REFUSED, trouble.to_reason())
        self._last_states = {
            group: state for group, state in self._last_states.items() if group in states or not owned(group)
        }
        work = (self._sync_one(group, state, facts, how) for group, state in states.items())
        return any(await asyncio.gather(*work))

    async def _begin(self, states: Mapping[str, TargetGroupState]) -> _Round:
        """Ask for the ends only where a group may be moved: in most rounds that is nowhere."""
        partitions = await self._ctx.target.topic_names()
        self.siblings.observe(partitions)
        written = {group: dict(self._memory.written.for_group(group)) for group in states}
        wanted: set[TopicPartition] = set()
        absent: list[tuple[str, TopicPartition]] = []
        for group, state in states.items():
            if state.membership is GroupMembership.ACTIVE:
                continue
            for where, one in written[group].items():
                if one.partition >= partitions.get(one.topic, 0):
                    absent.append((group, where))
                elif state.offsets.get(where) != one.downstream:
                    wanted.add(where)
        missing = await find_missing(self._ctx.target, self._still_read(absent))
        ends, troubles = await self._ctx.target.end_offsets_or_troubles(wanted) if wanted else ({}, {})
        return _Round(partitions, written, ends, troubles, missing)

    def _still_read(self, absent: Collection[tuple[str, TopicPartition]]) -> set[TopicPartition]:
        """Those that their groups read on the source. Checkpoints stay where a topic was deleted on purpose, and
        nothing is to be committed there."""
        if not absent:
            return set()
        mirrored = {row.target_topic for row in self._ctx.state.all(MirroredTopic) if row.is_selected}
        return {where for group, where in absent if self._report.reads(group, where, mirrored)}

    async def _sync_one(self, group: str, state: TargetGroupState, facts: _Round, how: _How) -> bool:
        """Whether another comparison is needed."""
        now = self._ctx.clock.monotonic()
        since, before = self._last_states.get(group, (now, None))
        every_s = self._settings.sync_group_offsets_every.total_seconds()
        if before is not None and now - since < every_s / 2 and not how.at_once:
            return False  # this round came early, for the sake of another group
        if self._memory.written.for_group(group) != facts.written[group]:
            return True  # its checkpoints, and what is known of rewinds, are newer than what the round has read
        sync = self._plan(group, before, state, facts, how)
        self._last_states[group] = (now, state)
        if sync.left_alone:
            if before is not None or state.membership is GroupMembership.ACTIVE:
                await self._report.held(group, IN_USE, sync.left_alone, sync.ahead)
            return state.membership is not GroupMembership.ACTIVE
        if sync.writes:
            self._ctx.must_act()
            kind, refused = await commit(self._ctx.target, group, sync.writes)
            if refused:
                del self._last_states[group]
                await self._report.held(group, kind, refused, sync.ahead)
                return False
            self._last_states[group] = (now, with_writes(state, sync.writes))
            self._moved.increase(len(sync.writes))
            add_event("GroupMoved", group=group, offsets=len(sync.writes))
        if sync.left_out:
            kind = REFUSED if facts.missing.denied & sync.left_out.keys() else ""
            cause = find_foremost(sync.left_out)
            await self._report.held(group, kind, cause, sync.ahead, left_out=sync.left_out)
        elif facts.written[group]:
            moved = {(write.topic, write.partition): int(write.downstream) for write in sync.writes}
            await self._report.synced(group, moved, sync.ahead)
        return False

    def _plan(
        self, group: str, before: TargetGroupState | None, state: TargetGroupState, facts: _Round, how: _How
    ) -> GroupSync:
        written, opposite, read_at = facts.written[group], self._opposite, self._report.read_at(group)
        reasons = self.siblings.contested(group, written.values())
        contested: dict[TopicPartition, tuple[Reason, int | None]] = {
            where: (reason, None) for where, reason in reasons.items()
        }
        sync = plan_group_sync(
            written.values(),
            before,
            state,
            facts.partitions,
            self._report.rewound(group),
            follow=self._settings.follow_rewinds or how.rewind,
            unread=() if opposite is None else opposite.unread(group, written.values(), read_at, failover=how.failover),
            misplaced=contested | dict(self._report.misplaced(group)),
        )
        # The log of a topic that was created anew may still be shorter than the checkpoint.
        writes, others = within(sync.writes, facts.ends)
        left_out = {
            (checkpoint.topic, checkpoint.partition): beyond(checkpoint, facts.ends, facts.troubles).reason
            for checkpoint in others
        }
        left_out |= sync.left_out
        left_out |= {where: reason for where, reason in facts.missing.reasons.items() if where in written}
        return replace(
            sync,
            writes=writes,
            left_out={where: reason for where, reason in left_out.items() if self._report.reads(group, where)},
        )
