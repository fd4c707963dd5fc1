"""The source dies together with what copies: nothing that a failover waits for may need the source."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker, two_brokers
from tests.support.eventually import wait_until
from tests.support.failover_kills import KILLS, unsaid_loss
from tests.support.switch_scene import WITHIN, SwitchScene


@pytest.fixture
def brokers() -> Iterator[tuple[Broker, Broker]]:
    with two_brokers() as brokers:
        yield brokers


@pytest.mark.parametrize(
    ("killed", "identity"),
    [
        ("slots", False),
        ("data-plane", True),
        pytest.param("jvm", False, marks=pytest.mark.long),
        pytest.param("control services", True, marks=pytest.mark.long),
        pytest.param("everything", False, marks=pytest.mark.long),
        pytest.param("everything", True, marks=pytest.mark.long),
    ],
)
def test_failover_after_a_kill_without_the_source_ends(
    tmp_path: Path, brokers: tuple[Broker, Broker], killed: str, identity: bool
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity, hooks=False)
    with scene.running():
        scene.app.go_on()
        a.kill()
        KILLS[killed](scene)
        scene.app.abandon()
        done = scene.switch("failover", "--allow-data-loss", "100000", "--timeout", "60")
        assert done["phase"] == "done", done
        wait_until(scene.everybody_released, within=WITHIN, every=0.5, what="slots are released")
        a.start()
        assert unsaid_loss(scene, done) == 0, done
