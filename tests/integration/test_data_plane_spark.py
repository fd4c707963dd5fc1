"""Records move inside Spark's workers and nowhere else, and Spark's own pages show who copies (design §5, "Spark")."""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Pair
from tests.harness.clusters import Record, create_topic, produce, unique_name
from tests.harness.eventually import wait_until
from tests.harness.mirror import Mirror, MirroredFlow, ports_of
from tests.harness.services import ServiceProcess, two_cluster_file

SENT = 6_000_000  # bytes
HARDLY_ANYTHING = SENT // 10


def pages(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}/api/v1/applications{path}", timeout=10) as answer:  # noqa: S310 - Spark's
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
def test_a_jvm_that_is_killed_while_it_starts_is_not_taken_for_a_missing_java(pair: Pair, tmp_path: Path) -> None:
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
