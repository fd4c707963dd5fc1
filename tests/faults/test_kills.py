"""Whatever part of the data plane is killed or frozen under traffic, the copy goes on: in order, nothing lost, nothing
doubled (`architecture.md` §5, "An append is a compare-and-swap").

One mirror of one slot is used up by the whole file: each test ends a part of it and sees it come back.
"""

import signal
import uuid
from collections.abc import Iterator

import psutil
import pytest

from tests.conftest import Pair
from tests.support.clusters import create_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.runs import is_alive
from tests.support.services import ServiceProcess
from tests.support.traffic import Traffic

# `make test` has time for a killed worker (`test_data_plane_progress`), `test_unleased` and `test_random`.
pytestmark = pytest.mark.long

MARK = uuid.uuid4().hex[:6]
PARTITIONS = 2
RATE = 400
FROM_LIBRARIES = ("Traceback", "EOFError", "Py4J")
"""What PySpark and py4j say of a JVM that was killed, at level info."""
BACK_WITHIN = 150.0  # seconds; usual is 12 for a new Spark, 2 for a new worker, but the cores may be shared


@pytest.fixture(scope="module", params=["plain", "transactions"])
def victim(request: pytest.FixtureRequest, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    mark = f"{MARK}{request.param[0]}"
    lines = [f"t{mark}.exactly.once.source.support = enabled"] if request.param == "transactions" else []
    with Mirror.one_flow(tmp_path_factory.mktemp("victim"), mark, a, b, *lines) as mirror:
        yield mirror


@pytest.fixture
def flow(victim: Mirror) -> MirroredFlow:
    if not victim.data_plane.running:
        victim.data_plane.start()
    return victim.flow


@pytest.fixture
def topic(flow: MirroredFlow) -> str:
    return create_topic(flow.source, unique_name(flow.flow.source.removeprefix("s")), partitions=PARTITIONS)


def wait_gone(*processes: psutil.Process, within: float = 30.0) -> None:
    """Returns once none of them runs."""

    def gone() -> bool:
        return not any(map(is_alive, processes))

    wait_until(gone, within=within, what=f"{len(processes)} processes end")


def check(flow: MirroredFlow, topic: str) -> None:
    """All of it once, in order, also after everything that was late has come in; and nobody gave up on the way."""
    flow.wait_copied(topic, within=BACK_WITHIN)
    flow.wait_written_down(topic, within=BACK_WITHIN)
    comparison = flow.compared(topic)
    assert comparison.equal, comparison
    assert comparison.compared > 300
    assert flow.events("PartitionHalted", topic) == []
    assert flow.events("ForeignWrite", flow.remote(topic)) == []


def test_the_worker_is_killed(victim: Mirror, flow: MirroredFlow, topic: str) -> None:
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=RATE):
        for _ in range(2):
            flow.wait_for_more(topic, 100, within=BACK_WITHIN)
            worker = victim.copying_worker()
            worker.kill()
            wait_gone(worker)
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
    check(flow, topic)
    assert victim.data_plane.running
    failed = flow.events("SlotFailed")
    assert len(failed) >= 2
    assert all(event.detail["reason"] for event in failed)


def test_the_jvm_is_killed(victim: Mirror, flow: MirroredFlow, topic: str) -> None:
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=RATE):
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
        workers = victim.workers()
        victim.jvm().kill()
        wait_gone(*workers)
        # A process without its JVM is of no use: it says so and ends, for its supervisor to start it again.
        assert victim.data_plane.wait(60) == 1
        (crash,) = victim.data_plane.said("crashed")
        assert "Spark's JVM ended (killed by SIGKILL)" in crash["error"]
        assert "starts both again" in crash["error"]
        assert not any(word in victim.data_plane.text() for word in FROM_LIBRARIES), victim.data_plane.text()
        victim.data_plane.start()
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
    check(flow, topic)


def test_the_driver_is_killed(victim: Mirror, flow: MirroredFlow, topic: str) -> None:
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=RATE):
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
        driver, *others = victim.processes()
        driver.send_signal(signal.SIGKILL)
        victim.data_plane.wait()
        wait_gone(*others)  # the JVM and its workers end with the driver
        victim.data_plane.start()
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
    check(flow, topic)


def test_killed_data_plane_with_a_second_and_a_zombie_loses_nothing(
    victim: Mirror, flow: MirroredFlow, topic: str
) -> None:
    """A driver freezes and so does its worker; another driver leads, and its worker copies. Then the former worker
    wakes with old batches in hand, and nobody tells it to stop."""
    second = ServiceProcess("lockstep_data_plane", victim.config, str(flow), instance="second")
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=RATE):
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
        driver, worker = victim.processes()[0], victim.copying_worker()
        driver.suspend()  # its group gives its place to another
        worker.suspend()  # so it does not read that another leads
        try:
            with second:
                second.hear("slot started", within=BACK_WITHIN)
                flow.wait_for_more(topic, 300, within=BACK_WITHIN)
                assert worker.status() == psutil.STATUS_STOPPED
                assert victim.is_connected(worker), "its connections stand: when it wakes it can write at once"
                worker.resume()
                flow.wait_for_more(topic, 300, within=BACK_WITHIN)
                assert second.stop() == 0
        finally:
            driver.resume()
            if worker.is_running():
                worker.resume()
        flow.wait_for_more(topic, 100, within=BACK_WITHIN)
    check(flow, topic)
