"""Moves the consumer groups of a flow to their places on the target, as a step of a switch."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lockstep_ops.formatting import count_text, shorten
from lockstep_ops.switch.group_positions import (
    GroupAtSource,
    GroupPatience,
    GroupVerdict,
    groups_text,
    judge_groups,
)
from lockstep_ops.switch.source_ends import selected_topics
from lockstep_ops.switch.switch_clusters import CHECK_AGAIN_S, StepFailed, SwitchClusters, known_groups
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_options import Allowance, allows
from lockstep_ops.switch.switch_positions import NAMED, known_ends
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Switch, SwitchGroup


class GroupActions:
    """The actions on groups of the flow by which the applications move. Each may be done again, also half done."""

    def __init__(self, log: SwitchLog, clusters: SwitchClusters, progress: WorkProgress, within_s: float) -> None:
        self.log = log
        self.clusters = clusters
        self._progress = progress
        self._within_s = within_s

    async def move(self, row: Switch, *, source: bool) -> tuple[str, int]:
        """Have all groups moved to their places on the target, and write down where each is.

        Args:
            row: The switch.
            source: Whether the source answers.

        Returns:
            A text, and the moment up to which the source's groups are known, in Unix milliseconds.
        """
        if not self._moves_groups:
            return "the file has sync.group.offsets.enabled=false, so groups stay where they are on the target", 0
        deadline = time.monotonic() + self._within_s
        ends = await self._unread_ends(row, self._topics) if source and not row.drill else {}
        leaves, patience = allows(row, Allowance.LEFT_GROUPS), GroupPatience()
        while True:
            groups, verdicts, known_ms = await self._look_at_groups(row, ends, source=source)
            unmoved = [verdict for verdict in verdicts if not verdict.can_move]
            if not unmoved:
                await self._write_groups(row, groups, verdicts)
                return groups_text(verdicts), known_ms
            now_s = time.monotonic()
            overdue = unmoved if now_s > deadline else patience.overdue(unmoved, now_s)
            if leaves and len(overdue) == len(unmoved):
                await self._write_groups(row, groups, verdicts)
                return f"{groups_text(verdicts)}. Left where they are: {_named(unmoved)}", known_ms
            if overdue and not leaves:
                raise _cannot_move(overdue)
            self._progress.text = f"{unmoved[0].group}: {unmoved[0].text}"
            await asyncio.sleep(CHECK_AGAIN_S)

    async def require_movable(self, row: Switch) -> None:
        """Raise StepFailed if nothing that this switch does can move some group. Its writers are not fenced yet."""
        if not self._moves_groups or allows(row, Allowance.LEFT_GROUPS):
            return
        patience = GroupPatience()
        while True:
            _, verdicts, _ = await self._look_at_groups(row, {}, source=True)
            stuck = [verdict for verdict in verdicts if verdict.is_stuck]
            if not stuck:
                return
            if patience.overdue(stuck, time.monotonic()):
                raise _cannot_move(stuck)
            await asyncio.sleep(CHECK_AGAIN_S)

    @property
    def _moves_groups(self) -> bool:
        settings = self.log.settings
        return settings.checkpoint.enabled and settings.checkpoint.sync_group_offsets

    async def _look_at_groups(
        self, row: Switch, ends: Mapping[TopicPartition, int], *, source: bool
    ) -> tuple[list[GroupStatus], list[GroupVerdict], int]:
        """Have all groups moved as far as they can be.

        Args:
            row: The switch.
            ends: The ends of those logs of the source that have records to read.
            source: Whether the source answers.

        Returns:
            The groups' rows, the verdicts, and the moment up to which the source's groups are known, in Unix
            milliseconds.
        """
        topics = self._topics
        live = row.drill or bool(row.cutoff_ms)  # consumers go on reading on the source meanwhile
        before = await self._at_source(known_groups(self.log.rows), topics) if source else {}
        await self.clusters.sync_groups(source=source, rewind=row.rewind_groups)
        await self.log.catch_up_now()
        groups, readings = known_groups(self.log.rows), GroupReadings.from_rows(self.log.rows.values())
        members = await self.clusters.members_at_target([group.group for group in groups])
        target_ends = await self.clusters.target_ends(topics)
        after = await self._at_source(groups, topics) if source else {}
        at_source = {
            name: replace(
                present, has_moved=not live and (name not in before or before[name].offsets != present.offsets)
            )
            for name, present in after.items()
        }
        read = [group for group in groups if not source or group.phase == "failing" or _reads(at_source[group.group])]
        verdicts = judge_groups(read, at_source, members, topics, ends, target_ends, readings)
        return groups, verdicts, readings.list_known_ms

    async def _unread_ends(self, row: Switch, topics: Sequence[MirroredTopic]) -> dict[TopicPartition, int]:
        """Return the ends of the source's logs that still have records to read."""
        starts = await self.clusters.source_starts(topics)
        return {tp: end for tp, end in known_ends(self.log.rows, row.id).items() if end > starts.get(tp, 0)}

    async def _write_groups(self, row: Switch, groups: Sequence[GroupStatus], verdicts: Sequence[GroupVerdict]) -> None:
        positions = {group.group: group.positions for group in groups}
        rows = [
            SwitchGroup(
                group=verdict.group,
                switch=row.id,
                state=verdict.state,
                text=verdict.text,
                read_again=verdict.read_again,
                positions=positions[verdict.group],
                known_ms=verdict.known_ms,
            )
            for verdict in verdicts
        ]
        if rows:
            await self.log.append(*rows)

    async def _at_source(
        self, groups: Sequence[GroupStatus], topics: Sequence[MirroredTopic]
    ) -> dict[str, GroupAtSource]:
        return await self.clusters.groups_at_source([group.group for group in groups], topics)

    @property
    def _topics(self) -> list[MirroredTopic]:
        row = self.log.switch
        return selected_topics(self.log, () if row is None else row.topics)


def _named(verdicts: Sequence[GroupVerdict]) -> str:
    """Return the first `NAMED` groups as a text, with why they cannot move."""
    return shorten([f"{verdict.group} ({verdict.state}): {verdict.text}" for verdict in verdicts], NAMED, "; ")


def _cannot_move(verdicts: Sequence[GroupVerdict]) -> StepFailed:
    return StepFailed(
        f"{count_text(len(verdicts), 'group')} cannot move: {_named(verdicts)}. Say --continue "
        f"{Allowance.LEFT_GROUPS.option} to leave them where they are, or --abort"
    )


def _reads(group: GroupAtSource) -> bool:
    return bool(group.offsets or group.members)
