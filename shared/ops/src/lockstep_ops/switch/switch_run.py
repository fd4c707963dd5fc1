"""One run of a switch, from its plan to its end: by a command in a terminal, or by a console."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.switch.evidence import Evidence
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.refusals import format_refusal
from lockstep_ops.switch.switch_log import SwitchLog, TakenOver
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_plan import SwitchPlan, begin, plan_switch
from lockstep_ops.switch.switch_steps import Step, Verb
from lockstep_ops.switch.switch_under_way import (
    SwitchRefused,
    has_ended,
    is_same_row,
    switch_to_abort,
    switch_to_continue,
)
from lockstep_ops.switch.switcher import Switcher
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Switch

REJOINED_WITHIN_S = 15.0
"""The seconds within which a service whose cluster is back is in its group again."""

CHECKS_AGAIN_S = 0.25

SIGN_EVERY_S = 3.0
"""The seconds after which a console writes the row of the switch that it carries out once more."""

LONGEST_PROGRESS = 200
"""Most characters of the progress in a row."""


class SwitchRun:
    """A run for the flow by which the applications move. Use it within `following`.

    A console writes the row as a sign of life while it works. When a step fails, it lets the switch go: nobody takes it
    up unasked then.
    """

    def __init__(
        self,
        settings: FlowSettings,
        opposite: FlowSettings | None,
        options: SwitchOptions,
        *,
        console: str = "",
        on_step: Callable[[Step], None] = lambda _: None,
    ) -> None:
        """Take both flows, and what is asked.

        Args:
            settings: The flow.
            opposite: The flow in the other direction, if the file has one.
            options: The options of the switch.
            console: The name of the console that works; "": a command in a terminal does.
            on_step: It is called when a step has ended.
        """
        self.log = SwitchLog(settings, console)
        self.progress = WorkProgress("reading both clusters")
        self._opposite = None if opposite is None else OppositeFlow(opposite)
        self._options = options
        self._switcher = Switcher(self.log, self._opposite, self.progress, on_step, options.within_s, options.by)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        """Read the rows of the flow, and go on reading. Raises as `StateTopicRows.following`."""
        async with self.log.following(), self._opposite or nullcontext():
            yield self

    async def plan(self) -> SwitchPlan:
        """Return the plan of the switch. Refusals that may be over in some seconds are waited for.

        Raises:
            SwitchRefused: The switch may not begin.
            CannotUse: A topic is not mirrored by the flow.
            ClusterError: A cluster does not answer, or refuses.
        """
        deadline = time.monotonic() + REJOINED_WITHIN_S
        while True:
            try:
                plan = await plan_switch(self.log, self._opposite, self._options)
                if not plan.may_end_soon or time.monotonic() > deadline:
                    return plan
                refusals = plan.refusals
            except SwitchRefused as refused:
                if not refused.may_end_soon or time.monotonic() > deadline:
                    raise
                refusals = refused.reasons
            self.progress.text = format_refusal(refusals[0])
            await asyncio.sleep(CHECKS_AGAIN_S)
            await self.log.catch_up_now()

    async def begin(self, plan: SwitchPlan, row: Switch) -> Switch:
        """Write the row of a planned switch, and return it. Raises as `switch_plan.begin`."""
        return await begin(self.log, plan.opposite, row)

    async def claim(self) -> Switch:
        """Take over the switch that the options name, to continue it, and return its row.

        A switch that is named by its id may have ended meanwhile. Then its row is returned as it is, and is `done`.

        Raises:
            SwitchRefused: It cannot be continued.
            TakenOver: Another command continues it.
            ClusterError: The target does not answer.
        """
        flow, options = self.log.settings.flow, self._options
        try:
            return await self.log.claim(lambda: switch_to_continue(self.log.switch, flow, options))
        except SwitchRefused:
            ended = self.log.switch
            if ended is None or not has_ended(ended, options):
                raise
            return ended

    async def claim_to_abort(self) -> Switch:
        """Take over the switch that the options name, to take it back, and return its row. Raises as `claim`."""
        flow, options = self.log.settings.flow, self._options
        return await self.log.claim(lambda: switch_to_abort(self.log.switch, flow, options))

    async def take_up(self, silent: Switch) -> Switch | None:
        """Take over the switch of a console that has fallen silent, and return its row.

        Args:
            silent: The row as it was last seen.

        Returns:
            None if somebody has written the row since, so that the switch goes on without us.

        Raises:
            TakenOver: Another console takes it up in the same moment.
            ClusterError: The target does not answer.
        """

        def derive() -> Switch:
            row = self.log.switch
            if row is None or (row.operator != self.log.operator and not is_same_row(row, silent)):
                raise _GoesOn
            return row

        try:
            return await self.log.claim(derive)
        except _GoesOn:
            return None

    async def carry_out(self, row: Switch) -> Switch:
        """Do every step that is not done, and return the last row. Raises as `Switcher.run`."""
        return await self._with_signs(self._switcher.run(row))

    async def take_back(self, row: Switch) -> Switch:
        """Take back the steps that can be taken back, and return the last row. Raises as `Switcher.abort`."""
        return await self._with_signs(self._switcher.abort(row))

    async def evidence(self, row: Switch) -> Evidence:
        """Return the evidence of the switch as it is now, from the rows."""
        return await self._switcher.evidence(row)

    async def _with_signs(self, work: Coroutine[Any, Any, Switch]) -> Switch:
        """Return the result of the work. A console writes signs of life until it ends.

        If another one has taken the switch over, the work is cancelled at once.
        """
        if not self.log.console:
            return await work
        working, signs = asyncio.ensure_future(work), asyncio.ensure_future(self._say_alive())
        try:
            await asyncio.wait({working, signs}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await signs
            return await working
        except Exception:
            with suppress(ClusterError, TakenOver):  # then the row stays as it is, and a console takes it up again
                await self.log.let_go()
            raise
        finally:
            for task in (working, signs):
                task.cancel()
            await asyncio.gather(working, signs, return_exceptions=True)

    async def _say_alive(self) -> None:
        """Write the row every few seconds, and return never.

        A target that does not answer is asked again: the step that waits for it says so.
        """
        while True:
            await asyncio.sleep(SIGN_EVERY_S)
            with suppress(ClusterError):
                await self.log.say_alive(progress_text(self.progress))


class _GoesOn(Exception):
    """Somebody has written the row of the switch since it was last seen."""


def progress_text(progress: WorkProgress) -> str:
    """Return what a work waits for, with the share that is done if it is known."""
    share = "" if progress.fraction is None else f" ({progress.fraction:.0%})"
    return progress.text[:LONGEST_PROGRESS] + share


def switch_flows(
    settings: FlowSettings, flows: Iterable[FlowSettings], verb: Verb, file: Path
) -> tuple[FlowSettings, FlowSettings | None]:
    """Return the flow by which the applications move, and the opposite one if it copies.

    Args:
        settings: The flow that is named.
        flows: All flows of the file.
        verb: The verb. A failback moves them by the opposite of the named flow.
        file: The file, which an error names.

    Raises:
        CannotUse: A failback has no opposite flow.
    """
    opposite = opposite_flow(settings, flows)
    if verb is not Verb.FAILBACK:
        return settings, opposite
    if opposite is None:
        back = Flow(settings.flow.target, settings.flow.source)
        raise CannotUse(f"{file} has no flow {back} that copies back: add {back}.enabled = true, and start it")
    return opposite, settings


def opposite_flow(settings: FlowSettings, flows: Iterable[FlowSettings]) -> FlowSettings | None:
    """Return the flow of these in the other direction, or None if there is none that copies."""
    back = Flow(settings.flow.target, settings.flow.source)
    return next((flow for flow in flows if flow.flow == back and flow.enabled and flow.data_plane.enabled), None)
