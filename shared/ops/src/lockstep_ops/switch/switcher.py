"""Carries out a switch, step by step.

Each step is in the row before it begins and after it has ended. So any command can go on where another one ended.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep_config.credentials.flow_secrets import flow_secrets
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.switch.evidence import Evidence, collect_evidence
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.group_actions import GroupActions
from lockstep_ops.switch.hook import HookCall, HookFailed, run_hook
from lockstep_ops.switch.step_actions import StepActions
from lockstep_ops.switch.switch_clusters import StepFailed, SwitchClusters
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_options import Allowance, allows
from lockstep_ops.switch.switch_positions import count_losses
from lockstep_ops.switch.switch_steps import (
    DONE,
    FAILED,
    HOOKS,
    LEFT,
    MEANINGS,
    OF_OPPOSITE,
    UNDONE,
    Step,
    Verb,
    has_begun,
    next_step,
    steps_to_undo,
    switch_scopes,
    with_next_step,
    with_step,
)
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.clock import now_ms
from lockstep_state.commands.command_vocabulary import RESUME
from lockstep_state.rows.state_rows import Switch

if TYPE_CHECKING:
    from lockstep_ops.switch.failback_actions import ForwardFlow


class Switcher:
    """One switch by one flow.

    Args:
        log: The flow's state topic.
        opposite: The flow in the other direction, if the file has one.
        progress: It is kept up to date, for a display.
        on_step: It is called when a step has ended.
        within_s: The seconds that a step may wait.
        by: The name of the person who asks. None: the user of this process.
    """

    def __init__(
        self,
        log: SwitchLog,
        opposite: OppositeFlow | None,
        progress: WorkProgress,
        on_step: Callable[[Step], None],
        within_s: float,
        by: str | None = None,
    ) -> None:
        self._log = log
        self._settings = log.settings
        self._opposite = opposite
        self._progress = progress
        self._on_step = on_step
        self._within_s = within_s
        self._by = by
        self._clusters = SwitchClusters(log.settings, within_s, by)
        self._actions = StepActions(log, self._clusters, progress, within_s)
        self._groups = GroupActions(log, self._clusters, progress, within_s)

    async def run(self, row: Switch) -> Switch:
        """Do every step that is not done, and return the last row.

        If it raises, the row has the reason. A failing hook `before` or `fence` first takes everything back.

        Raises:
            StepFailed: A step did not come to its end.
            TakenOver: Another command continues the switch.
            ClusterError: A cluster does not answer, or refuses.
        """
        row = await self._log.write(with_next_step(row, now_ms()))
        while (step := next_step(row)) is not None:
            self._progress.text = MEANINGS[step]
            try:
                text, row = await self._perform(step, row)
            except (StepFailed, HookFailed, ClusterError) as exc:
                text = await self._with_way_out(str(exc), step, row)
                row = await self._log.write(with_step(self._log.switch or row, step, FAILED, now_ms(), text))
                self._on_step(step)
                if step in (Step.BEFORE, Step.FENCE):
                    row = await self.abort(row)
                raise StepFailed(text) from exc
            ended_ms = now_ms()
            row = await self._log.write(with_next_step(with_step(row, step, DONE, ended_ms, text), ended_ms))
            self._on_step(step)
        return row

    async def abort(self, row: Switch) -> Switch:
        """Take back the steps that can be taken back, and return the last row.

        It raises as `run` does. Then it can be done again.
        """
        row = await self._log.write(replace(row, phase="aborting"))
        for step in steps_to_undo(row):
            state = UNDONE
            try:
                text = await self._undo(step, row)
            except (StepFailed, ClusterError) as exc:
                text = f"{step} could not be taken back: {exc}"
                if step not in OF_OPPOSITE:
                    raise StepFailed(text) from exc
                if not allows(row, Allowance.SOURCE_GONE):
                    option = Allowance.SOURCE_GONE.option
                    raise StepFailed(f"{text}. Say --abort {option} to leave the opposite flow as it is") from exc
                state = LEFT
            row = await self._log.write(with_step(row, step, state, now_ms(), text))
        ended = await self._log.write(replace(row, phase="aborted", ended_ms=now_ms()))
        if Step.AFTER in {Step(name) for name, *_ in row.steps} and has_begun(row, Step.BEFORE, Step.FENCE):
            try:
                await self._hook(Step.AFTER, ended, "aborted")
            except HookFailed as exc:
                raise StepFailed(f"the {row.verb} is aborted, and {exc}") from exc
        return ended

    async def _with_way_out(self, text: str, step: Step, row: Switch) -> str:
        """Return why a step has failed, with what to do where the step needs a source that is gone."""
        flow, option, text = self._settings.flow, Allowance.SOURCE_GONE.option, text.removesuffix(".")
        if step is Step.REVERSE:
            return (
                f"{text}. Say --continue {option} to end the {row.verb} without it: clients can move to {flow.target}"
            )
        if row.verb == Verb.FAILOVER or step in HOOKS:
            return text
        if (await self._clusters.source_state(self._actions.topics)).answers:
            return text
        if step is Step.STOP:
            return (
                f"{text}. If {flow.source} is lost, say --continue {option}: what was to be copied is on {flow.target}"
            )
        return f"{text}. If {flow.source} is lost, say --abort, and then lockstep failover --flow '{flow}'"

    async def evidence(self, row: Switch) -> Evidence:
        """Return the evidence of the switch as it is now, from the rows."""
        await self._log.catch_up_now()
        return collect_evidence(row, self._settings.flow, dict(self._log.rows))

    async def _perform(self, step: Step, row: Switch) -> tuple[str, Switch]:
        """Do one step, and return its result as a text, and the row with what it found."""
        actions, source_is_gone = self._actions, row.verb == Verb.FAILOVER
        match step:
            case Step.CHECK:
                return "ready", row
            case Step.DIVERGED:
                return await self._forward(row).settle(row, self._progress, self._within_s), row
            case Step.RETURN:
                await self._clusters.command_each(RESUME, switch_scopes(row))
                text = await actions.catch_up()
                await self._groups.require_movable(row)
                return text, row
            case Step.ENDS:
                text, known_ms = await actions.read_ends(row)
                return text, replace(row, source_known_ms=known_ms)
            case Step.DRAIN:
                return await actions.drain(row), row
            case Step.SETTLE:
                text, losses, known_ms = await actions.settle(row)
                lost = sum(count_losses(losses).values())
                row = await self._log.write(replace(row, lost=lost, source_known_ms=known_ms))
                actions.require_allowed(row, losses)
                return text, row
            case Step.GROUPS:
                text, known_ms = await self._groups.move(row, source=not source_is_gone)
                return text, replace(row, groups_known_ms=known_ms)
            case Step.STOP:
                text, late, unknown = await actions.stop(row, source=not source_is_gone, opposite=self._opposite)
                return text, replace(row, late=late, late_unknown=unknown)
            case Step.REVERSE:
                return await self._reverse(row), row
            case Step.RESTORE:
                return await actions.resume(row), row
            case _:
                return await self._hook(step, row, "done" if step is Step.AFTER else ""), row

    async def _undo(self, step: Step, row: Switch) -> str:
        if step not in OF_OPPOSITE:
            return await self._actions.resume(row)
        return await self._forward(row).rest(row)

    async def _reverse(self, row: Switch) -> str:
        assert self._opposite is not None
        settings = self._opposite.settings
        if row.opposite_was == "running" and not row.topics:
            return f"{settings.flow} runs already"
        try:
            await SwitchClusters(settings, self._within_s, self._by).command_each(RESUME, switch_scopes(row))
        except StepFailed as exc:
            if not allows(row, Allowance.SOURCE_GONE):
                raise
            return f"{settings.flow} was not started: {exc}. When {settings.flow.target} is back, run lockstep resume"
        if row.topics and row.opposite_was != "running":
            return f"{settings.flow} is {row.opposite_was} as a whole: lockstep resume starts all of it"
        return f"{settings.flow} runs"

    async def _hook(self, step: Step, row: Switch, result: str) -> str:
        flow, hooks = self._settings.flow, self._settings.switch
        line = str(getattr(hooks, f"hook_{step}"))
        call = HookCall(row.id, row.verb, str(step), str(flow), flow.source, flow.target, result)
        return await run_hook(line, call, hooks.hook_timeout.total_seconds(), flow_secrets(self._settings))

    def _forward(self, row: Switch) -> "ForwardFlow":
        from lockstep_ops.switch.failback_actions import ForwardFlow  # other switches start without it

        assert self._opposite is not None
        clusters = SwitchClusters(self._opposite.settings, self._within_s, self._by)
        return ForwardFlow(self._opposite, clusters, self._log, row.topics)
