"""Slots that continue while no driver leads here: a group that does not answer is no reason to stop copying.

A slot needs no driver to copy what it has: its appends are compare-and-swap, so another one beside it doubles nothing.
It ends by itself when it reads that another instance leads (`slot.py`), and we end it when we read that."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from lockstep_config import FlowSettings
from lockstep_data_plane.driver.slot_supervisor import SlotSupervisor
from lockstep_kafka.common.asyncio_util import to_next_tick
from lockstep_runtime.flow.context import FlowContext

CHECK_INTERVAL_S = 1.0
LEAVE_WITHIN_S = 4.0
"""How long slots get to end by themselves once another instance leads: they drain, and their successors find all
written down."""

LED_AT_ONCE_S = 5.0
"""By then the main loop of a leader runs, unless it is paused or stopped."""


class LeaderlessSlots:
    """Hold the slots of one flow. `running` are the present ones, `settings` those that one would get now, and `drain`
    ends them all."""

    def __init__(
        self,
        ctx: FlowContext,
        running: Callable[[], Mapping[int, SlotSupervisor]],
        settings: Callable[[], FlowSettings],
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        self._ctx = ctx
        self._running = running
        self._settings = settings
        self._drain = drain
        self._watch: asyncio.Task[None] | None = None
        self._ending = False

    def start(self) -> None:
        """From now on no driver leads here. Without slots there is nothing to watch."""
        if slots := self._running():
            self._ctx.log.info("slots go on", f"no driver leads: {len(slots)} of them copy until one does")
            self._watch = asyncio.create_task(self._until_not_ours(), name="slots without a driver")

    async def stop(self) -> None:
        """We lead: what is as it would be begun now goes on, anything else has drained when this returns. Raises what
        draining does."""
        watch, self._watch = self._watch, None
        if watch is not None:
            if not self._ending:
                watch.cancel()
            await asyncio.wait({watch})
            if not watch.cancelled():
                watch.result()
        if not all(map(self._as_now, self._running().values())):
            await self._drain()

    def _as_now(self, running: SlotSupervisor) -> bool:
        """Whether its run has the present settings (others by their credentials), and no other instance has led since
        it began."""
        spec = running.spec
        return spec is not None and spec.settings is self._settings() and not self._succeeded(spec.term)

    def _succeeded(self, term: int) -> bool:
        return self._ctx.leadership.others_since(term, self._ctx.instance)

    async def _until_not_ours(self) -> None:
        ctx, led_since = self._ctx, float("inf")
        while slots := self._running():
            led_since = min(led_since, ctx.clock.monotonic()) if ctx.acting else float("inf")
            others = any(r.spec is not None and self._succeeded(r.spec.term) for r in slots.values())
            if others or ctx.clock.monotonic() - led_since > LED_AT_ONCE_S:
                self._ending = True
                try:
                    for running in slots.values():
                        running.stop()
                    await asyncio.wait({running.task for running in slots.values()}, timeout=LEAVE_WITHIN_S)
                    await self._drain()
                finally:
                    self._ending = False
                return
            await asyncio.sleep(to_next_tick(CHECK_INTERVAL_S))
