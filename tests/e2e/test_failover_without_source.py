"""The source dies together with what copies: nothing that a failover waits for may need the source."""

from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.eventually import wait_until
from tests.support.failover_kills import (
    KILLS,
    LOSES,
    doubled_records,
    missing_records,
    records_beyond_rows,
    unsaid_loss,
    was_killed,
)
from tests.support.switch_scene import WITHIN, SwitchScene

KILLS_AT_MOST = 5
"""A kill that comes just behind the rows of a second leaves nothing beyond them."""


@pytest.mark.parametrize(
    ("frozen", "killed", "identity"),
    [
        (False, "slots", False),
        pytest.param(False, "daemon of frozen slots", False, marks=pytest.mark.long),
        pytest.param(False, "daemon of frozen slots", True, marks=pytest.mark.long),
        pytest.param(False, "frozen jvm", False, marks=pytest.mark.long),
        pytest.param(False, "data-plane", True, marks=pytest.mark.long),
        pytest.param(False, "jvm", False, marks=pytest.mark.long),
        pytest.param(False, "control services", True, marks=pytest.mark.long),
        pytest.param(False, "everything", False, marks=pytest.mark.long),
        pytest.param(False, "everything", True, marks=pytest.mark.long),
        pytest.param(True, "nothing", True, marks=pytest.mark.long),
        pytest.param(True, "control services", False, marks=pytest.mark.long),
        pytest.param(True, "data-plane", True, marks=pytest.mark.long),
    ],
)
def test_failover_after_a_kill_without_the_source_ends(
    tmp_path: Path, brokers: tuple[Broker, Broker], frozen: bool, killed: str, identity: bool
) -> None:
    """Where the source is frozen, its connections are accepted by the kernel, and nobody answers on them. Afterwards
    the source is back."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity, hooks=False)
    with scene.running():
        scene.app.go_on()
        (a.suspend if frozen else a.kill)()
        KILLS[killed](scene)
        scene.app.abandon()
        done = scene.switch("failover", *LOSES)
        assert done["phase"] == "done", done
        scene.wait_released()
        (a.resume if frozen else a.start)()
        assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done


@pytest.mark.long
@pytest.mark.parametrize("identity", [False, True], ids=["prefixed", "identity"])
def test_records_beyond_a_row_are_exact_once_the_source_is_back(
    tmp_path: Path, brokers: tuple[Broker, Broker], identity: bool
) -> None:
    """Slots are killed while they copy, so the target has records that no row names."""
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity, hooks=False)
    with scene.running():
        scene.app.go_on()
        for _ in range(KILLS_AT_MOST):
            wait_until(lambda: was_killed("slots", scene), within=WITHIN, every=0.1, what="slots run")
            a.suspend()
            if records_beyond_rows(scene):
                break
            a.resume()  # the row came just before the kill
        scene.app.abandon()
        done = scene.switch("failover", *LOSES)
        assert done["phase"] == "done", done
        scene.wait_released()
        rows = [row for topic in scene.topics for row in scene.flow_there.progress(topic).values()]
        assert sum(row.beyond for row in rows) > 0, rows
        a.resume()
        assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done
        # The group may have read more on A after its position was read last: then it stays there.
        back = scene.switch("failback", "--allow-soon", "--allow-left-groups", "--diverged", "copy", "--timeout", "120")
        assert back["phase"] == "done", back
        wait_until(lambda: not missing_records(scene), within=WITHIN, every=0.5, what="A's records are on B")
        assert doubled_records(scene) == 0, back
