"""A switch under way whose source has died: the step says the way out, and that way asks the source nothing."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_ops.switch import switcher
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.switch_clusters import SourceState, StepFailed
from lockstep_ops.switch.switch_options import Allowance
from lockstep_ops.switch.switch_steps import DONE, FAILED, LEFT, UNDONE, Step, Verb, planned_steps, step_states
from lockstep_ops.switch.switcher import Switcher
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.commands.command_vocabulary import RESUME, Scope
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import MirroredTopic, Row, Switch
from tests.support.shared_topic import SharedTopic

DEAD = ClusterUnreachable("A", "a:1", "A cannot be reached")
GONE = Allowance.SOURCE_GONE
FORWARD = tuple(map(str, planned_steps(Verb.SWITCHOVER, hooks=(), has_opposite=True, drill=False)))


class Scene:
    """A switch whose source is dead: the target answers, and every request to the source fails."""

    def __init__(self, settings: FlowSettings, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.log = SharedTopic(settings, patch).log()
        patch.setattr(switcher, "SwitchClusters", lambda *_: _Dead())
        self.switcher = Switcher(self.log, OppositeFlow(settings), WorkProgress(""), lambda _: None, 1.0)
        patch.setattr(self.switcher, "_clusters", self)
        patch.setattr(self.switcher._actions, "clusters", self)

    async def command(self, verb: str, *_: object) -> None:
        self.asked.append(verb)

    async def command_each(self, verb: str, _scopes: Iterable[Scope]) -> None:
        self.asked.append(verb)

    async def still_copies(self, _rows: Mapping[str, Row]) -> Reason:
        return NO_REASON

    async def target_ends(self, _topics: Iterable[MirroredTopic]) -> dict[TopicPartition, int]:
        return {}

    async def source_error(self) -> ClusterError | None:
        return DEAD

    async def source_state(self, _topics: Iterable[MirroredTopic]) -> SourceState:
        return SourceState(DEAD)

    def row(self, step: Step, *allowed: Allowance, opposite_was: str = "stopped") -> Switch:
        """Return a switchover whose steps before this one are done."""
        done = FORWARD[: FORWARD.index(str(step))]
        states = tuple((name, DONE if name in done else "waiting", 0, 0, "") for name in FORWARD)
        return Switch(id="x", verb="switchover", steps=states, allowed=tuple(allowed), opposite_was=opposite_was)

    def state(self, step: Step) -> tuple[str, str]:
        row = self.log.switch
        assert row is not None
        return next((state.state, state.text) for state in step_states(row) if state.step is step)


class _Dead:
    """The services of the opposite flow, whose commands are on the source."""

    async def command_each(self, _verb: str, _scopes: Iterable[Scope]) -> None:
        raise StepFailed("cluster A cannot be reached")

    async def command(self, _verb: str, *_: object) -> None:
        raise StepFailed("cluster A cannot be reached")


@pytest.fixture
def scene(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(settings(), monkeypatch)


async def test_step_that_needs_the_source_names_the_failover(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_row: Switch) -> tuple[str, int]:
        raise DEAD

    monkeypatch.setattr(scene.switcher._actions, "read_ends", fails)
    with pytest.raises(StepFailed, match=r"If A is lost, say --abort, and then lockstep failover --flow 'A->B'$"):
        await scene.switcher.run(scene.row(Step.ENDS))
    assert scene.state(Step.ENDS)[0] == FAILED


@pytest.mark.parametrize("step", [Step.STOP, Step.REVERSE])
async def test_last_steps_wait_for_the_permission_to_end_without_the_source(scene: Scene, step: Step) -> None:
    with pytest.raises(StepFailed, match=f"--continue {GONE.option}"):
        await scene.switcher.run(scene.row(step, Allowance.NOT_READY))
    assert scene.state(step)[0] == FAILED


async def test_last_steps_end_without_the_source_where_that_is_allowed(scene: Scene) -> None:
    row = await scene.switcher.run(scene.row(Step.STOP, GONE))
    assert (row.phase, row.late_unknown, row.late) == ("done", True, 0)
    assert "how many records came to A after the fence is not known" in scene.state(Step.STOP)[1]
    assert "was not started: cluster A cannot be reached" in scene.state(Step.REVERSE)[1]


async def test_drill_of_a_dead_source_counts_no_late_records(scene: Scene) -> None:
    text, late, unknown = await scene.switcher._actions.stop(
        Switch(id="x", verb="switchover", drill=True), source=True, opposite=None
    )
    assert (text, late, unknown) == ("stopped", 0, False)


async def test_abort_leaves_an_opposite_flow_that_nobody_reaches_only_if_allowed(scene: Scene) -> None:
    steps = tuple((name, DONE, 0, 0, "") for name in FORWARD)
    row = await scene.log.write(Switch(id="x", verb="switchover", opposite_was="stopped", steps=steps))
    with pytest.raises(StepFailed, match=f"Say --abort {GONE.option} to leave the opposite flow as it is"):
        await scene.switcher.abort(row)
    assert scene.asked == [], "what was started last is taken back first"
    aborted = await scene.switcher.abort(replace(row, allowed=(str(GONE),)))
    assert aborted.phase == "aborted"
    assert (scene.state(Step.REVERSE)[0], scene.state(Step.STOP)[0]) == (LEFT, UNDONE)
    assert scene.asked == [RESUME]
