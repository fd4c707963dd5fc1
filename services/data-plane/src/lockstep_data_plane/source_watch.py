"""What the driver itself sees of the source: whether it can be reached, and which partitions stand still there is more
of."""

from __future__ import annotations

import time

from lockstep_data_plane.assign import TopicPartition
from lockstep_data_plane.measures import Measures
from lockstep_data_plane.obeying import Order, orders
from lockstep_data_plane.watchdog import Watchdog
from lockstep_protocol.state import Assignment, PartitionProgress
from lockstep_runtime.context import FlowContext
from lockstep_runtime.errors import ClusterTrouble
from lockstep_runtime.waiting import share_kept_s

__all__ = ["SourceWatch"]

LOOK_EVERY_S = 10.0

ENDS_SHARE, ENDS_AT_LEAST_EVERY_S = 0.001, 30.0
"""Of a core, which asking the source for the ends of all its logs is not to cost more than: of thousands of partitions
it is some 40 ms of processor, and the slots see the ends of what they fetch. But so often in any case."""

STUCK_AFTER_S = 60.0

TROUBLE = "watching the source"


class SourceWatch:
    """Of one flow, whose slots are those below `slots`."""

    def __init__(self, ctx: FlowContext, measures: Measures, slots: int) -> None:
        self._ctx = ctx
        self._measures = measures
        self._slots = slots
        self._watchdog = Watchdog(STUCK_AFTER_S)
        self._probed_at = self._looked_at = float("-inf")
        self._looks_after_s = 0.0

    async def look_if_due(self) -> None:
        """Every ten seconds; at the ends of the logs less often where they are many. A source that cannot be reached
        is said and tried again; raises what the target does."""
        ctx = self._ctx
        now = ctx.clock.monotonic()
        if now - self._probed_at < LOOK_EVERY_S:
            return
        self._probed_at = now
        try:
            await ctx.source.probe()  # a request may wait for a minute, and the slots leave it to us to say so
            if now - self._looked_at >= self._looks_after_s:
                began = time.process_time()
                await self._look(now)
                self._looks_after_s = share_kept_s(
                    time.process_time() - began, ENDS_SHARE, soonest=LOOK_EVERY_S, latest=ENDS_AT_LEAST_EVERY_S
                )
        except ClusterTrouble as trouble:
            if trouble.alias != ctx.source.alias:
                raise
            ctx.rounds.troubles.began(TROUBLE, trouble)
        else:
            ctx.rounds.troubles.over(TROUBLE)

    async def _look(self, now: float) -> None:
        """Ask the source itself how far its logs go: a slot that does not move cannot say that it should."""
        ctx = self._ctx
        ordered = self._ordered()
        rows = [p for p in ctx.state.all(PartitionProgress) if (p.topic, p.partition) in ordered]
        committed = ctx.settings.data_plane.isolation_level == "read_committed"
        ends = await ctx.source.end_offsets([(p.topic, p.partition) for p in rows], read_committed=committed)
        self._looked_at = now
        resting = {tp for tp, order in ordered.items() if order.rests}
        found, over = self._watchdog.look(rows, ends, now, resting)
        for stuck in found:
            name = f"{stuck.tp[0]}-{stuck.tp[1]}"
            text = f"{name}: stands at {stuck.upstream} for {stuck.for_s:.0f} s, the source goes up to {stuck.end - 1}"
            await ctx.event("PartitionStuck", name, text, loud=True, upstream=stuck.upstream, source_end=stuck.end)
        for topic, number in over:
            await ctx.event("PartitionMoves", f"{topic}-{number}", f"{topic}-{number} is not stuck any more")
        self._measures.looked(self._watchdog.stuck, ends, resting)

    def _ordered(self) -> dict[TopicPartition, Order]:
        """What every partition that a slot has is to do."""
        state, states = self._ctx.state, self._ctx.settings.states
        return {
            tp: order
            for row in state.all(Assignment)
            if row.slot < self._slots
            for tp, order in orders(state.rows, row.slot, row.partitions, states).items()
        }
