"""A switch under kills: of its own command after each step, of each service, of a whole cluster. It goes on, and no
record is lost, doubled, skipped or read again."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from lockstep_ops.switch.switch_steps import DONE, RUNNING, Step, step_states
from tests.support.broker import two_brokers
from tests.support.eventually import wait_until
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchScene]:
    with two_brokers() as (a, b), SwitchScene(tmp_path_factory.mktemp("switch"), a, b).running() as scene:
        yield scene


@pytest.fixture
def scene(moving: SwitchScene) -> Iterator[SwitchScene]:
    """The application works on A, and nothing was read twice; afterwards it is brought back there."""
    moving.calls.clear()
    yield moving
    moving.app.go_on()
    if moving.is_on(moving.there.target):
        moving.wait_followed(moving.flow_back)
        assert moving.switch("failback", "--allow-soon")["phase"] == "done"
        moving.wait_followed(moving.flow_there)
    assert moving.app.read_twice == {}


class Begun(subprocess.Popen[str]):
    """A command that runs. `after`: the switch before it, whose row does not count."""

    def __init__(self, scene: SwitchScene, verb: str, *arguments: str) -> None:
        last = scene.last()
        self.after = "" if last is None or "--continue" in arguments else last.id
        super().__init__(scene.command(verb, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_step(scene: SwitchScene, command: Begun, step: Step, *states: str) -> None:
    """Returns once a step is in one of these states."""

    def reached() -> bool:
        row = scene.last()
        if row is None or row.id == command.after:
            return False
        return any(state.step is step and state.state in states for state in step_states(row))

    wait_until(reached, within=WITHIN, every=0.02, what=f"step {step} is {' or '.join(states)}")


def killed_in(scene: SwitchScene, command: Begun, step: Step, *states: str) -> None:
    """Kill the command once a step is in one of these states."""
    with command:
        wait_for_step(scene, command, step, *states)
        command.kill()


def nothing_is_lost(scene: SwitchScene) -> None:
    """What was written is read, each record once."""
    written = set(scene.app.written)
    wait_until(lambda: written <= scene.app.read.keys(), within=WITHIN, every=0.1, what="what was written is read")
    assert scene.app.read_twice == {}


def test_command_killed_after_each_step_goes_on(scene: SwitchScene) -> None:
    steps = (Step.BEFORE, Step.FENCE, Step.ENDS, Step.DRAIN, Step.GROUPS, Step.STOP, Step.REVERSE, Step.REDIRECT)
    scene.app.go_on()
    arguments: tuple[str, ...] = ()
    for step in steps:
        killed_in(scene, Begun(scene, "switchover", *arguments, *([] if arguments else ["--allow-soon"])), step, DONE)
        arguments = ("--continue",)
    done = scene.continue_last("switchover")  # which may have ended already
    assert (done["phase"], done["lost"], done["late"]) == ("done", 0, 0), done
    scene.app.go_on()
    nothing_is_lost(scene)


@pytest.mark.parametrize("step", [Step.FENCE, Step.GROUPS, Step.STOP])
def test_command_killed_within_a_step_can_be_aborted(scene: SwitchScene, step: Step) -> None:
    scene.app.go_on()
    killed_in(scene, Begun(scene, "switchover", "--allow-soon"), step, RUNNING, DONE)
    if "redirect" in scene.hooks():
        assert scene.continue_last("switchover")["phase"] == "done", "it was too late"
    else:
        aborted = scene.switch("switchover", "--abort")
        assert aborted["phase"] == "aborted", aborted
        assert scene.hooks()[-1] == "after"
        scene.wait_followed(scene.flow_there)
    scene.app.go_on()
    nothing_is_lost(scene)


@pytest.mark.parametrize(
    ("step", "service"), [(Step.DRAIN, "data-plane"), (Step.GROUPS, "checkpoint"), (Step.STOP, "heartbeat")]
)
def test_service_killed_in_the_middle_of_a_switch_loses_nothing(scene: SwitchScene, step: Step, service: str) -> None:
    scene.app.go_on()
    command = Begun(scene, "switchover", "--allow-soon", "--timeout", "60")
    wait_for_step(scene, command, step, RUNNING, DONE)
    os.kill(scene.run.service_pid(service), signal.SIGKILL)
    said, _ = command.communicate(timeout=200)
    if command.returncode:
        assert scene.continue_last("switchover")["phase"] == "done", said
    scene.app.go_on()
    nothing_is_lost(scene)


def test_target_unreachable_in_the_middle_of_a_switch_loses_nothing(scene: SwitchScene) -> None:
    scene.app.go_on()
    command = Begun(scene, "switchover", "--allow-soon", "--timeout", "60")
    wait_for_step(scene, command, Step.ENDS, RUNNING, DONE)
    scene.b.suspend()
    time.sleep(15)
    scene.b.resume()
    said, _ = command.communicate(timeout=200)
    if command.returncode:
        assert scene.continue_last("switchover")["phase"] == "done", said
    scene.app.go_on()
    nothing_is_lost(scene)


def test_second_command_continues_a_switch_and_the_first_one_ends(scene: SwitchScene) -> None:
    scene.app.go_on()
    first = Begun(scene, "switchover", "--allow-soon")
    wait_for_step(scene, first, Step.ENDS, RUNNING, DONE)
    second = scene.continue_last("switchover")
    said, _ = first.communicate(timeout=60)
    assert second["phase"] == "done"
    assert first.returncode == 1, said
    assert "another command continues this switchover" in said
    scene.app.go_on()
    nothing_is_lost(scene)
