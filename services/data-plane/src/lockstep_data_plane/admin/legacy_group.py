"""The consumer group of a legacy flow on the source, as the driver keeps it: waited for, obeyed, committed for.

What we commit has a mark in its metadata. So a commit of another client, of MirrorMaker 1 or of a reset is always
recognized (`docs/decisions/0031-positions-of-a-legacy-flow.md`)."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError

from lockstep_config.flow.model import LegacySettings
from lockstep_data_plane.admin.offset_admin import ALTERED, with_position
from lockstep_kafka.common.admin_types import GroupDescription, GroupOffset, Outcome
from lockstep_kafka.common.errors import ClusterError, RequestRefused
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.codecs.connect_offsets import RefusedOffsets
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import LegacyGroup, PartitionProgress, progress_by_partition

Positions = Mapping[TopicPartition, GroupOffset]
Rows = Mapping[TopicPartition, PartitionProgress]


def commit_metadata(flow: Flow, producer_id: int) -> str:
    """The metadata of our commits. The producer id is the flow's own as long as its state lasts."""
    return f"lockstep {flow} {producer_id}"


@dataclass(slots=True)
class GroupStart:
    """Where partitions begin that are not copied now. `rows` are to be written first, then `marks` committed. A process
    that is killed in between finds the same again."""

    rows: list[PartitionProgress] = field(default_factory=list)
    marks: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    moved: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """By partition: the next offset by our progress, and the one by the group."""


def plan_start(partitions: Iterable[TopicPartition], rows: Rows, there: Positions, mark: str) -> GroupStart:
    """`there`: what the group has committed. A commit of somebody else's counts, of ours our own progress does, which
    is exact. Without a commit the progress counts too, and without both the file does, so nothing is said here.

    Raises RefusedOffsets where a partition's producer has no epoch left."""
    found = GroupStart()
    for tp in partitions:
        at, row = there.get(tp), rows.get(tp)
        if at is None:
            continue
        if at.metadata != mark:
            found.marks[tp] = GroupOffset(at.offset, mark)
        if row is None:
            found.rows.append(PartitionProgress(topic=tp[0], partition=tp[1], upstream=at.offset - 1, begins=ALTERED))
            continue
        moves = at.metadata != mark and (row.begins or row.upstream + 1 != at.offset)
        if moves and (new := with_position(row, at.offset - 1)) != row:
            found.rows.append(new)
            found.moved[tp] = (row.upstream + 1, at.offset)
    return found


def due_commits(
    rows: Iterable[PartitionProgress], there: Positions, mark: str
) -> tuple[dict[TopicPartition, GroupOffset], dict[TopicPartition, tuple[int, int]]]:
    """What is to be committed, and positions that another client committed while we copy: its own, and ours, by which
    they are replaced. `rows`: of the partitions that we copy. What the target has acknowledged counts, nothing else;
    what is there already is left out, and what the broker has forgotten comes again."""
    writes: dict[TopicPartition, GroupOffset] = {}
    foreign: dict[TopicPartition, tuple[int, int]] = {}
    for row in rows:
        if row.begins:
            continue  # its position has not been determined yet
        tp = (row.topic, row.partition)
        at, wanted = there.get(tp), GroupOffset(row.upstream + 1, mark)
        if at == wanted:
            continue
        writes[tp] = wanted
        if at is not None and at.metadata != mark and at.offset != wanted.offset:
            foreign[tp] = (at.offset, wanted.offset)
    return writes, foreign


CHECK_INTERVAL_S = 3.0
"""How often it is looked whether anybody is in the group."""

EMPTY_CHECKS = 2
"""So many checks in a row must find a group empty that had members: a member that restarts is away for a moment."""

LAST_WORD_S = 2.0
"""How long the last commit may take: the process that ends us waits for it."""

AT_ONCE = 1000
"""Positions in one request: a group's are one batch in its coordinator's log."""

NAMED = 10
"""Members and partitions that are named at most; the rest is counted."""

JOINED = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS})
"""How a broker refuses a commit for a group with members."""

MEMBERS, TROUBLE = "group members", "group positions"


class LegacyGroupFollower:
    """One instance lives as long as the driver; `until_free` begins each time of copying."""

    def __init__(self, ctx: FlowContext, legacy: LegacySettings) -> None:
        self._ctx = ctx
        self._legacy = legacy
        self._mark = ""
        self._placed: set[TopicPartition] = set()
        self._followed: frozenset[TopicPartition] = frozenset()
        """Those that are mirrored now; a topic may be gone from the source for which a place was found."""
        self._occupied = True
        self._met = False
        """Whether the group had members at the last check, or before it."""
        self._checked_at = self._committed_at = float("-inf")
        self._row = LegacyGroup(group=legacy.group, phase="waiting")

    def status(self) -> Mapping[str, Any]:
        """For /status."""
        row = self._row
        return {"group": row.group, "phase": row.phase, "members": list(row.members), "committed_ms": row.committed_ms}

    # -- who is in the group -------------------------------------------------------------------------------------------

    async def until_free(self, producer_id: int) -> None:
        """Returns when the group has no members; nothing is copied before."""
        self._mark = commit_metadata(self._ctx.flow, producer_id)
        self._placed.clear()
        empty_checks = 0
        while True:
            described = await self._describe()
            if described is None:
                empty_checks = 0
            elif described.members == 0:
                empty_checks += 1
                if empty_checks >= EMPTY_CHECKS or not self._met:
                    break
            else:
                empty_checks, self._met = 0, True
                await self._wait_for(described)
            await asyncio.sleep(CHECK_INTERVAL_S)
        if self._met:
            await self._ctx.event("GroupFreed", f"group {self._legacy.group}", f"nobody is in {self._named} any more")
        self._occupied = self._met = False
        now = self._ctx.clock.monotonic()
        self._checked_at = self._committed_at = now
        await self._log_position(replace(self._row, phase="copying", cause=NO_REASON, members=()))

    async def occupied(self) -> bool:
        """Whether somebody has joined the group since, by a look every few seconds. A source that does not answer says
        nothing about that."""
        now = self._ctx.clock.monotonic()
        if self._occupied or now - self._checked_at < CHECK_INTERVAL_S:
            return self._occupied
        self._checked_at = now
        described = await self._describe()
        self._occupied = self._met = described is not None and described.members > 0
        return self._occupied

    async def _describe(self) -> GroupDescription | None:
        """The group as its coordinator sees it; None while that does not answer."""
        troubles = self._ctx.periodic.troubles
        try:
            described = (await self._ctx.source.describe_groups([self._legacy.group])).require_done()
        except ClusterError as trouble:
            troubles.began(MEMBERS, trouble)
            return None
        troubles.over(MEMBERS)
        return described[self._legacy.group]

    async def _wait_for(self, described: GroupDescription) -> None:
        members = described.member_names[:NAMED]
        more = described.members - len(members)
        names = ", ".join(members) + (f" and {more} more" if more else "")
        cause = ReasonCode.GROUP_OCCUPIED.to_reason(group=self._named, count=described.members, members=names)
        said = self._row.phase == "waiting" and self._row.members == members
        await self._log_position(replace(self._row, phase="waiting", cause=cause, members=members))
        if not said:
            subject = f"group {self._legacy.group}"
            await self._ctx.event("GroupOccupied", subject, self._row.reason, members=list(members))

    @property
    def _named(self) -> str:
        return f"group {self._legacy.group} on {self._ctx.flow.source}"

    async def _log_position(self, row: LegacyGroup) -> None:
        self._row = row
        await self._ctx.state.write_if_changed(row)

    # -- where partitions begin ----------------------------------------------------------------------------------------

    async def place(self, partitions: Collection[TopicPartition]) -> bool:
        """Let partitions that no instance copies yet begin at the group's position; False when a member has joined it.
        Raises ClusterError and LeadershipLost. After these, call it again before anything is copied."""
        ctx = self._ctx
        self._followed = frozenset(partitions)
        new = [tp for tp in partitions if tp not in self._placed]
        if not new:
            return True
        there = await ctx.source.group_offsets(self._legacy.group)
        try:
            found = plan_start(new, self._progress(), there, self._mark)
        except RefusedOffsets as exc:
            raise ClusterError(ctx.flow.target, str(exc)) from exc
        ctx.must_act()
        await ctx.state.write_all(found.rows)
        for tp, (ours, theirs) in sorted(found.moved.items())[:NAMED]:
            name = f"{tp[0]}-{tp[1]}"
            text = f"{name}: begins at {theirs}, where {self._named} was put meanwhile; our copy had got to {ours}"
            await ctx.event("GroupPositionObeyed", name, text, begins=theirs, copied=ours)
        if len(found.moved) > NAMED:
            text = f"so do {len(found.moved) - NAMED} partitions more"
            await ctx.event("GroupPositionObeyed", f"group {self._legacy.group}", text)
        begun = len(found.rows) - len(found.moved)
        if begun:
            text = f"{begun} partition(s) begin at the committed offsets of {self._named}"
            await ctx.event("GroupPositionsTaken", f"group {self._legacy.group}", text, partitions=begun)
        if not await self._commit(found.marks):
            return False
        self._placed.update(new)
        return True

    def _progress(self) -> dict[TopicPartition, PartitionProgress]:
        return progress_by_partition(self._ctx.state.all(PartitionProgress))

    # -- committing ----------------------------------------------------------------------------------------------------

    async def commit_if_due(self) -> None:
        """Commit what the target has acknowledged, once in an interval. A source that is away is tried again."""
        ctx, now = self._ctx, self._ctx.clock.monotonic()
        if now - self._committed_at < self._legacy.commit_every / timedelta(seconds=1):
            return
        self._committed_at = now
        try:
            await self._commit_progress()
        except ClusterError as trouble:
            ctx.periodic.troubles.began(TROUBLE, trouble)
        else:
            ctx.periodic.troubles.over(TROUBLE)

    async def last_commit(self) -> None:
        """Once the slots have drained: the place from which a MirrorMaker 1, or we, would continue. Failed commits are
        logged. After one, another client reads what was copied since the commit before again; we do not."""
        ctx = self._ctx
        if not ctx.is_acting or not self._placed or self._occupied:
            return
        try:
            async with asyncio.timeout(LAST_WORD_S):
                # A row of ours is behind all that the slots wrote: once it is read, so are theirs.
                await ctx.state.write(self._row)
                await self._commit_progress()
                self._log_unknown_positions()
        except (ClusterError, TimeoutError) as exc:
            ctx.log.warn("last positions not committed", f"{self._named}: {exc or 'no answer in time'}")

    def _log_unknown_positions(self) -> None:
        """A position that is behind the target's log is committed all the same: the one before is further behind."""
        rows = self._progress()
        unknown = [
            f"{topic}-{number}"
            for (topic, number), row in sorted(rows.items())
            if (topic, number) in self._placed & self._followed and not row.has_end
        ]
        if unknown:
            text = "the end of their copies on the target is unknown; the next start may copy some records again"
            self._ctx.log.warn("last positions may be behind", f"{', '.join(unknown[:NAMED])}: {text}")

    async def _commit_progress(self) -> None:
        ctx = self._ctx
        there = await ctx.source.group_offsets(self._legacy.group)
        rows = [row for tp, row in self._progress().items() if tp in self._placed and tp in self._followed]
        writes, foreign = due_commits(rows, there, self._mark)
        for tp, (theirs, ours) in sorted(foreign.items())[:NAMED]:
            name = f"{tp[0]}-{tp[1]}"
            text = (
                f"{name}: another client committed offset {theirs} for {self._named} during the copy; Lockstep "
                f"commits {ours} again. To begin elsewhere stop Lockstep, reset the group, and start Lockstep again"
            )
            await ctx.event("GroupPositionOverwritten", name, text, theirs=theirs, ours=ours)
        if await self._commit(writes):
            at_ms = ctx.clock.wall_ms() if writes else self._row.committed_ms
            await self._log_position(replace(self._row, partitions=len(rows), committed_ms=at_ms))

    async def _commit(self, positions: Mapping[TopicPartition, GroupOffset]) -> bool:
        """False: somebody is in the group. Raises ClusterError, after all that can be committed was."""
        ctx = self._ctx
        failed: ClusterError | None = None
        every = sorted(positions.items())
        for at in range(0, len(every), AT_ONCE):
            ctx.must_act()
            outcome: Outcome[GroupOffset]
            try:
                outcome = await ctx.source.alter_group_offsets(self._legacy.group, dict(every[at : at + AT_ONCE]))
            except RequestRefused as refused:
                outcome = Outcome(failed={self._legacy.group: refused})
            for trouble in outcome.troubles().values():
                if isinstance(trouble, RequestRefused) and trouble.code in JOINED:
                    self._occupied = self._met = True
                    return False
                failed = trouble
        if failed is not None:
            raise failed
        return True
