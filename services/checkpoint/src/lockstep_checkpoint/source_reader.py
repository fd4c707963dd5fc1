"""Reads the groups of the source for the rounds, and says since when it owes an answer."""

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
"""Seconds after which a source that has not answered a reading is said to be silent, and how often that is said."""

SILENCE = "silence of the source"


class SourceReader:
    """Read the groups of one flow's source, one reading at a time."""

    def __init__(
        self,
        ctx: FlowContext,
        groups: SourceGroups,
        report: GroupReport,
        verifications: Sequence[Callable[[], Awaitable[None]]],
        rule: CheckpointRule,
        exact: RunTranslator,
    ) -> None:
        """Take what a reading needs. `verifications` ask about the topics on which a reading depends; each raises
        ClusterError. `rule` and `exact` say whose logs have to be asked for their ends (`mark_beyond`)."""
        self._ctx = ctx
        self._groups = groups
        self._report = report
        self._verifications = verifications
        self._rule = rule
        self._exact = exact
        self._asked_ms = 0
        """When the first reading began that the source has not answered since, Unix milliseconds; 0: none has."""

    def reset(self) -> None:
        """Forget what an earlier main loop waited for."""
        self._asked_ms = 0

    async def read(self, owned: Callable[[str], bool]) -> tuple[ReadingTime, SourceGroupOffsets]:
        """Read every group that `owned` accepts. Returns when that began, and what was read, with the ends of logs that
        offsets are beyond. Raises as `SourceGroups.read`."""
        source, clock = self._ctx.source, self._ctx.clock
        began = ReadingTime(clock.monotonic(), clock.wall_ms())
        self._asked_ms = self._asked_ms or began.wall_ms
        try:
            for verify in self._verifications:
                await verify()
            group_offsets = await self._groups.read(began.monotonic_s, owned)
            positions = await mark_beyond(source, group_offsets.committed, self._rule, self._exact)
        except ClusterError as trouble:
            if not (isinstance(trouble, ClusterUnreachable) and trouble.alias == source.alias):
                self._asked_ms = 0
            raise
        self._asked_ms = 0
        return began, replace(group_offsets, committed=positions)

    async def watch(self) -> None:
        """Write down, for ever, that the source owes an answer, while it does so for some seconds."""
        await self._ctx.periodic.every(SILENCE, timedelta(seconds=SILENCE_S), self.record_silence)

    async def record_silence(self) -> None:
        """Write it down now. Raises NotAppended and NotPermitted."""
        ctx = self._ctx
        if self._asked_ms and ctx.clock.wall_ms() - self._asked_ms >= SILENCE_S * 1000 and ctx.is_acting:
            await self._report.record_silence(ctx.leadership.leading(), self._asked_ms)
