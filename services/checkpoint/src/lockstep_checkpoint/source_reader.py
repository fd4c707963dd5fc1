"""Readings of the source's groups, and the time since when one has no answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.group_view import ReadingTime
from lockstep_checkpoint.log_bounds import mark_beyond
from lockstep_checkpoint.source_groups import SourceGroupOffsets, SourceGroups
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_rules.groups.group_selection import CheckpointRule
from lockstep_rules.offsets.run_translator import RunTranslator
from lockstep_runtime.flow.context import FlowContext

SILENCE_S = 3.0
"""Seconds after which an unanswered reading is recorded, and the interval at which it is recorded again."""

SILENCE = "silence of the source"


class SourceReader:
    """The reader of one flow's source, with one reading at a time."""

    def __init__(
        self,
        ctx: FlowContext,
        groups: SourceGroups,
        report: GroupReport,
        verifications: Sequence[Callable[[], Awaitable[None]]],
        rule: CheckpointRule,
        runs: RunTranslator,
    ) -> None:
        """Take what a reading needs. `verifications` check the topics on which it depends; each raises ClusterError."""
        self._ctx = ctx
        self._groups = groups
        self._report = report
        self._verifications = verifications
        self._rule = rule
        self._runs = runs
        self._asked_ms = 0
        """The Unix milliseconds at which the first unanswered reading began; 0: there is none."""

    def reset(self) -> None:
        """Forget an unanswered reading of an earlier main loop."""
        self._asked_ms = 0

    async def read(self, owned: Callable[[str], bool]) -> tuple[ReadingTime, SourceGroupOffsets]:
        """Read every group that `owned` accepts, with the log ends that offsets are beyond.

        Returns when the reading began, and the offsets. Raises as `SourceGroups.read`.
        """
        source, clock = self._ctx.source, self._ctx.clock
        began = ReadingTime(clock.monotonic(), clock.wall_ms())
        self._asked_ms = self._asked_ms or began.wall_ms
        try:
            for verify in self._verifications:
                await verify()
            group_offsets = await self._groups.read(began.monotonic_s, owned)
            positions = await mark_beyond(source, group_offsets.committed, self._rule, self._runs)
        except ClusterError as trouble:
            if not (isinstance(trouble, ClusterUnreachable) and trouble.alias == source.alias):
                self._asked_ms = 0
            raise
        self._asked_ms = 0
        return began, replace(group_offsets, committed=positions)

    async def watch(self) -> None:
        """Record at intervals, for ever, that a reading has no answer yet."""
        await self._ctx.periodic.every(SILENCE, timedelta(seconds=SILENCE_S), self.record_silence)

    async def record_silence(self) -> None:
        """Record now that a reading has no answer yet. Raises NotAppended and NotPermitted."""
        ctx = self._ctx
        if self._asked_ms and ctx.clock.wall_ms() - self._asked_ms >= SILENCE_S * 1000 and ctx.is_acting:
            await self._report.record_silence(ctx.leadership.leading(), self._asked_ms)
