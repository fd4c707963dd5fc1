"""Records move inside Spark's workers and nowhere else, and Spark's own pages show who copies (`architecture.md` §5,
"Spark")."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow, ports_of
from tests.support.services import ServiceProcess, two_cluster_file

SENT = 6_000_000  # bytes
HARDLY_ANYTHING = SENT // 10


def pages(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}/api/v1/applications{path}", timeout=60) as answer:  # noqa: S310 - Spark's
        return json.load(answer)


def test_spark_shows_each_slot_by_name(mirror: Mirror, there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-shown"), partitions=2)
    produce(there.source, topic, [Record(value=b"%d" % n, partition=n % 2) for n in range(20)])
    there.wait_copied(topic)
    address = mirror.data_plane.hear("spark ready", flow=str(there))["text"]
    (application,) = pages(address, "")
    jobs = pages(address, f"/{application['id']}/jobs?status=running")
    named = {job["description"]: job["jobGroup"] for job in jobs if job["description"].startswith(str(there))}
    assert set(named) == {f"{there} slot 0", f"{there} slot 1"}
    for description, group in named.items():
        assert group.startswith(f"{description} "), "the group names the run as well: it is what cancelling takes"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="ports to processes takes /proc")
def test_only_workers_move_records(mirror: Mirror, pair: Pair, there: MirroredFlow) -> None:
    """Both proxies count bytes by the client's port, and the ports say whose they are."""
    assert pair.a.proxy is not None
    assert pair.b.proxy is not None
    topic = create_topic(there.source, unique_name("there-moved"), partitions=2)
    produce(there.source, topic, [Record(value=b"first", partition=n) for n in range(2)])
    there.wait_copied(topic)  # from here on the connections stand
    driver, *others = mirror.processes()
    workers = mirror.workers()
    assert workers
    before = {proxy: proxy.carried() for proxy in (pair.a.proxy, pair.b.proxy)}
    chunk = [Record(value=os.urandom(1_000), partition=n % 2) for n in range(SENT // 1_000)]
    produce(there.source, topic, chunk, settings={"linger.ms": "20"})
    wait_until(lambda: sum(p.upstream + 1 for p in there.progress(topic).values()) == len(chunk) + 2, within=90)
    there.wait_copied(topic)
    for proxy in (pair.a.proxy, pair.b.proxy):
        moved = {port: size - before[proxy].get(port, 0) for port, size in proxy.carried().items()}
        by_workers = sum(moved.pop(port, 0) for worker in workers for port in ports_of(worker))
        assert by_workers >= SENT, "the workers carried it in, and the workers carried it out"
        assert sum(moved.values()) < HARDLY_ANYTHING, "driver, JVM, topic-sync, and connections that have ended"
    for process in others:
        if process not in workers:
            ports = ports_of(process).values()
            assert not {pair.a.port, pair.b.port, pair.a.proxy.port, pair.b.proxy.port} & set(ports), process.cmdline()
    assert ports_of(driver), "it asks the clusters for metadata and writes what it decides"


@pytest.mark.long
def test_jvm_killed_at_its_start_is_not_reported_as_missing_java(pair: Pair, tmp_path: Path) -> None:
    mark = unique_name("killed").replace("-", "")
    flow = f"a{mark}->b{mark}"
    clusters = (f"a{mark}", pair.a.bootstrap), (f"b{mark}", pair.b.bootstrap)
    file = two_cluster_file(tmp_path, *clusters, f"{flow}.enabled = true", "offset-syncs.topic.replication.factor = 1")

    def starting() -> psutil.Process | None:
        children = psutil.Process(service.pid).children()
        return next((child for child in children if child.name() == "java"), None)

    with ServiceProcess("lockstep_data_plane", file, flow) as service:
        wait_until(starting, within=60, every=0.01, what="Spark's JVM").kill()
        assert service.wait() == 1
        (crash,) = service.said("crashed")
    assert "Spark's JVM ended while it started" in crash["error"]
    assert "needs Java" not in crash["error"]


ASKED = """
import asyncio, sys, time
from pathlib import Path
from lockstep_config import load
from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.session import SparkSession, in_thread, job_group
from lockstep_state.names import Flow

async def main():
    settings = load(Path(sys.argv[1]), {}).flow(Flow("A", "B"))
    silent, other = (SlotSpec(settings=settings, slot=slot, run="run", producer_id=1) for slot in range(2))
    spark = SparkSession(SparkSettings(), 1)
    spark.start()
    context = await spark.context()

    def job():
        context.setJobGroup(job_group(silent), "says nothing", interruptOnCancel=True)
        context.parallelize([1], 1).mapPartitions(lambda _: time.sleep(600) or []).collect()

    async def becomes(wanted):
        while await spark.is_task_running(silent) != wanted:
            await asyncio.sleep(0.1)

    assert not await spark.is_task_running(silent)
    running = asyncio.create_task(in_thread("job", job))
    await asyncio.wait_for(becomes(True), 30)
    assert not await spark.is_task_running(other)
    await spark.cancel(silent)
    await asyncio.wait([running])
    assert running.exception() is not None
    await asyncio.wait_for(becomes(False), 30)
    context.stop()
    print("asked", flush=True)

asyncio.run(main())
"""


@pytest.mark.long
def test_spark_reports_if_a_silent_slot_is_at_work(tmp_path: Path) -> None:
    file = two_cluster_file(tmp_path, ("A", "127.0.0.1:1"), ("B", "127.0.0.1:2"), "A->B.enabled = true")
    ran = subprocess.run([sys.executable, "-c", ASKED, str(file)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split()[-1:]) == (0, ["asked"]), ran.stderr
