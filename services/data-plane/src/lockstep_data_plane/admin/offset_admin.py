"""The source connector's offsets, listed, altered and reset by an operator (`offset_alteration.py` decides)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lockstep_data_plane.admin.offset_alteration import (
    altered_rows,
    changed_partition,
    connect_entry,
    not_located,
    partitions_to_check,
    refuse_beyond,
    reset_rows,
)
from lockstep_protocol.commands.command import Command
from lockstep_protocol.commands.command_vocabulary import OFFSETS_ALTER, OFFSETS_LIST, OFFSETS_RESET, Connector
from lockstep_protocol.connect_offsets import OffsetChange, changes_of
from lockstep_protocol.lag import SILENT_AFTER_S
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress, SlotStatus
from lockstep_runtime.flow.connect_offsets import ConnectOffsets, offsets_answer, offsets_listed
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.util.liveness_timer import LivenessTimer

ENDED_WITHIN_S = 25.0
FREE_WITHIN_S = 120.0
CHECK_INTERVAL_S = 0.25


class OffsetAdmin:
    """Of one flow. What it does half-way is repaired by doing it again, which changes nothing else."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._offsets = ConnectOffsets(ctx, Connector.SOURCE)
        self._either = asyncio.Lock()
        """Slots are kept, or offsets are changed."""
        self._retry_gate = 0

    @property
    def awaited(self) -> bool:
        """Whether a change of offsets waits for the slots to come to an end."""
        return self._retry_gate > 0

    @asynccontextmanager
    async def copying(self) -> AsyncIterator[None]:
        """The caller that keeps slots waits here until they have drained: they begin by all of the rows that change
        here, or by none. Raises TimeoutError if the former holder does not come to an end, which is a mistake of
        ours."""
        await self._alone(FREE_WITHIN_S, "the slots of before, or a change of offsets,")
        try:
            yield
        finally:
            self._either.release()

    async def _alone(self, within_s: float, caller: str) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._either.acquire()
        except TimeoutError as exc:
            raise TimeoutError(f"{caller} did not come to an end within {within_s:.0f} s") from exc

    async def carry_out(self, command: Command) -> Answer | None:
        """None for verbs about something else. Raises ValueError (RefusedOffsets) and ClusterError."""
        if command.verb == OFFSETS_LIST:
            return offsets_listed(await self._listed())
        if command.verb not in (OFFSETS_ALTER, OFFSETS_RESET):
            return None
        ctx, source = self._ctx, self._ctx.settings.aliases.source
        changes = changes_of(Connector.SOURCE, command.arguments) if command.verb == OFFSETS_ALTER else ()
        self._retry_gate += 1
        try:
            await self._alone(ENDED_WITHIN_S, "the slots")
        except TimeoutError as exc:
            raise ValueError(f"{exc}: ask again when they have") from exc
        finally:
            self._retry_gate -= 1
        try:
            await self._nobody_copies()
            refuse_beyond(changes, source, await self._ends(changes))
            rows = ctx.state.all(PartitionProgress)
            # Rows first: where there is one it counts, whatever Connect's record says.
            if command.verb == OFFSETS_ALTER:
                await ctx.state.write_all(altered_rows(rows, source, changes))
                await self._offsets.write(changes)
                return offsets_answer(command.verb, len(changes))
            await ctx.state.write_all(reset_rows(rows))
            return offsets_answer(command.verb, await self._offsets.reset())
        finally:
            self._either.release()

    async def _ends(self, changes: Sequence[OffsetChange]) -> dict[tuple[str, int], int]:
        """Where the source ends, of what is altered. A source that is away says nothing, and hinders nobody: what is
        beyond its end halts when it is back."""
        ctx = self._ctx
        return await ctx.source.end_offsets(
            partitions_to_check(changes, ctx.settings.aliases.source, ctx.state.all(MirroredTopic))
        )

    async def _listed(self) -> list[OffsetChange]:
        """By our rows, and by Connect's records of partitions without a row. While the flow is stopped, an offset is
        what the target's log says, and the call waits for it. Raises ValueError if an offset cannot be determined."""
        source = self._ctx.settings.aliases.source
        await self._wait_located()
        rows = {(row.topic, row.partition): row for row in self._ctx.state.all(PartitionProgress)}
        known = (await self._offsets.known()).values()
        return [
            *(connect_entry(row, source) for row in rows.values()),
            *(change for change in known if changed_partition(change, source) not in rows),
        ]

    async def _wait_located(self) -> None:
        """Wait until the rows of what is stopped say where the copies end. While it runs they are as they were written
        last, like Connect's own records."""
        ctx, waited_s = self._ctx, 0.0
        while ctx.wanted.connector(Connector.SOURCE) is DesiredPhase.STOPPED:
            unknown = not_located(ctx.state.all(PartitionProgress), ctx.state.all(MirroredTopic))
            if not unknown:
                return
            first = unknown[0]
            if waited_s >= ENDED_WITHIN_S or all(row.phase == "halted" for row in unknown):
                why = first.reason or f"{ctx.flow.target} was not asked within {ENDED_WITHIN_S:.0f} s: ask again"
                raise ValueError(
                    f"where the copy ends of {first.topic}-{first.partition} is not known, and of {len(unknown) - 1} "
                    f"others: {why}"
                )
            waited_s += CHECK_INTERVAL_S
            await asyncio.sleep(CHECK_INTERVAL_S)

    async def _nobody_copies(self) -> None:
        """Wait until every slot has drained, or is silent for long. Raises ValueError where one goes on, and where the
        connector is to run."""
        ctx, waited_s = self._ctx, 0.0
        timers: defaultdict[int, LivenessTimer] = defaultdict(LivenessTimer)
        while True:
            if ctx.wanted.connector(Connector.SOURCE) is not DesiredPhase.STOPPED:
                raise ValueError(f"the {Connector.SOURCE.value} was resumed meanwhile: stop it first")
            now = ctx.clock.monotonic()
            started = [status for status in ctx.state.all(SlotStatus) if status.phase == "started"]
            alive = [s.slot for s in started if timers[s.slot].silent_for(s, now) < SILENT_AFTER_S]
            if not alive:
                return
            if waited_s >= ENDED_WITHIN_S:
                raise ValueError(f"slot {alive[0]} has not ended within {ENDED_WITHIN_S:.0f} s: ask again when it has")
            waited_s += CHECK_INTERVAL_S
            await asyncio.sleep(CHECK_INTERVAL_S)
