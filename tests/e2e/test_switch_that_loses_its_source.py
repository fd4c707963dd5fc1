"""The source dies in the middle of a planned switch: the command names the way out, and that way needs no source."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lockstep_ops.switch.switch_steps import DONE, FAILED, RUNNING, Step, step_states
from tests.faults.test_switch_kills import Begun, wait_for_step
from tests.support.broker import Broker
from tests.support.clusters import Record, committed_offset, produce
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.failover_kills import KILLS, LOSES, doubled_records, missing_records, unsaid_loss
from tests.support.mirror import MirroredFlow
from tests.support.switch_scene import PARTITIONS, WITHIN, SwitchScene

pytestmark = pytest.mark.long

GONE = "--allow-source-gone"


def loses_source_at(scene: SwitchScene, step: Step, killed: str = "nothing") -> str:
    """Begin a switchover, kill A and what `KILLS` names once a step has begun, and return what the command said."""
    with Begun(scene, "switchover", "--timeout", "30") as command:
        wait_for_step(scene, command, step, RUNNING, DONE)
        os.kill(command.pid, signal.SIGSTOP)  # the step waits for its broker, not the broker for the step
        scene.a.kill()
        KILLS[killed](scene)
        os.kill(command.pid, signal.SIGCONT)
        said, _ = command.communicate(timeout=200)
    assert command.returncode == 1, said
    assert "Traceback" not in said, said
    return said


def require_whole(scene: SwitchScene, done: Mapping[str, Any]) -> None:
    """Start A again, and check that B has each of its records once.

    A reader of its own checks that the group on B stands where it stood on A: behind everything.
    """
    scene.wait_released()
    scene.a.start()
    assert (missing_records(scene), doubled_records(scene)) == (0, 0), done
    for topic in scene.topics:
        for number in range(PARTITIONS):
            there = committed_offset(scene.a.bootstrap, scene.app.group, topic, number)
            on_b = committed_offset(scene.b.bootstrap, scene.app.group, scene.copy_of(topic), number)
            assert on_b == there, (topic, number, there, on_b)


def state_of(evidence: Mapping[str, Any], step: Step) -> str:
    return next(str(done["state"]) for done in evidence["steps"] if done["step"] == step)


@pytest.mark.parametrize(
    ("step", "killed"),
    [(Step.ENDS, "control services"), (Step.ENDS, "slots"), (Step.GROUPS, "nothing"), (Step.GROUPS, "data-plane")],
)
def test_switchover_without_its_source_is_taken_back_and_becomes_a_failover(
    tmp_path: Path, brokers: tuple[Broker, Broker], step: Step, killed: str
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, hooks=False)
    with scene.running():
        scene.app.go_on()
        scene.app.stop()
        said = loses_source_at(scene, step, killed)
        row = scene.last()
        assert row is not None
        if row.phase != "done":  # what it had asked of A was answered before A died
            if next(state for state in step_states(row) if state.state == FAILED).step not in (Step.STOP, Step.REVERSE):
                assert f"say --abort, and then lockstep failover --flow '{scene.there}'" in said
            assert scene.switch("switchover", "--abort")["phase"] == "aborted"
            done = scene.switch("failover", *LOSES)
            assert done["phase"] == "done", done
            scene.wait_released()
            a.start()
            assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done


@pytest.mark.parametrize("identity", [False, True], ids=["prefixed", "identity"])
def test_switchover_whose_source_dies_while_the_flow_stops_ends_without_it(
    tmp_path: Path, brokers: tuple[Broker, Broker], identity: bool
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, hooks=False, identity=identity)
    with scene.running():
        scene.app.go_on()
        scene.app.stop()
        said = loses_source_at(scene, Step.STOP)
        assert f"If {scene.there.source} is lost, say --continue {GONE}" in said, said
        again = scene.switch("switchover", "--continue", "--timeout", "20", code=1)
        assert state_of(again, Step.STOP) == FAILED, "nobody has allowed it"
        done = scene.switch("switchover", "--continue", GONE, "--timeout", "60", code=1)
        assert (done["phase"], done["lost"], done["late"]) == ("done", 0, None), done
        require_whole(scene, done)


def test_switchover_whose_source_dies_before_the_opposite_flow_starts_ends_without_it(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    """The opposite flow was stopped, as it is after each failback. Its commands are on A."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, hooks=False)
    with scene.running():
        lockstep("stop", scene.file, "--flow", str(scene.back))
        scene.app.go_on()
        scene.app.stop()
        loses_source_at(scene, Step.STOP)
        done = scene.switch("switchover", "--continue", GONE, "--timeout", "60", code=1)
        assert (done["phase"], done["lost"], done["late"]) == ("done", 0, None), done
        assert "was not started" in str(done["steps"]), done
        require_whole(scene, done)
        goes_back(scene)


def goes_back(scene: SwitchScene) -> None:
    """Resume the opposite flow, and wait until a record of B is on A."""
    wait_until(lambda: resumed(scene), within=WITHIN, every=2.0, what=f"{scene.back} is resumed")
    topic = scene.topics[0]
    produce(scene.b.bootstrap, topic, [Record(value=b"written on B")])
    back = MirroredFlow(scene.back, scene.b.bootstrap, scene.a.bootstrap)
    wait_until(
        lambda: any(row.upstream >= 0 for row in back.progress(topic).values()),
        within=WITHIN,
        every=0.5,
        what="the opposite flow copies",
    )


def resumed(scene: SwitchScene) -> bool:
    command = [sys.executable, "-m", "lockstep_cli", "resume", str(scene.file), "--flow", str(scene.back)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
