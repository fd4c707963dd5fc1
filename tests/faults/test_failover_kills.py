"""A failover whose source is gone, while each part is killed at each step, the command too. It goes on and ends, and
nothing more is lost than it says."""

from pathlib import Path

import pytest

from lockstep_ops.switch.switch_steps import DONE, RUNNING, Step, step_states
from tests.faults.test_switch_kills import Begun
from tests.support.broker import Broker
from tests.support.eventually import wait_until
from tests.support.failover_kills import KILLS, LOSES, doubled_records, unsaid_loss
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = pytest.mark.long

COMMAND = "command"
SOURCE = "source"


def reached(scene: SwitchScene, step: Step) -> bool:
    """Whether the step of the present switch has begun."""
    row = scene.last()
    states = () if row is None else step_states(row)
    return any(state.step is step and state.state in (RUNNING, DONE) for state in states)


@pytest.mark.parametrize(
    ("step", "killed", "identity"),
    [
        pytest.param(step, killed, identity, id=f"{step}-{killed}-{'identity' if identity else 'prefixed'}")
        for step, killed, identity in (
            (Step.SETTLE, COMMAND, True),
            (Step.SETTLE, "slots", False),
            (Step.SETTLE, "jvm", False),
            (Step.SETTLE, "control services", True),
            (Step.SETTLE, "everything", False),
            (Step.GROUPS, COMMAND, True),
            (Step.GROUPS, "data-plane", True),
            (Step.GROUPS, "control services", False),
            (Step.GROUPS, SOURCE, False),
            (Step.STOP, COMMAND, False),
            (Step.STOP, "control services", False),
            (Step.STOP, "everything", True),
        )
    ],
)
def test_failover_with_a_kill_in_a_step_ends_and_hides_no_loss(
    tmp_path: Path, brokers: tuple[Broker, Broker], step: Step, killed: str, identity: bool
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity, hooks=False)
    with scene.running():
        scene.app.go_on()
        if killed != SOURCE:
            a.kill()
            scene.app.abandon()
        # Of a source that answers a failover is refused, unless that is allowed.
        allowed = ("--allow-not-ready",) if killed == SOURCE else ()
        with Begun(scene, "failover", *LOSES, *allowed) as command:
            wait_until(lambda: reached(scene, step), within=WITHIN, every=0.02, what=f"step {step} has begun")
            if killed == COMMAND:
                command.kill()
            elif killed == SOURCE:
                a.kill()
                scene.app.abandon()
            else:
                KILLS[killed](scene)
            said, _ = command.communicate(timeout=200)
        done = scene.continue_last("failover", *LOSES)
        assert done["phase"] == "done", said
        scene.wait_released()
        a.start()
        assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done
