"""The rounds that move groups of the target to their checkpoints (`group_sync.py` decides)."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from lockstep_checkpoint import metrics
from lockstep_checkpoint.checkpoint_store import CheckpointStore
from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.plan import beyond_log_end, split_by_log_end
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
"""Seconds that a command waits between the two comparisons that move a group."""


@dataclass(frozen=True, slots=True)
class _RoundOptions:
    """The options of one round (`TargetGroupSync.sync_now`). With `at_once` a group need not wait for the interval."""

    at_once: bool = False
    rewind: bool = False
    failover: bool = False


@dataclass(frozen=True, slots=True)
class _RoundFacts:
    """The facts that one round compares.

    `partitions` has the number of partitions of each topic of the target, `written` the checkpoints of each group.
    `ends` has the log ends on which commits depend. They were read after the checkpoints were written.
    """

    partitions: Mapping[str, int]
    written: Mapping[str, Mapping[TopicPartition, Checkpoint]]
    ends: Mapping[TopicPartition, int]
    troubles: Mapping[TopicPartition, ClusterError]
    missing: MissingPartitions


class TargetGroupSync:
    """The groups of one flow on its target, with their state in the last round."""

    def __init__(
        self,
        ctx: FlowContext,
        report: GroupReport,
        checkpoints: CheckpointStore,
        reverse_flow: ReverseFlow | None = None,
    ) -> None:
        self._ctx = ctx
        self._settings = ctx.settings.checkpoint
        self._report = report
        self._checkpoints = checkpoints
        self._reverse_flow = reverse_flow
        self.siblings = SiblingFlows(ctx, self._settings.siblings)
        """The other flows to the target, to be run together with this flow."""
        self._syncing = asyncio.Lock()
        self._last_states: dict[str, tuple[float, TargetGroupState]] = {}
        self._moved = ctx.metrics.series(metrics.SYNCED, str(ctx.flow))

    def reset(self) -> None:
        """Forget earlier rounds: another process may have acted since."""
        self._last_states.clear()

    async def sync(self) -> None:
        """Run a regular round over all owned groups."""
        async with self._syncing:
            await self._sync(self._ctx.owns, _RoundOptions())

    async def sync_now(self, owned: Callable[[str], bool], *, rewind: bool, failover: bool = False) -> None:
        """Run a round over some groups at once, and a second one if groups need another comparison.

        Args:
            owned: Accepts the groups.
            rewind: Set groups back on the target that went back on the source.
            failover: The source is not asked, so the reverse flow may be unknown for good.
        """
        options = _RoundOptions(at_once=True, rewind=rewind, failover=failover)
        async with self._syncing:
            if await self._sync(owned, options):
                await asyncio.sleep(SECOND_CHECK_S)
                await self._sync(owned, options)

    async def _sync(self, owned: Callable[[str], bool], options: _RoundOptions) -> bool:
        """Compare the groups on the target, and move those that two comparisons found empty and unchanged.

        Returns whether another comparison could move more of them.
        """
        groups = [group for group in self._report.groups() if owned(group) and self._ctx.settings.groups.matches(group)]
        set_attributes(groups=len(groups))
        states, failed = await read_groups(self._ctx.target, groups)
        facts = await self._begin(states)
        for group, trouble in failed.items():
            self._last_states.pop(group, None)
            await self._report.record_held(group, REFUSED, trouble.to_reason())
        self._last_states = {
            group: state for group, state in self._last_states.items() if group in states or not owned(group)
        }
        work = (self._sync_one(group, state, facts, options) for group, state in states.items())
        return any(await asyncio.gather(*work))

    async def _begin(self, states: Mapping[str, TargetGroupState]) -> _RoundFacts:
        """Read what a round compares. Log ends are read only where a group may be moved, in most rounds nowhere."""
        partitions = await self._ctx.target.topic_names()
        self.siblings.observe(partitions)
        written = {group: dict(self._checkpoints.written.for_group(group)) for group in states}
        lagging: set[TopicPartition] = set()
        missing_by_group: list[tuple[str, TopicPartition]] = []
        for group, state in states.items():
            if state.membership is GroupMembership.ACTIVE:
                continue
            for tp, checkpoint in written[group].items():
                if checkpoint.partition >= partitions.get(checkpoint.topic, 0):
                    missing_by_group.append((group, tp))
                elif state.offsets.get(tp) != checkpoint.downstream:
                    lagging.add(tp)
        missing = await find_missing(self._ctx.target, self._find_still_read(missing_by_group))
        ends, troubles = await self._ctx.target.end_offsets_or_troubles(lagging) if lagging else ({}, {})
        return _RoundFacts(partitions, written, ends, troubles, missing)

    def _find_still_read(self, absent: Collection[tuple[str, TopicPartition]]) -> set[TopicPartition]:
        """Return the partitions that their groups read on the source.

        Checkpoints remain when a topic was deleted on purpose, and nothing is to be committed there.
        """
        if not absent:
            return set()
        mirrored = {row.target_topic for row in self._ctx.state.all(MirroredTopic) if row.is_selected}
        return {tp for group, tp in absent if self._report.reads(group, tp, mirrored)}

    async def _sync_one(self, group: str, state: TargetGroupState, facts: _RoundFacts, options: _RoundOptions) -> bool:
        """Compare and move one group. Returns whether another comparison is needed."""
        now = self._ctx.clock.monotonic()
        since, before = self._last_states.get(group, (now, None))
        every_s = self._settings.sync_group_offsets_every.total_seconds()
        if before is not None and now - since < every_s / 2 and not options.at_once:
            return False  # this round came early, for the sake of another group
        if self._checkpoints.written.for_group(group) != facts.written[group]:
            return True  # its checkpoints, and what is known of rewinds, are newer than what the round has read
        sync = self._plan(group, before, state, facts, options)
        self._last_states[group] = (now, state)
        if sync.left_alone:
            if before is not None or state.membership is GroupMembership.ACTIVE:
                await self._report.record_held(group, IN_USE, sync.left_alone, sync.ahead)
            return state.membership is not GroupMembership.ACTIVE
        if sync.writes:
            self._ctx.must_act()
            kind, refused = await commit(self._ctx.target, group, sync.writes)
            if refused:
                del self._last_states[group]
                await self._report.record_held(group, kind, refused, sync.ahead)
                return False
            self._last_states[group] = (now, with_writes(state, sync.writes))
            self._moved.increase(len(sync.writes))
            add_event("GroupMoved", group=group, offsets=len(sync.writes))
        if sync.left_out:
            kind = REFUSED if facts.missing.denied & sync.left_out.keys() else ""
            cause = find_foremost(sync.left_out)
            await self._report.record_held(group, kind, cause, sync.ahead, left_out=sync.left_out)
        elif facts.written[group]:
            moved = {write.tp: int(write.downstream) for write in sync.writes}
            await self._report.record_synced(group, moved, sync.ahead)
        return False

    def _plan(
        self,
        group: str,
        before: TargetGroupState | None,
        state: TargetGroupState,
        facts: _RoundFacts,
        options: _RoundOptions,
    ) -> GroupSync:
        written, reverse_flow, read_at = facts.written[group], self._reverse_flow, self._report.read_at(group)
        unread: Collection[TopicPartition] = ()
        if reverse_flow is not None:
            unread = reverse_flow.find_unread(group, written.values(), read_at, failover=options.failover)
        misplaced: dict[TopicPartition, tuple[Reason, int | None]] = {
            tp: (reason, None) for tp, reason in self.siblings.find_contested(group, written.values()).items()
        }
        sync = plan_group_sync(
            written.values(),
            before,
            state,
            facts.partitions,
            self._report.rewound(group),
            follow=self._settings.follow_rewinds or options.rewind,
            unread=unread,
            misplaced=misplaced | dict(self._report.misplaced(group)),
        )
        # The log of a topic that was re-created may still be shorter than the checkpoint.
        writes, beyond_end = split_by_log_end(sync.writes, facts.ends)
        left_out = {
            checkpoint.tp: beyond_log_end(checkpoint, facts.ends, facts.troubles).reason for checkpoint in beyond_end
        }
        left_out |= sync.left_out
        left_out |= {tp: reason for tp, reason in facts.missing.reasons.items() if tp in written}
        return replace(
            sync,
            writes=writes,
            left_out={tp: reason for tp, reason in left_out.items() if self._report.reads(group, tp)},
        )
