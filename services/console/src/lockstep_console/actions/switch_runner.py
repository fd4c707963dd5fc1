"""The switches that this console carries out, and those that it takes up when another console has fallen silent.

A switch is in rows of the state topic, so it goes on when the browser goes. The console that carries it out writes the
row every few seconds. If none comes for `TAKEN_UP_AFTER_S`, another console claims the switch and goes on, or the same
one after a restart. To claim is atomic, so exactly one goes on. A switch that a terminal carries out is shown, and goes
on here only when an operator asks for that.
"""

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockstep_console.actions.command_outcome import DONE, FAILED, REFUSAL, RUNNING, UNFINISHED, CommandOutcome
from lockstep_console.actions.command_runner import CommandRunner
from lockstep_ops.switch.refusals import Refusal, format_refusal, refusal_as_json, refusals_as_json
from lockstep_ops.switch.switch_clusters import StepFailed
from lockstep_ops.switch.switch_log import TakenOver
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_plan import SwitchPlan
from lockstep_ops.switch.switch_run import SwitchRun, opposite_flow, switch_flows
from lockstep_ops.switch.switch_steps import MEANINGS, UNDER_WAY, Verb, step_states
from lockstep_ops.switch.switch_under_way import TAKEN_UP_AFTER_S, SwitchRefused, is_in_console
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.rows.state_rows import SWITCH_KEY, Switch

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_console.console import Console
    from lockstep_console.flow_watch import FlowWatch

VERBS = frozenset(map(str, Verb))


class SwitchRunner:
    """The switches of one console. It is a `ConsolePart`; run `take_up_silent` as long as the console lives."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._commands = console.part(CommandRunner)
        self._name = console.identity.instance
        self._carried: set[str] = set()
        """The flows whose switch this console carries out now."""
        self._timers: dict[str, LivenessTimer] = {}
        self._told_of: dict[str, tuple[str, str, str]] = {}
        """By flow: the switch of which open pages were told last, its phase and its console."""

    def flows(self, watch: "FlowWatch", verb: Verb) -> "tuple[FlowSettings, FlowSettings | None]":
        """Return the flow by which the applications move, and the opposite one. Raises as `switch_flows`."""
        return switch_flows(watch.settings, self._all_flows, verb, self._console.identity.file)

    @property
    def _all_flows(self) -> "list[FlowSettings]":
        return [watch.settings for watch in self._console.watches.all]

    async def plan(self, watch: "FlowWatch", options: SwitchOptions) -> Mapping[str, Any]:
        """Return the plan of a switch as JSON values, and change nothing: its steps, its notes and its refusals.

        Raises:
            CannotUse: A topic is not mirrored by the flow, or a failback has no opposite flow.
            ClusterError: A cluster does not answer, or refuses.
            NewerVersion: A row is of a newer release.
        """
        moving, opposite = self.flows(watch, options.verb)
        run = SwitchRun(moving, opposite, options, console=self._name)
        async with run.following():
            try:
                plan = await run.plan()
            except SwitchRefused as refused:
                return refusals_as_json(moving.flow, options.verb, refused.reasons, None)
        return _plan_as_json(plan, moving, options)

    def begin(self, watch: "FlowWatch", options: SwitchOptions) -> CommandOutcome:
        """Begin a switch in the background, and return its outcome, whose id is that of the switch.

        Raises:
            CannotUse: A failback has no opposite flow.
        """
        moving, opposite = self.flows(watch, options.verb)
        drill = {"drill": True} if options.drill else {}
        outcome = self._commands.open_outcome(
            watch, str(options.verb), "flow", options.by, drill, asked_id=uuid.uuid4().hex
        )
        outcome.sentence = "Both clusters are asked whether the switch may begin. Nothing has been done."
        run = SwitchRun(moving, opposite, options, console=self._name)
        self._spawn(outcome, self._begin(outcome, run))
        return outcome

    def go_on(self, watch: "FlowWatch", row: Switch, options: SwitchOptions) -> CommandOutcome:
        """Continue a switch in the background, and return the outcome. `watch` is over the flow of its row."""
        return self._claim(watch, row, options, "continue")

    def abort(self, watch: "FlowWatch", row: Switch, options: SwitchOptions) -> CommandOutcome:
        """Take a switch back in the background, and return the outcome. `watch` is over the flow of its row."""
        return self._claim(watch, row, options, "abort")

    def _claim(self, watch: "FlowWatch", row: Switch, options: SwitchOptions, act: str) -> CommandOutcome:
        outcome = self._commands.open_outcome(watch, f"{row.verb} --{act}", "flow", options.by, {"switch": row.id})
        outcome.sentence = "The switch is claimed for this console."
        run = self._run_of(watch, options)
        work = self._continue(outcome, run) if act == "continue" else self._abort(outcome, run)
        self._spawn(outcome, work)
        return outcome

    def _run_of(self, watch: "FlowWatch", options: SwitchOptions) -> SwitchRun:
        """Return a run for the flow whose row the switch is in."""
        opposite = opposite_flow(watch.settings, self._all_flows)
        return SwitchRun(watch.settings, opposite, options, console=self._name)

    # -- the work ------------------------------------------------------------------------------------------------------

    async def _begin(self, outcome: CommandOutcome, run: SwitchRun) -> None:
        async with run.following():
            plan = await run.plan()
            if plan.refusals:
                raise SwitchRefused(plan.refusals)
            row = await run.begin(plan, replace(plan.row, id=outcome.id))
            await self._carry_out(outcome, run, row)

    async def _continue(self, outcome: CommandOutcome, run: SwitchRun) -> None:
        async with run.following():
            row = await run.claim()
            if row.phase == "done":
                self._end(outcome, row)
            else:
                await self._carry_out(outcome, run, row)

    async def _abort(self, outcome: CommandOutcome, run: SwitchRun) -> None:
        async with run.following():
            await self._carry_out(outcome, run, await run.claim_to_abort(), takes_back=True)

    async def _carry_out(
        self, outcome: CommandOutcome, run: SwitchRun, row: Switch, *, takes_back: bool = False
    ) -> None:
        flow = str(run.log.settings.flow)
        outcome.sentence = f"The {row.verb} goes on. Its row shows each step."
        self._commands.publish(outcome)
        self._carried.add(flow)
        try:
            self._end(outcome, await (run.take_back(row) if takes_back else run.carry_out(row)))
        finally:
            self._carried.discard(flow)

    def _end(self, outcome: CommandOutcome, row: Switch) -> None:
        outcome.phase = DONE
        outcome.sentence, outcome.details = _state_sentence(row), _switch_details(row)

    def _spawn(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        """Do the work beside the requests. The outcome says what comes of it."""
        self._commands.spawn(outcome, self._explained(outcome, work))

    async def _explained(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        """Do the work. What speaks against it, and what stops it in the middle, is in the outcome."""
        try:
            await work
        except SwitchRefused as refused:
            outcome.phase, outcome.sentence = REFUSAL, _refusal_sentence(refused.reasons)
            outcome.details = {"refusals": [refusal_as_json(reason) for reason in refused.reasons]}
        except StepFailed as failed:
            outcome.phase = FAILED
            outcome.sentence = f"A step failed: {failed}. Continue the switch when that is mended, or abort it."
        except TakenOver as taken:
            outcome.phase, outcome.sentence = FAILED, f"Somebody else goes on with the switch: {taken}."
            if outcome.arguments.get("switch", outcome.id) == outcome.id:
                # What comes of the switch is in its row, and is told by that.
                self._commands.outcomes.rename(outcome, uuid.uuid4().hex)
                self._told_of.clear()

    # -- switches of consoles that fell silent -------------------------------------------------------------------------

    async def take_up_silent(self) -> None:
        """Take up each switch of the file whose console has fallen silent, until cancelled."""
        await self._console.watches.look_again("silent switch not looked for", self._look)

    def _look(self, watch: "FlowWatch") -> None:
        """Take the switch of a flow up if its console has been silent for long enough."""
        row = _current_switch(watch)
        if row is not None:
            self._tell(watch, row)
        if row is None or not is_in_console(row) or watch.name in self._carried:
            self._timers.pop(watch.name, None)
            return
        timer = self._timers.setdefault(watch.name, LivenessTimer())
        now = asyncio.get_running_loop().time()
        if timer.silent_for((row.id, row.operator, row.at_ms), now) < TAKEN_UP_AFTER_S:
            return
        self._timers.pop(watch.name)  # the next attempt comes after as much silence
        if row.verb in VERBS:
            self._take_up(watch, row)
        else:
            self._console.log.warn(
                "switch not taken up", f"{row.verb[:40]!r} of {watch.name}: this release knows no such switch"
            )

    def _tell(self, watch: "FlowWatch", row: Switch) -> None:
        """Tell open pages what has come of a switch that is none of this console."""
        state = row.id, row.phase, row.console
        if self._told_of.get(watch.name) != state:
            self._told_of[watch.name] = state
            if not self._commands.outcomes.has(row.id):
                self._commands.publish(_row_outcome(row, watch.name))

    def _take_up(self, watch: "FlowWatch", row: Switch) -> None:
        self._console.log.warn("switch taken up", f"{row.verb} {row.id} of {watch.name}: {row.console} fell silent")
        outcome = self._commands.open_outcome(watch, row.verb, "flow", row.by, {"switch": row.id})
        outcome.sentence = f"Console {row.console} fell silent. This one takes the {row.verb} up."
        run = self._run_of(watch, SwitchOptions(verb=Verb(row.verb), id=row.id, by=row.by))
        self._carried.add(watch.name)
        self._spawn(outcome, self._go_on_with(outcome, run, row))

    async def _go_on_with(self, outcome: CommandOutcome, run: SwitchRun, silent: Switch) -> None:
        try:
            async with run.following():
                row = await run.take_up(silent)
                if row is None:
                    outcome.phase, outcome.sentence = DONE, f"The {silent.verb} goes on where it was begun."
                    return
                self._commands.outcomes.rename(outcome, row.id)  # by which the page of who asked knows it
                await self._carry_out(outcome, run, row, takes_back=row.phase == "aborting")
        finally:
            self._carried.discard(str(run.log.settings.flow))


def _current_switch(watch: "FlowWatch") -> Switch | None:
    """Return the last switch by a flow, or None if there was none or its rows cannot be read."""
    row = watch.rows.find(SWITCH_KEY)
    return row if isinstance(row, Switch) else None


def find_switch(watches: "list[FlowWatch]", switch_id: str) -> "tuple[FlowWatch, Switch] | None":
    """Return the switch with this id, and the watch over the flow of its row."""
    for watch in watches:
        row = _current_switch(watch)
        if row is not None and row.id == switch_id:
            return watch, row
    return None


def switch_outcome(watches: "list[FlowWatch]", flow: str, switch_id: str) -> CommandOutcome | None:
    """Return what the rows say of a switch that was begun in another console, or in this one before its end.

    Args:
        watches: The watches over the flows whose topics may have its row.
        flow: The name of the flow for which it was asked.
        switch_id: Its id.
    """
    present = find_switch(watches, switch_id)
    return None if present is None else _row_outcome(present[1], flow)


def _row_outcome(row: Switch, flow: str) -> CommandOutcome:
    """Return what the row of a switch says of it, for the flow for which it was asked."""
    if row.phase not in UNDER_WAY:
        phase, sentence = DONE, _state_sentence(row)
    elif row.console:
        phase, sentence = RUNNING, f"Console {row.console} carries the {row.verb} out."
    else:
        phase = UNFINISHED
        sentence = (
            f"No console carries the {row.verb} out: a step failed, or a terminal goes on with it. "
            "Its row shows each step."
        )
    return CommandOutcome(
        id=row.id,
        flow=flow,
        verb=row.verb,
        subject="flow",
        by=row.by,
        at_ms=row.began_ms,
        phase=phase,
        sentence=sentence,
        details=_switch_details(row),
    )


def _state_sentence(row: Switch) -> str:
    return f"The {row.verb} is {row.phase}."


def _switch_details(row: Switch) -> dict[str, Any]:
    return {"switch": {"id": row.id, "verb": row.verb, "phase": row.phase}}


def _refusal_sentence(refusals: "tuple[Refusal, ...]") -> str:
    """Return what speaks against a switch, as one text."""
    return "; ".join(map(format_refusal, refusals))


def _plan_as_json(plan: SwitchPlan, moving: "FlowSettings", options: SwitchOptions) -> dict[str, Any]:
    """Return the plan of a switch: the body of `--dry-run --output json`, with its steps and its notes."""
    return {
        **refusals_as_json(moving.flow, options.verb, plan.refusals, plan.row),
        "steps": [{"step": str(state.step), "meaning": MEANINGS[state.step]} for state in step_states(plan.row)],
        "notes": list(plan.notes),
    }
