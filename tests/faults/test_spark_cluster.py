"""Slots on a standalone Spark cluster whose machines have a bare Python: whatever is lost, the copy goes on elsewhere.

Nothing of ours is on the workers but the packed environment that Spark unpacks there. One deployment is used up by the
whole file; counted is by record numbers, each exactly once and in order.
"""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lockstep_data_plane.pack import pack
from tests.conftest import Pair
from tests.faults.counting import count
from tests.faults.numbered import Writer, read_numbers
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.java import find_java
from tests.support.mirror import Mirror
from tests.support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARK = f"k{uuid.uuid4().hex[:6]}"
PARTITIONS = 4
RATE = 2_000
WITHIN = 150.0  # seconds; usual is 10, but the cores may be shared


@dataclass
class There:
    """A mirror of two slots, and the cluster on which they run."""

    cluster: SparkCluster
    mirror: Mirror
    ports: tuple[int, int]

    def slots(self) -> list[psutil.Process]:
        return self.cluster.slots(*self.ports)

    def wait_slots(self) -> list[psutil.Process]:
        """Both, once both copy."""
        return wait_until(lambda: len(found := self.slots()) == 2 and found, within=WITHIN, what="two slots copy")

    def grows(self, topic: str) -> None:
        """Returns when every partition of the copy has grown from now on."""
        flow = self.mirror.flow
        flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
        before = end_offsets(flow.target, flow.remote(topic))

        def grown() -> bool:
            now = end_offsets(flow.target, flow.remote(topic))
            return all(now[partition] > end for partition, end in before.items())

        wait_until(grown, within=WITHIN, every=0.2, what=f"all of {topic} goes on")

    def check(self, topic: str) -> None:
        """All of it is there once, in order, and nobody gave up on the way."""
        flow = self.mirror.flow
        wanted = sum(end_offsets(flow.source, topic).values())
        copied = flow.remote(topic)
        wait_until(lambda: sum(end_offsets(flow.target, copied).values()) >= wanted, within=WITHIN, what="caught up")
        flow.wait_written_down(topic, within=WITHIN)
        counted = count(read_numbers(flow.source, topic), read_numbers(flow.target, copied))
        assert counted.equal, counted
        assert counted.records > 1_000
        assert flow.events("PartitionHalted", topic) == []


def bare_python() -> str:
    """An interpreter that has none of our packages."""
    bare = str(getattr(sys, "_base_executable", ""))
    ran = subprocess.run([bare, "-c", "import lockstep_data_plane"], capture_output=True, check=False, cwd="/")
    if ran.returncode == 0:
        pytest.skip(f"{bare} has our packages: the tests do not run in a virtual environment")
    return bare


@pytest.fixture(scope="module")
def there(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    folder = tmp_path_factory.mktemp("cluster")
    archive = folder / "packed.tar.gz"
    assert pack(archive) > 1_000
    theirs = {
        "PATH": os.defpath,
        "LOCKSTEP_PYTHON": bare_python(),
        "JAVA_HOME": str(find_java().resolve().parent.parent),
        "PYTHONPATH": "",
    }
    lines = (
        f"lockstep.spark.conf.spark.archives = {archive}#environment",
        "lockstep.spark.conf.spark.driver.host = 127.0.0.1",
        "lockstep.spark.conf.spark.driver.bindAddress = 127.0.0.1",
    )
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with SparkCluster(environment=theirs) as cluster:
        master = f"lockstep.spark.master = {cluster.master}"
        with Mirror.one_flow(folder, MARK, a, b, master, cluster.secret_line, *lines, slots=2) as mirror:
            yield There(cluster, mirror, (pair.a.port, pair.b.port))


@pytest.fixture
def topic(there: There) -> str:
    """A new one; the deployment is whole again."""
    for worker in there.cluster.workers:
        if not worker.running:
            worker.start()
    if not there.mirror.data_plane.running:
        there.mirror.data_plane.start()
    return create_topic(there.mirror.flow.source, unique_name(MARK), partitions=PARTITIONS)


def writer(there: There, topic: str, folder: Path) -> Writer:
    return Writer(there.mirror.flow.source, topic, partitions=PARTITIONS, rate=RATE, log=folder / "writer.log")


def wait_gone(*processes: psutil.Process) -> None:
    _, running = psutil.wait_procs(list(processes), timeout=WITHIN)
    assert not running, "they have ended"


def test_the_packed_environment_is_all_that_slots_need(there: There, topic: str, tmp_path: Path) -> None:
    with writer(there, topic, tmp_path):
        there.grows(topic)
        for slot in there.wait_slots():
            assert "lockstep_data_plane.spark.pyspark_daemon" in slot.cmdline()
            assert any(path.endswith("/environment/lib") for path in slot.environ()["PYTHONPATH"].split(":"))
    there.check(topic)
    below = [each for each in there.mirror.processes()[1:] if each.name() != "java"]
    below = [each for each in below if each.status() != psutil.STATUS_ZOMBIE]  # what Spark's start scripts leave
    assert below == [], "nothing is copied beside the driver"


def test_an_executor_is_killed(there: There, topic: str, tmp_path: Path) -> None:
    with writer(there, topic, tmp_path):
        for _ in range(2):
            there.grows(topic)
            slot = there.wait_slots()[0]
            executor = next(each for each in slot.parents() if each.name() == "java")
            executor.kill()
            wait_gone(slot)
        there.grows(topic)
    there.check(topic)
    assert there.mirror.data_plane.running
    assert len(there.mirror.flow.events("SlotFailed")) >= 2


def test_a_worker_of_spark_is_killed(there: There, topic: str, tmp_path: Path) -> None:
    with writer(there, topic, tmp_path):
        there.grows(topic)
        there.wait_slots()
        lost, other = sorted(there.cluster.workers, key=lambda each: -len(each.slots(*there.ports)))
        lost.kill()
        wait_until(lambda: len(other.slots(*there.ports)) == 2, within=WITHIN, what="the other worker has both slots")
        there.grows(topic)
    there.check(topic)
    assert there.mirror.data_plane.running


def test_the_driver_is_killed_and_a_new_one_goes_on(there: There, topic: str, tmp_path: Path) -> None:
    with writer(there, topic, tmp_path):
        there.grows(topic)
        slots = there.wait_slots()
        there.mirror.data_plane.kill()
        wait_gone(*slots)  # they end with it
        there.mirror.data_plane.start()
        there.grows(topic)
    there.check(topic)


def test_a_frozen_slot_is_ended_and_another_goes_on(there: There, topic: str, tmp_path: Path) -> None:
    with writer(there, topic, tmp_path):
        there.grows(topic)
        frozen = there.wait_slots()[0]
        frozen.send_signal(signal.SIGSTOP)
        wait_gone(frozen)
        there.grows(topic)
    there.check(topic)
    assert there.mirror.flow.events("SlotFrozen")


def test_slot_without_a_free_core_is_named(there: There, tmp_path: Path, pair: Pair) -> None:
    """More slots than Spark has cores: those that have a place copy their part, and the other is named."""
    mark = f"w{uuid.uuid4().hex[:6]}"
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    lines = [line for line in there.mirror.config.read_text().splitlines() if line.startswith("lockstep.spark.")]
    with Mirror.one_flow(tmp_path, mark, a, b, *lines, "lockstep.spark.conf.spark.cores.max = 1", slots=2) as crowded:
        topic = create_topic(crowded.flow.source, f"{mark}-t", partitions=2)
        started = crowded.flow.wait_event("SlotStarted", within=WITHIN).detail["slot"]
        event = crowded.data_plane.hear("slot not started", within=WITHIN, slot=1 - started)
        assert f"({there.cluster.master} has executors: " in event["text"]
        produce(crowded.flow.source, topic, [Record(value=b"%d" % n, partition=n % 2) for n in range(20)])
        wait_until(lambda: len(read_topic(crowded.flow.target, crowded.flow.remote(topic))) == 10, within=WITHIN)


def test_the_master_is_killed_and_the_slots_go_on(there: There, topic: str, tmp_path: Path) -> None:
    """The last of the file: nobody starts the master again."""
    with writer(there, topic, tmp_path):
        there.grows(topic)
        slots = there.wait_slots()
        there.cluster.kill_master()
        there.grows(topic)
        there.grows(topic)
    there.check(topic)
    assert all(each.is_running() for each in slots)
