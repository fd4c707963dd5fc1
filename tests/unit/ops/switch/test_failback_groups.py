"""A failback judges the groups again when the way back has caught up: before, its rows may be of another time."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch import group_actions
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.group_positions import GroupVerdict, Prospect
from lockstep_ops.switch.switch_clusters import SourceState, StepFailed
from lockstep_ops.switch.switch_options import Allowance
from lockstep_ops.switch.switch_steps import FAILED, Step, Verb, planned_steps, step_states
from lockstep_ops.switch.switcher import Switcher
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.rows.state_rows import MirroredTopic, Switch
from tests.support.shared_topic import SharedTopic

STUCK = GroupVerdict("g", "contested", "another flow is before its place")
READS, SETTLES = (
    GroupVerdict("g", "reading", "", prospect=Prospect.CONSUMERS),
    GroupVerdict("g", "waiting", "", prospect=Prospect.SERVICES),
)
SKIPS, FITS = GroupVerdict("g", "skips", "is ahead"), GroupVerdict("g", "exact")


class Scene:
    """A failback whose hooks and copy do nothing. `verdicts`: what is found of the group; the last one stays."""

    def __init__(self, settings: FlowSettings, patch: pytest.MonkeyPatch, verdicts: Sequence[GroupVerdict]) -> None:
        self.done: list[str] = []
        self._verdicts = list(verdicts)
        self._log = SharedTopic(settings, patch).log()
        self._switcher = Switcher(self._log, OppositeFlow(settings), WorkProgress(""), lambda _: None, 1.0)
        patch.setattr(self._switcher, "_clusters", self)
        patch.setattr(self._switcher._actions, "catch_up", self._catch_up)
        patch.setattr(self._switcher._groups, "_look_at_groups", self._look_at_groups)
        patch.setattr(type(self._switcher._groups), "_moves_groups", True)
        patch.setattr(self._switcher, "_hook", self._hook)
        patch.setattr(group_actions, "CHECK_AGAIN_S", 0.0)
        patch.setattr(group_actions, "time", SimpleNamespace(monotonic=itertools.count(0.0, 1.0).__next__))

    async def command_each(self, verb: str, _scopes: Iterable[Scope]) -> None:
        self.done.append(verb)

    async def source_state(self, _topics: Iterable[MirroredTopic]) -> SourceState:
        return SourceState()

    async def _catch_up(self) -> str:
        self.done.append("caught up")
        return ""

    async def _look_at_groups(self, *_given: object, source: bool) -> tuple[list[Any], list[GroupVerdict], int]:
        assert source
        self.done.append("look")
        return [], [self._verdicts.pop(0) if len(self._verdicts) > 1 else self._verdicts[0]], 0

    async def _hook(self, step: Step, _row: Switch, _result: str) -> str:
        self.done.append(f"hook {step}")
        raise StepFailed("far enough")

    async def come_back(self, *allowed: Allowance) -> Switch:
        """Run from step `return` on, as far as the first hook. Returns the last row."""
        steps = planned_steps(Verb.FAILBACK, hooks={Step.FENCE}, has_opposite=True, drill=False)
        states = tuple((str(step), "waiting", 0, 0, "") for step in steps[steps.index(Step.RETURN) :])
        row = Switch(id="x", verb="failback", steps=states, allowed=tuple(allowed), opposite_was="running")
        with pytest.raises(StepFailed):
            await self._switcher.run(row)
        last = self._log.switch
        assert last is not None
        return last


MakeScene = Callable[..., Scene]


@pytest.fixture
def scene(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> MakeScene:
    return lambda *verdicts: Scene(settings(), monkeypatch, verdicts)


async def test_failback_with_a_group_that_cannot_move_fences_nobody(scene: MakeScene) -> None:
    failback = scene(STUCK)
    row = await failback.come_back()
    (returned, *others) = step_states(row)
    assert (returned.step, returned.state) == (Step.RETURN, FAILED)
    assert "g (contested): another flow is before its place" in returned.text
    assert {state.state for state in others} == {"waiting"}
    assert failback.done[:2] == ["resume", "caught up"], "it is judged by what was copied back"
    assert "hook fence" not in failback.done


@pytest.mark.parametrize("verdict", [FITS, READS, SETTLES, SKIPS])
async def test_failback_with_a_group_that_a_step_can_move_goes_on(scene: MakeScene, verdict: GroupVerdict) -> None:
    failback = scene(verdict)
    await failback.come_back()
    assert failback.done == ["resume", "caught up", "look", "hook fence"]


async def test_failback_looks_again_at_a_group_that_was_stuck(scene: MakeScene) -> None:
    """What was read may be of the moment before."""
    failback = scene(STUCK, FITS)
    await failback.come_back()
    assert failback.done == ["resume", "caught up", "look", "look", "hook fence"]


async def test_failback_that_may_leave_groups_does_not_look_at_them(scene: MakeScene) -> None:
    failback = scene(STUCK)
    await failback.come_back(Allowance.LEFT_GROUPS)
    assert failback.done == ["resume", "caught up", "hook fence"]
