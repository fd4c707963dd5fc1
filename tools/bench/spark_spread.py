"""A topic of many partitions mirrored by slots on a standalone Spark cluster whose workers are processes here."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import Assignment, decode_row
from tests.support.clusters import read_topic
from tests.support.java import find_java
from tests.support.mm2 import properties
from tests.support.spark_cluster import SparkCluster
from tools.bench.figures import Copy
from tools.bench.limit import log_shape
from tools.bench.load import load
from tools.bench.stage import Stage
from tools.bench.systems import System
from tools.bench.throughput import Workload, copy
from tools.bench.wire import Connection, end_offsets

WORKERS, CORES, SLOTS, PARTITIONS = 4, 4, 8, 320
TOPIC = "spread"
COUNT_EVERY_S = 1.0


class SpreadCounter(threading.Thread):
    """Counts again and again how many slots each worker has, until `stop`; `newest` is the last count of all slots."""

    def __init__(self, cluster: SparkCluster, ports: Sequence[int], slots: int) -> None:
        super().__init__(name="spread", daemon=True)
        self._cluster, self._ports, self._slots = cluster, ports, slots
        self._stopping = threading.Event()
        self.newest: Sequence[int] = ()

    def run(self) -> None:
        while not self._stopping.wait(COUNT_EVERY_S):
            counts = [len(worker.slots(*self._ports)) for worker in self._cluster.workers]
            if sum(counts) == self._slots:
                self.newest = counts

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def measure_spread(stage: Stage, system: System) -> tuple[dict[str, float], list[str]]:
    """Figures by key, and notes about them. Raises what `copy` does, and NotLoaded."""
    work = _loaded(stage)
    beside = _copied(stage, work, system, "local", {})
    stage.say(f"scale: a Spark cluster of {WORKERS} workers")
    with SparkCluster(
        workers=WORKERS, cores=CORES, environment={"JAVA_HOME": str(find_java().resolve().parents[1])}
    ) as cluster:
        settings = {
            "lockstep.spark.master": cluster.master,
            **dict([cluster.secret_line.split(" = ")]),
            "lockstep.spark.conf.spark.driver.host": "127.0.0.1",
            "lockstep.spark.conf.spark.driver.bindAddress": "127.0.0.1",
        }
        with _counted(cluster, stage) as counter:
            spread = _copied(stage, work, system, "cluster", settings)
    partitions = partitions_by_slot(stage.clusters.target)
    values = {
        "spread_records_per_s": spread.records_per_s,
        "spread_local_records_per_s": beside.records_per_s,
        "spread_start_s": spread.start_s,
        "spread_slots_most": max(counter.newest, default=0),
        "spread_slots_least": min(counter.newest, default=0),
        "spread_partitions_most": max(partitions),
        "spread_partitions_least": min(partitions),
    }
    slots = ", ".join(map(str, counter.newest)) or "never seen all at once"
    notes = [
        f"Spark cluster: {work.loaded.records:,} records in {PARTITIONS} partitions, {SLOTS} slots; on each of "
        f"{WORKERS} workers of {CORES} cores: {slots} slots. All are processes of this machine, so the rate says what "
        "the way through a cluster costs, not what more machines bring."
    ]
    return values, notes


def partitions_by_slot(bootstrap: str) -> list[int]:
    """How many partitions each slot had last, by the rows that the driver wrote."""
    newest: dict[int, int] = {}
    for record in read_topic(bootstrap, state_topic(Flow("A", "B"), None)):
        row = decode_row(record.key or b"", record.value)
        if isinstance(row, Assignment):
            newest[row.slot] = len(row.partitions)
    return [newest[slot] for slot in sorted(newest)]


@contextmanager
def _counted(cluster: SparkCluster, stage: Stage) -> Iterator[SpreadCounter]:
    ports = [int(each.rpartition(":")[2]) for each in (stage.clusters.source, stage.clusters.target)]
    counter = SpreadCounter(cluster, ports, SLOTS)
    counter.start()
    try:
        yield counter
    finally:
        counter.stop()


def _loaded(stage: Stage) -> Workload:
    source = stage.clusters.source
    stage.say(f"scale: loading {stage.records:,} records into {PARTITIONS} partitions")
    stage.clusters.begin_anew(keep=[])
    stage.clusters.create(source, TOPIC, PARTITIONS)
    loaded = load(
        source,
        TOPIC,
        records=stage.records,
        partitions=PARTITIONS,
        codec="lz4",
        batch_bytes=stage.batch_bytes,
    )
    with Connection(source) as connection:
        shape = log_shape(source, TOPIC, end_offsets(connection, TOPIC, PARTITIONS))
    stage.say(f"scale: {shape.batches:,} batches of {shape.records / shape.batches:.0f} records")
    return Workload(clusters=stage.clusters, topic=TOPIC, partitions=PARTITIONS, codec="lz4", loaded=loaded)


def _copied(stage: Stage, work: Workload, system: System, called: str, settings: Mapping[str, str]) -> Copy:
    stage.say(f"scale: copying, {called} Spark")
    stage.clusters.begin_anew([work.topic])
    file, log = stage.work / f"scale-{called}.properties", stage.logs() / f"scale-{called}.log"
    given = {**system.settings(work.codec), "tasks.max": str(SLOTS), **settings}
    file.write_text(properties(stage.clusters.source, stage.clusters.target, work.topic, given))
    return copy(work, system, file, log)
