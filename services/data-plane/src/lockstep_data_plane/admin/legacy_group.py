"""The consumer group of a legacy flow on the source.

The driver waits until the group is empty, begins at its offsets, and commits for it.

What Lockstep commits has a mark in its metadata. So a commit of another client, of MirrorMaker 1 or of a reset is
always recognized (`docs/decisions/0031-positions-of-a-legacy-flow.md`).
"""

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
    """Return the metadata of Lockstep's commits. The producer id is the flow's own as long as its state lasts."""
    return f"lockstep {flow} {producer_id}"


@dataclass(slots=True)
class GroupStart:
    """The starts of partitions that are not copied now.

    `rows` are to be written first, then `marks` committed. A process that is killed in between finds the same again.
    """

    rows: list[PartitionProgress] = field(default_factory=list)
    marks: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    moved: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """By partition, the next offset by the copy's progress and the one that the group has committed."""


def plan_start(partitions: Iterable[TopicPartition], rows: Rows, committed: Positions, mark: str) -> GroupStart:
    """Return where partitions begin, by the group's offsets and the copy's own progress.

    The commit of another client counts. Beside a commit of Lockstep the progress counts, because it is exact. Without a
    commit the progress counts, or else the file, for which nothing is returned.

    Args:
        partitions: The partitions to start.
        rows: The progress of those that were copied before.
        committed: The offsets that the group has committed.
        mark: The metadata of Lockstep's commits.

    Raises:
        RefusedOffsets: The producer id of a partition has no epoch left.
    """
    start = GroupStart()
    for tp in partitions:
        position, row = committed.get(tp), rows.get(tp)
        if position is None:
            continue
        if position.metadata != mark:
            start.marks[tp] = GroupOffset(position.offset, mark)
        if row is None:
            start.rows.append(
                PartitionProgress(topic=tp[0], partition=tp[1], upstream=position.offset - 1, begins=ALTERED)
            )
            continue
        moves = position.metadata != mark and (row.begins or row.upstream + 1 != position.offset)
        if moves and (new := with_position(row, position.offset - 1)) != row:
            start.rows.append(new)
            start.moved[tp] = (row.upstream + 1, position.offset)
    return start


def due_commits(
    rows: Iterable[PartitionProgress], committed: Positions, mark: str
) -> tuple[dict[TopicPartition, GroupOffset], dict[TopicPartition, tuple[int, int]]]:
    """Return the offsets to commit, and those of another client that they replace: its offset and the copy's.

    Only what the target has acknowledged is committed. An offset that the group has already is left out, and one that
    the broker has forgotten comes again. `rows` are those of the partitions that are copied.
    """
    writes: dict[TopicPartition, GroupOffset] = {}
    foreign: dict[TopicPartition, tuple[int, int]] = {}
    for row in rows:
        if row.begins:
            continue  # its position has not been determined yet
        tp = (row.topic, row.partition)
        position, desired = committed.get(tp), GroupOffset(row.upstream + 1, mark)
        if position == desired:
            continue
        writes[tp] = desired
        if position is not None and position.metadata != mark and position.offset != desired.offset:
            foreign[tp] = (position.offset, desired.offset)
    return writes, foreign


CHECK_INTERVAL_S = 3.0
"""Seconds between two checks whether the group has members."""

EMPTY_CHECKS = 2
"""Successive checks that must find a group empty which had members: a member that restarts is away for a moment."""

LAST_COMMIT_WITHIN_S = 2.0
"""Seconds that the last commit may take: the process that ends this one waits for it."""

POSITIONS_PER_REQUEST = 1000
"""Offsets in one request: those of a group are one batch in its coordinator's log."""

NAMED_AT_MOST = 10
"""Members and partitions that an event names; the others are counted."""

GROUP_NOT_EMPTY = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS}
)
"""The errors with which a broker refuses a commit for a group with members."""

MEMBERS, TROUBLE = "group members", "group positions"


class LegacyGroupFollower:
    """The follower of a legacy flow's group. One instance lives as long as the driver."""

    def __init__(self, ctx: FlowContext, legacy: LegacySettings) -> None:
        self._ctx = ctx
        self._legacy = legacy
        self._mark = ""
        self._started: set[TopicPartition] = set()
        self._followed: frozenset[TopicPartition] = frozenset()
        """Partitions that are mirrored now. A topic may be gone from the source after its start was planned."""
        self._occupied = True
        self._had_members = False
        """The group had members at the last check, or before it."""
        self._checked_at = self._committed_at = float("-inf")
        self._row = LegacyGroup(group=legacy.group, phase="waiting")

    def status(self) -> Mapping[str, Any]:
        """Return the group's part of /status."""
        row = self._row
        return {"group": row.group, "phase": row.phase, "members": list(row.members), "committed_ms": row.committed_ms}

    # -- who is in the group -------------------------------------------------------------------------------------------

    async def wait_until_empty(self, producer_id: int) -> None:
        """Wait until the group has no members. Nothing is copied before."""
        self._mark = commit_metadata(self._ctx.flow, producer_id)
        self._started.clear()
        empty_checks = 0
        while True:
            described = await self._describe()
            if described is None:
                empty_checks = 0
            elif described.members == 0:
                empty_checks += 1
                if empty_checks >= EMPTY_CHECKS or not self._had_members:
                    break
            else:
                empty_checks, self._had_members = 0, True
                await self._report_members(described)
            await asyncio.sleep(CHECK_INTERVAL_S)
        if self._had_members:
            await self._ctx.event(
                "GroupFreed", f"group {self._legacy.group}", f"nobody is in {self._group_label} any more"
            )
        self._occupied = self._had_members = False
        now = self._ctx.clock.monotonic()
        self._checked_at = self._committed_at = now
        await self._write_row(replace(self._row, phase="copying", cause=NO_REASON, members=()))

    async def has_members(self) -> bool:
        """Return whether a member has joined the group since, by a check every `CHECK_INTERVAL_S`.

        A source that does not answer says nothing about that.
        """
        now = self._ctx.clock.monotonic()
        if self._occupied or now - self._checked_at < CHECK_INTERVAL_S:
            return self._occupied
        self._checked_at = now
        described = await self._describe()
        self._occupied = self._had_members = described is not None and described.members > 0
        return self._occupied

    async def _describe(self) -> GroupDescription | None:
        """Return the group as its coordinator describes it; None while it does not answer."""
        troubles = self._ctx.periodic.troubles
        try:
            described = (await self._ctx.source.describe_groups([self._legacy.group])).require_done()
        except ClusterError as trouble:
            troubles.record_failure(MEMBERS, trouble)
            return None
        troubles.record_success(MEMBERS)
        return described[self._legacy.group]

    async def _report_members(self, described: GroupDescription) -> None:
        members = described.member_names[:NAMED_AT_MOST]
        more = described.members - len(members)
        names = ", ".join(members) + (f" and {more} more" if more else "")
        cause = ReasonCode.GROUP_OCCUPIED.to_reason(group=self._group_label, count=described.members, members=names)
        is_reported = self._row.phase == "waiting" and self._row.members == members
        await self._write_row(replace(self._row, phase="waiting", cause=cause, members=members))
        if not is_reported:
            subject = f"group {self._legacy.group}"
            await self._ctx.event("GroupOccupied", subject, self._row.reason, members=list(members))

    @property
    def _group_label(self) -> str:
        return f"group {self._legacy.group} on {self._ctx.flow.source}"

    async def _write_row(self, row: LegacyGroup) -> None:
        self._row = row
        await self._ctx.state.write_if_changed(row)

    # -- where partitions begin ----------------------------------------------------------------------------------------

    async def start_partitions(self, partitions: Collection[TopicPartition]) -> bool:
        """Let partitions that are not copied yet begin at the group's offsets; False: a member has joined the group.

        After ClusterError or LeadershipLost, call it again before anything is copied.
        """
        ctx = self._ctx
        self._followed = frozenset(partitions)
        new = [tp for tp in partitions if tp not in self._started]
        if not new:
            return True
        committed = await ctx.source.group_offsets(self._legacy.group)
        try:
            start = plan_start(new, self._progress(), committed, self._mark)
        except RefusedOffsets as exc:
            raise ClusterError(ctx.flow.target, str(exc)) from exc
        ctx.must_act()
        await ctx.state.write_all(start.rows)
        for tp, (own_offset, group_offset) in sorted(start.moved.items())[:NAMED_AT_MOST]:
            name = f"{tp[0]}-{tp[1]}"
            text = f"{name}: begins at {group_offset}, where {self._group_label} was put meanwhile"
            text = f"{text}; our copy had got to {own_offset}"
            await ctx.event("GroupPositionObeyed", name, text, begins=group_offset, copied=own_offset)
        if len(start.moved) > NAMED_AT_MOST:
            text = f"so do {len(start.moved) - NAMED_AT_MOST} partitions more"
            await ctx.event("GroupPositionObeyed", f"group {self._legacy.group}", text)
        begun = len(start.rows) - len(start.moved)
        if begun:
            text = f"{begun} partition(s) begin at the committed offsets of {self._group_label}"
            await ctx.event("GroupPositionsTaken", f"group {self._legacy.group}", text, partitions=begun)
        if not await self._commit(start.marks):
            return False
        self._started.update(new)
        return True

    def _progress(self) -> dict[TopicPartition, PartitionProgress]:
        return progress_by_partition(self._ctx.state.all(PartitionProgress))

    # -- committing ----------------------------------------------------------------------------------------------------

    async def commit_if_due(self) -> None:
        """Commit what the target has acknowledged once in an interval. Errors of the source are tried again."""
        ctx, now = self._ctx, self._ctx.clock.monotonic()
        if now - self._committed_at < self._legacy.commit_every / timedelta(seconds=1):
            return
        self._committed_at = now
        try:
            await self._commit_progress()
        except ClusterError as trouble:
            ctx.periodic.troubles.record_failure(TROUBLE, trouble)
        else:
            ctx.periodic.troubles.record_success(TROUBLE)

    async def last_commit(self) -> None:
        """Commit once the slots have drained: the offsets from which MirrorMaker 1, or Lockstep, would go on.

        Failed commits are logged. After one, another client reads again what was copied since the commit before.
        """
        ctx = self._ctx
        if not ctx.is_acting or not self._started or self._occupied:
            return
        try:
            async with asyncio.timeout(LAST_COMMIT_WITHIN_S):
                # A row of ours is behind all that the slots wrote: once it is read, so are theirs.
                await ctx.state.write(self._row)
                await self._commit_progress()
                self._log_unknown_positions()
        except (ClusterError, TimeoutError) as exc:
            ctx.log.warn("last positions not committed", f"{self._group_label}: {exc or 'no answer in time'}")

    def _log_unknown_positions(self) -> None:
        """Warn about committed offsets that may be behind the target's log.

        The offsets before them are further behind.
        """
        rows = self._progress()
        unknown = [
            f"{topic}-{number}"
            for (topic, number), row in sorted(rows.items())
            if (topic, number) in self._started & self._followed and not row.has_end
        ]
        if unknown:
            text = "the end of their copies on the target is unknown; the next start may copy some records again"
            self._ctx.log.warn("last positions may be behind", f"{', '.join(unknown[:NAMED_AT_MOST])}: {text}")

    async def _commit_progress(self) -> None:
        ctx = self._ctx
        committed = await ctx.source.group_offsets(self._legacy.group)
        rows = [row for tp, row in self._progress().items() if tp in self._started and tp in self._followed]
        writes, foreign = due_commits(rows, committed, self._mark)
        for tp, (group_offset, own_offset) in sorted(foreign.items())[:NAMED_AT_MOST]:
            name = f"{tp[0]}-{tp[1]}"
            text = (
                f"{name}: another client committed offset {group_offset} for {self._group_label} during the copy; "
                f"Lockstep commits {own_offset} again. To begin elsewhere stop Lockstep, reset the group, and start "
                "Lockstep again"
            )
            await ctx.event("GroupPositionOverwritten", name, text, theirs=group_offset, ours=own_offset)
        if await self._commit(writes):
            at_ms = ctx.clock.wall_ms() if writes else self._row.committed_ms
            await self._write_row(replace(self._row, partitions=len(rows), committed_ms=at_ms))

    async def _commit(self, positions: Mapping[TopicPartition, GroupOffset]) -> bool:
        """Commit; False: the group has members. Raises ClusterError after everything that can be committed was."""
        ctx = self._ctx
        failed: ClusterError | None = None
        ordered = sorted(positions.items())
        for start in range(0, len(ordered), POSITIONS_PER_REQUEST):
            ctx.must_act()
            outcome: Outcome[GroupOffset]
            try:
                outcome = await ctx.source.alter_group_offsets(
                    self._legacy.group, dict(ordered[start : start + POSITIONS_PER_REQUEST])
                )
            except RequestRefused as refused:
                outcome = Outcome(failed={self._legacy.group: refused})
            for trouble in outcome.troubles().values():
                if isinstance(trouble, RequestRefused) and trouble.code in GROUP_NOT_EMPTY:
                    self._occupied = self._had_members = True
                    return False
                failed = trouble
        if failed is not None:
            raise failed
        return True
