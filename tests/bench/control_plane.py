"""The control services where there is much of everything: topics, groups, offset syncs. Each runs alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lockstep_protocol.codec import encode_offset_sync
from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset
from lockstep_protocol.records import OffsetSync
from tests.bench.clusters import Clusters
from tests.bench.figures import MEBIBYTE, OURS
from tests.bench.readings import Readings
from tests.bench.systems import System, SystemRun
from tests.bench.wire import Connection, end_offsets
from tests.harness.eventually import wait_until
from tests.harness.services import ServiceProcess

__all__ = ["Groups", "commit_all", "create_topics", "groups", "syncs", "topics", "write_each_partition", "write_syncs"]

FLOW = "A->B"
CREATED_AT_ONCE = 500
QUIET_S = 15.0
STEADY_S = 60.0
WITHIN_S = 900.0
ADMIN_S = 60.0
GROUPS_AT_ONCE = 16
SYNC_STEP = 100
TOOK = re.compile(r"starting checkpoint and offset sync stores took (\d+) ms")


def create_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Topics of one partition, with one config of their own each. Raises KafkaException."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, len(names), CREATED_AT_ONCE):
        # Small indexes: a broker maps two of them for each partition, of 10 MB by default.
        new = [NewTopic(name, 1, 1, config={"segment.index.bytes": "4096"}) for name in names[first:][:CREATED_AT_ONCE]]
        for done in admin.create_topics(new, operation_timeout=ADMIN_S, request_timeout=ADMIN_S).values():
            done.result(ADMIN_S)


def topics(wanted: int, system: System, file: Path, log: Path) -> Readings:
    """topic-sync at its first start, when all copies have to be created; at its next one; and at rest. Raises
    NeverHappened."""
    with ServiceProcess("lockstep_topic_sync", file, FLOW) as process:
        created_s = _seconds(lambda: _mirrored(process) == wanted)
        process.stop(within=30.0)
        process.start()
        found_s = _seconds(lambda: _rounds(process, "topic refresh") >= 1 and _mirrored(process) == wanted)
        time.sleep(QUIET_S)
        before, began = _used(process), _rounds(process, "topic refresh")
        time.sleep(STEADY_S)
        used, rounds = _used(process) - before, _rounds(process, "topic refresh") - began
        values = {
            "all_created_s": created_s,
            "found_s": found_s,
            "round_cpu_s": used / rounds,
            "cpu_share": used / STEADY_S,
            "rss_mib": _resident(process),
        }
    log.write_text(process.text())
    return Readings(values=values, notes=[f"{rounds} rounds in {STEADY_S:.0f} s"], log=log.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """So many groups, each with an offset in every partition of a topic that has a copy."""

    clusters: Clusters
    topic: str
    partitions: int
    number: int


def commit_all(of: Groups, offset: int) -> None:
    """Every group stands at `offset` in every partition on the source. Raises KafkaException, NeverHappened."""
    admin = AdminClient({"bootstrap.servers": of.clusters.source})

    def committed(number: int) -> bool:
        at = [TopicPartition(of.topic, partition, offset) for partition in range(of.partitions)]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(f"group-{number}", at)])
        answers = [done.result(ADMIN_S) for done in asked.values()]
        # A new broker's coordinators begin one after the other.
        return not any(each.error for answer in answers for each in answer.topic_partitions)

    with ThreadPoolExecutor(GROUPS_AT_ONCE) as pool:
        list(pool.map(lambda number: wait_until(partial(committed, number)), range(of.number)))


def groups(of: Groups, system: System, file: Path, log: Path) -> Readings:
    """checkpoint from its start to a checkpoint of every partition of every group; then a round in which all have
    moved, and rounds in which nothing has. Raises NeverHappened."""
    name, all_of_them = "A.checkpoints.internal", of.number * of.partitions
    with ServiceProcess("lockstep_checkpoint", file, FLOW) as process, Connection(of.clusters.target) as target:
        process.hear("leading")
        first_s = _seconds(lambda: end_offsets(target, name, 1)[0] >= all_of_them)
        commit_all(of, SYNC_STEP + 1)
        moved_s = _seconds(lambda: end_offsets(target, name, 1)[0] >= 2 * all_of_them)
        time.sleep(QUIET_S)
        before, began = _used(process), _rounds(process, "checkpoint emission")
        time.sleep(STEADY_S)
        used, rounds = _used(process) - before, _rounds(process, "checkpoint emission") - began
        values = {
            "first_s": first_s,
            "moved_s": moved_s,
            "round_cpu_s": used / rounds,
            "rss_mib": _resident(process),
        }
    log.write_text(process.text())
    return Readings(values=values, notes=[f"{rounds} rounds in {STEADY_S:.0f} s"], log=log.name)


def write_each_partition(bootstrap: str, topic: str, of: str, partitions: int) -> None:
    """Two offset syncs of each partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for offset in (0, SYNC_STEP):
        for partition in range(partitions):
            sync = OffsetSync(of, partition, UpstreamOffset(offset), DownstreamOffset(offset))
            key, value = encode_offset_sync(sync)
            producer.produce(topic, key=key, value=value, partition=0)
    producer.flush(ADMIN_S)


def write_syncs(bootstrap: str, topic: str, names: Sequence[str], number: int) -> None:
    """`number` offset syncs, of partition 0 of each topic in turn, as MM2 lays them down. Raises BufferError."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for at in range(number):
        offset = SYNC_STEP * (at // len(names))
        sync = OffsetSync(names[at % len(names)], 0, UpstreamOffset(offset), DownstreamOffset(offset))
        key, value = encode_offset_sync(sync)
        producer.produce(topic, key=key, value=value, partition=0)
        if at % 1000 == 0:
            producer.poll(0)
        while len(producer) > 100_000:
            producer.poll(0.05)
    producer.flush(ADMIN_S)


def syncs(system: System, file: Path, log: Path) -> Readings:
    """How long a system reads its offset syncs before it translates. Raises NeverHappened, SystemEnded."""
    if system.name != OURS:
        with SystemRun(system, file, log) as run:

            def read_them() -> re.Match[str] | None:
                run.check()
                return TOOK.search(log.read_text())

            found = wait_until(read_them, within=WITHIN_S, every=0.5)
            held = sum(size for _, size in run.resident()) / MEBIBYTE
        return Readings(values={"read_s": int(found[1]) / 1000, "rss_mib": held}, log=log.name)
    with ServiceProcess("lockstep_checkpoint", file, FLOW, arguments=("--log-level", "debug")) as process:
        read = process.hear("offset syncs read", within=WITHIN_S)
        began = process.hear("leading")
        values = {"read_s": _at(read) - _at(began), "rss_mib": _resident(process)}
    log.write_text(process.text())
    return Readings(values=values, log=log.name)


def _seconds(done: Callable[[], bool]) -> float:
    began = time.perf_counter()
    wait_until(done, within=WITHIN_S, every=0.1)
    return time.perf_counter() - began


def _mirrored(process: ServiceProcess) -> int:
    found: Mapping[str, int] = process.status(FLOW).get("topics", {})
    return found.get("mirrored", 0)


def _rounds(process: ServiceProcess, name: str) -> int:
    """Rounds of a kind that the service has done."""
    lines = process.page("/metrics")[1].splitlines()
    found = [line for line in lines if line.startswith("lockstep_rounds_total{") and f'round="{name}"' in line]
    return int(float(found[0].rpartition(" ")[2])) if found else 0


def _used(process: ServiceProcess) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def _resident(process: ServiceProcess) -> float:
    return float(psutil.Process(process.pid).memory_info().rss) / MEBIBYTE


def _at(line: Mapping[str, str]) -> float:
    return datetime.fromisoformat(line["at"]).timestamp()
