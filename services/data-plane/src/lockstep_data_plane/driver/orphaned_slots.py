"""Slots that go on copying while no driver of this process leads.

A slot needs no driver to copy what it has. Its appends are compare-and-swap, so a second slot beside it duplicates
nothing. A slot ends by itself when it reads that another instance leads (`slot.py`), and this process ends it then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from lockstep_config import FlowSettings
from lockstep_data_plane.driver.slot_supervisor import SlotSupervisor
from lockstep_kafka.common.asyncio_util import to_next_tick
from lockstep_runtime.flow.context import FlowContext

CHECK_INTERVAL_S = 1.0
LEAVE_WITHIN_S = 4.0
"""Seconds that slots get to drain by themselves once another instance leads, so that their progress is written."""

LED_AT_ONCE_S = 5.0
"""Seconds after which the main loop of a leader runs, unless the flow is paused or stopped."""


class OrphanedSlots:
    """The slots of one flow between two terms of its driver.

    Args:
        ctx: The flow.
        running: Returns the supervisors of the present slots by number.
        settings: Returns the settings that a slot would be started with now.
        drain: Ends all slots.
    """

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
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    def start(self) -> None:
        """Watch the slots from now on, because no driver leads. Without slots this does nothing."""
        if slots := self._running():
            self._ctx.log.info("slots go on", f"no driver leads: {len(slots)} of them copy until one does")
            self._task = asyncio.create_task(self._end_when_succeeded(), name="slots without a driver")

    async def stop(self) -> None:
        """Stop watching, because the driver leads, and drain all slots if one would be started differently now.

        Raises what draining raises.
        """
        task, self._task = self._task, None
        if task is not None:
            if not self._ending:
                task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()
        if not all(map(self._is_current, self._running().values())):
            await self._drain()

    def _is_current(self, running: SlotSupervisor) -> bool:
        """Return whether the run has the present settings object and no other instance has led since it began.

        Rotated credentials make a new settings object.
        """
        spec = running.spec
        return spec is not None and spec.settings is self._settings() and not self._succeeded(spec.term)

    def _succeeded(self, term: int) -> bool:
        return self._ctx.leadership.claimed_by_others(term, self._ctx.instance)

    async def _end_when_succeeded(self) -> None:
        ctx, led_since = self._ctx, float("inf")
        while slots := self._running():
            led_since = min(led_since, ctx.clock.monotonic()) if ctx.is_acting else float("inf")
            is_succeeded = any(r.spec is not None and self._succeeded(r.spec.term) for r in slots.values())
            if is_succeeded or ctx.clock.monotonic() - led_since > LED_AT_ONCE_S:
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
