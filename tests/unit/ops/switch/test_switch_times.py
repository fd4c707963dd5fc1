"""Every second of a switch is in one of its steps."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch import switch_plan, switcher
from lockstep_ops.switch.switch_clusters import StepFailed
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_plan import begin
from lockstep_ops.switch.switch_steps import DONE, RUNNING, Step, Verb, began_at, planned_steps, step_states
from lockstep_ops.switch.switcher import Switcher
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.rows.state_rows import Switch
from tests.support.shared_topic import SharedTopic

BEGAN_MS, EACH_MS = 1_000, 70
"""When the command has begun, and what passes between two looks at the clock."""


class Scene:
    """A switch whose steps do nothing, and a clock that goes on with each look."""

    def __init__(self, settings: FlowSettings, patch: pytest.MonkeyPatch, verb: Verb) -> None:
        clock = itertools.count(BEGAN_MS + EACH_MS, EACH_MS)
        for module in (switch_plan, switcher):
            patch.setattr(module, "now_ms", lambda: next(clock))
        self.topic = SharedTopic(settings, patch)
        self.log: SwitchLog = self.topic.log()
        self.switcher = Switcher(self.log, None, WorkProgress(""), lambda _: None, 1.0)
        patch.setattr(self.switcher, "_perform", self._perform)
        self.fails: set[Step] = set()
        steps = planned_steps(verb, hooks=set(), has_opposite=True, drill=False)
        self.row = Switch(id="x", verb=str(verb), steps=tuple((str(step), "waiting", 0, 0, "") for step in steps))

    async def _perform(self, step: Step, row: Switch) -> tuple[str, Switch]:
        if step in self.fails:
            raise StepFailed("not now")
        return "", row

    async def run(self) -> Switch:
        (check, *others) = self.row.steps
        planned = Switch(id="x", verb=self.row.verb, steps=((check[0], DONE, 1, 2, ""), *others))
        return await self.switcher.run(await begin(self.log, None, began_at(planned, BEGAN_MS)))


def seconds_in_steps(row: Switch) -> Sequence[int]:
    return [step.ended_ms - step.began_ms for step in step_states(row)]


@pytest.mark.parametrize("verb", list(Verb))
async def test_steps_of_a_switch_have_all_of_its_time(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    scene = Scene(settings(), monkeypatch, verb)
    row = await scene.run()
    assert (row.phase, row.began_ms) == ("done", BEGAN_MS)
    assert {state.state for state in step_states(row)} == {DONE}
    assert sum(seconds_in_steps(row)) >= row.ended_ms - row.began_ms - EACH_MS, "one write, and no step"
    for before, after in itertools.pairwise(step_states(row)[1:]):
        assert after.began_ms == before.ended_ms


async def test_step_is_written_as_running_before_it_does_anything(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any command goes on where this one is killed."""
    scene = Scene(settings(), monkeypatch, Verb.SWITCHOVER)
    written: list[tuple[Step, str]] = []

    async def perform(step: Step, row: Switch) -> tuple[str, Switch]:
        row_before: Any = scene.topic.log(compacted=True).switch
        written.append((step, next(state.state for state in step_states(row_before) if state.step is step)))
        return "", row

    monkeypatch.setattr(scene.switcher, "_perform", perform)
    await scene.run()
    assert written == [(state.step, RUNNING) for state in step_states(scene.row)[1:]]


async def test_switch_that_goes_on_has_the_step_that_failed_again(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(settings(), monkeypatch, Verb.SWITCHOVER)
    scene.fails = {Step.GROUPS}
    with pytest.raises(StepFailed):
        await scene.run()
    scene.fails = set()
    row_before: Any = scene.log.switch
    row = await scene.switcher.run(row_before)
    assert row.phase == "done"
    assert all(seconds >= 0 for seconds in seconds_in_steps(row))


def test_switch_starts_without_what_only_other_commands_need() -> None:
    """Loading a module takes a share of a second on a slow core, and applications wait."""
    others = (
        "lockstep_ops.takeover.takeover_io",
        "lockstep_ops.takeover.handback",
        "lockstep_state.codecs.mm2_codec",
        "prometheus_client",
    )
    code = (
        f"import sys, lockstep_cli.commands.switch_session; print([name for name in {others} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == "[]"
