"""A flow with a function in Python under two faults at once, compared with a computation of this test's own."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.conftest import Pair
from tests.integration.test_python_transforms import function_processes
from tests.integration.transform.test_transform_faults import every_second, unhalted
from tests.integration.transform.test_transform_flow import WITHIN, mirrored, topic_of, wait_made
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror
from tests.support.traffic import Traffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MODULE = "lockstep_example_faults"
TEXT = """
import pyarrow as pa


def every_second(table):
    rows = [
        {"offset": row["offset"], "value": b"#" + row["value"]}
        for row in table.to_pylist()
        if int(row["value"].split()[1]) % 4 < 2
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([("offset", pa.int64()), ("value", pa.binary())]))
"""


@contextmanager
def evaluated(
    pair: Pair, folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str
) -> Iterator[tuple[Mirror, str, Traffic]]:
    """A flow that has copied some of what is being written, and the topic. It is whole and exact at the end."""
    (folder / f"{MODULE}.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    with mirrored(pair, folder, f"lockstep.transform.pii.python = {MODULE}:every_second", *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=300) as traffic:
            flow.wait_mirrored(topic, partitions=2, within=WITHIN)
            flow.wait_for_more(topic, 200, within=WITHIN)
            yield mirror, topic, traffic
            flow.wait_for_more(topic, 200, within=WITHIN)
        wait_made(flow, topic, every_second, partitions=2)
        unhalted(flow, topic)


def hanging(mirror: Mirror, traffic: Traffic) -> psutil.Process:
    """The function's process, which stands still and has records to evaluate."""

    def loaded() -> psutil.Process | None:
        """It ends with its slot from then on. One that is stopped before that ends when it is continued."""
        for process in function_processes(mirror):
            with suppress(psutil.NoSuchProcess):
                if any("libarrow" in mapped.path for mapped in process.memory_maps()):
                    return process
        return None

    process = wait_until(loaded, within=WITHIN, every=0.1, what="a process has loaded its function")
    process.suspend()
    traffic.wait_for_more(150)
    return process


def wait_gone(process: psutil.Process) -> None:
    wait_until(lambda: not process.is_running(), within=WITHIN, every=0.1, what="it has ended with its slot")


def kill_slot(mirror: Mirror) -> None:
    mirror.copying_worker(within=WITHIN).kill()


def kill_jvm(mirror: Mirror) -> None:
    mirror.jvm().kill()
    mirror.data_plane.wait(60)
    mirror.data_plane.start()


def kill_driver(mirror: Mirror) -> None:
    """The JVM and its workers notice by themselves, also those that wait for a process that stands still."""
    mirror.data_plane.kill()
    mirror.data_plane.start()


def kill_all(mirror: Mirror) -> None:
    mirror.kill_data_plane()
    mirror.data_plane.start()


@pytest.mark.parametrize("kill", [kill_slot, kill_jvm, kill_driver, kill_all])
def test_slot_dies_while_the_process_of_its_function_stands_still(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: Callable[[Mirror], None]
) -> None:
    with evaluated(pair, tmp_path, monkeypatch) as (mirror, topic, traffic):
        for _ in range(2):
            process = hanging(mirror, traffic)
            kill(mirror)
            wait_gone(process)
            mirror.flow.wait_for_more(topic, 200, within=WITHIN)


@pytest.mark.parametrize("frozen", ["source", "target", "both"])
def test_process_of_a_function_is_killed_while_a_cluster_stands_still(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frozen: str
) -> None:
    dice = random.Random(frozen)
    with evaluated(pair, tmp_path, monkeypatch) as (mirror, topic, _):
        brokers = {"source": [pair.a], "target": [pair.b], "both": [pair.a, pair.b]}[frozen]
        for kills_slot in (False, True):
            time.sleep(dice.uniform(0, 0.7))
            worker = mirror.copying_worker(within=WITHIN)
            processes = wait_until(lambda: function_processes(mirror), within=WITHIN, every=0.1, what="its process")
            for broker in brokers:
                broker.suspend()
            try:
                for process in processes:
                    process.kill()
                if kills_slot:
                    time.sleep(dice.uniform(0, 0.5))
                    worker.kill()
                time.sleep(12)
            finally:
                for broker in brokers:
                    broker.resume()
            mirror.flow.wait_for_more(topic, 200, within=WITHIN)


def test_process_that_stands_still_for_longer_than_it_may_take_is_replaced(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot is killed when the second one stands still too, before it counts as a function that never ends."""
    with evaluated(pair, tmp_path, monkeypatch) as (mirror, topic, traffic):
        first = hanging(mirror, traffic)
        wait_gone(first)
        second = hanging(mirror, traffic)
        time.sleep(5)
        kill_slot(mirror)
        wait_gone(second)
        mirror.flow.wait_for_more(topic, 200, within=WITHIN)


def test_transactions_on_the_target_while_process_and_slot_are_killed(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("TARGET.exactly.once.source.support = enabled",)
    with evaluated(pair, tmp_path, monkeypatch, *lines) as (mirror, topic, traffic):
        for kill in (kill_slot, kill_all):
            process = hanging(mirror, traffic)
            kill(mirror)
            wait_gone(process)
            mirror.flow.wait_for_more(topic, 200, within=WITHIN)
