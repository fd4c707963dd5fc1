"""The source dies together with what copies: nothing that a failover waits for may need the source."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.broker import Broker, two_brokers
from tests.support.clusters import read_topic
from tests.support.eventually import wait_until
from tests.support.runs import is_alive
from tests.support.switch_scene import WITHIN, SwitchScene


@pytest.fixture
def brokers() -> Iterator[tuple[Broker, Broker]]:
    with two_brokers() as brokers:
        yield brokers


def kill_slots(scene: SwitchScene) -> None:
    """Every Python worker of Spark, as the kernel does when memory is short."""
    driver = psutil.Process(scene.run.service_pid("data-plane"))
    every = [one for one in driver.children(recursive=True) if is_alive(one)]
    workers = [one for one in every if "pyspark" in " ".join(one.cmdline()[:4])]
    assert workers, "no slot runs"
    for worker in workers:
        with suppress(psutil.NoSuchProcess):  # it ended with its daemon
            worker.kill()


def kill_jvm(scene: SwitchScene) -> None:
    driver = psutil.Process(scene.run.service_pid("data-plane"))
    (jvm,) = [one for one in driver.children(recursive=True) if one.name() == "java"]
    jvm.kill()


def kill_data_plane(scene: SwitchScene) -> None:
    os.kill(scene.run.service_pid("data-plane"), signal.SIGKILL)


def restart_everything(scene: SwitchScene) -> None:
    scene.restart()


KILLS: dict[str, Callable[[SwitchScene], None]] = {
    "slots": kill_slots,
    "jvm": kill_jvm,
    "data-plane": kill_data_plane,
    "everything": restart_everything,
}


def lost_records(scene: SwitchScene) -> int:
    """Acknowledged on A, and in no topic of B."""
    copies = {
        (record.value or b"").decode()
        for topic in scene.topics
        for record in read_topic(scene.b.bootstrap, scene.copy_of(topic))
    }
    return len(set(scene.app.written) - copies)


@pytest.mark.parametrize(
    ("kill", "identity"),
    [
        ("slots", False),
        pytest.param("jvm", True, marks=pytest.mark.long),
        pytest.param("data-plane", True, marks=pytest.mark.long),
        pytest.param("everything", False, marks=pytest.mark.long),
    ],
)
def test_failover_after_a_kill_without_the_source_ends(
    tmp_path: Path, brokers: tuple[Broker, Broker], kill: str, identity: bool
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, identity=identity, hooks=False)
    with scene.running():
        scene.app.go_on()
        a.kill()
        KILLS[kill](scene)
        scene.app.abandon()
        done = scene.switch("failover", "--allow-data-loss", "100000", "--timeout", "60")
        assert done["phase"] == "done", done
        lost = lost_records(scene)
        steps = {one["step"]: one["seconds"] for one in done["steps"]}
        sys.stderr.write(f"\n{kill}: {done['seconds']} s {steps}, lost {lost}, said {done['lost']}\n")
        assert lost <= done["lost"], (lost, done)
        wait_until(lambda: scene.everybody_released(), within=WITHIN, every=0.5, what="slots are released")
