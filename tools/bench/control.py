"""What the control services make of many topics, groups and offset syncs; each service alone, on two clusters.

MM2's own store of offset syncs, from the jars, replays the same topic beside ours.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import NewTopic

from lockstep_state.codecs.mm2_codec import OffsetSync, encode_offset_sync
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from tests.support.clusters import Record, admin, create_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.jvm import call, jvm
from tests.support.services import ServiceProcess
from tools.bench.clusters import Clusters
from tools.bench.figures import MEBIBYTE
from tools.bench.readings import Readings
from tools.bench.systems import System

WITHIN_S = 600.0
REST_S = 20.0
PERIOD_S = 60.0
AT_ONCE = 500
ADMIN_S = 120.0
FLOW = "A->B"
SYNCS, CHECKPOINTS, GROUPED = "mm2-offset-syncs.B.internal", "A.checkpoints.internal", "many-groups"
GROUP_PARTITIONS = 10
SYNC_PARTITIONS = 100

until = partial(wait_until, within=WITHIN_S, every=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """How much there is."""

    clusters: Clusters
    topics: int = 10_000
    groups: int = 1_000
    syncs: int = 1_000_000


def many_topics(many: Many, system: System, file: Path, log: Path) -> Readings:
    """Topics of one partition: mirrored for the first time, found as they are after a restart, and looked at."""
    names = [f"many-{number:05d}" for number in range(many.topics)]
    client = admin(many.clusters.source)
    for piece in _pieces(names):
        for future in client.create_topics([NewTopic(name, 1, 1) for name in piece], request_timeout=ADMIN_S).values():
            future.result(ADMIN_S)
    with _service("topic-sync", file) as service:
        began = time.perf_counter()
        until(lambda: _mirrored(service) >= many.topics, what="all topics are mirrored")
        mirrored_s = time.perf_counter() - began
        service.kill()
        began = time.perf_counter()
        service.start()
        until(lambda: _rounds(service, "topic refresh") >= 1, what="all topics are looked at")
        planned_s = time.perf_counter() - began
        used, rounds = _at_rest(service, "topic refresh")
        held = _held(service)
    return Readings(
        values={
            "topics_mirrored_s": mirrored_s,
            "topics_planned_s": planned_s,
            "topics_round_cpu_s": used / rounds,
            "topics_cpu_share": used / PERIOD_S,
            "topics_rss_mib": held,
        },
        log=log.name,
    )


def many_groups(many: Many, system: System, file: Path, log: Path) -> Readings:
    """Groups in ten partitions each: all moved while nobody was there, then looked at while none moves."""
    source, target = many.clusters.source, many.clusters.target
    for bootstrap, topic in ((source, GROUPED), (target, f"A.{GROUPED}")):
        create_topic(bootstrap, topic, partitions=GROUP_PARTITIONS)
        produce(bootstrap, topic, [Record(value=b"x", partition=n % GROUP_PARTITIONS) for n in range(10_000)])
    create_topic(source, SYNCS, configs={"cleanup.policy": "compact"})
    _write_syncs(source, GROUPED, GROUP_PARTITIONS, [100])
    _commit(source, [f"group-{number:04d}" for number in range(many.groups)], 100)
    with _service("checkpoint", file) as service:
        service.hear("leading", within=WITHIN_S)
        began = time.perf_counter()
        until(partial(_has, target, many.groups * GROUP_PARTITIONS), what="every group has its checkpoints")
        first_s = time.perf_counter() - began
        used, rounds = _at_rest(service, "checkpoint emission")
        held = _held(service)
    return Readings(
        values={
            "groups_first_s": first_s,
            "groups_round_s": PERIOD_S / rounds,
            "groups_round_cpu_s": used / rounds,
            "groups_rss_mib": held,
        }
    )


def many_syncs(many: Many, system: System, file: Path, log: Path) -> Readings:
    """Offset syncs replayed at the start of the checkpoint service, and by the store of MM2's checkpoint task."""
    source = many.clusters.source
    create_topic(source, SYNCS, configs={"cleanup.policy": "compact"})
    _write_syncs(source, "many-syncs", SYNC_PARTITIONS, range(0, 100 * many.syncs // SYNC_PARTITIONS, 100))
    with _service("checkpoint", file) as service:
        service.hear("leading", within=WITHIN_S)
        began = time.perf_counter()
        until(lambda: _status(service).get("offset_syncs", {}).get("read"), what="all offset syncs are read")
        ours_s, held = time.perf_counter() - began, _held(service)
        assert service.status(FLOW)["offset_syncs"]["position"] >= many.syncs - 1
    return Readings(
        values={"syncs_replayed_s": ours_s, "syncs_java_s": _java_replay(many.clusters), "syncs_rss_mib": held}
    )


def _java_replay(clusters: Clusters) -> float:
    mirror = "org.apache.kafka.connect.mirror"
    settings = {
        "name": "bench",
        "connector.class": f"{mirror}.MirrorCheckpointConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": clusters.source,
        "target.cluster.bootstrap.servers": clusters.target,
    }
    with jvm() as java:
        config = java.jvm.org.apache.kafka.connect.mirror.MirrorCheckpointConfig(settings)
        of_name = java.jvm.java.lang.Class.forName
        types, values = java.new_array(java.jvm.java.lang.Class, 1), java.new_array(java.jvm.java.lang.Object, 1)
        types[0], values[0] = of_name(f"{mirror}.MirrorCheckpointConfig"), config
        made = of_name(f"{mirror}.OffsetSyncStore").getDeclaredConstructor(types)
        made.setAccessible(True)
        store = made.newInstance(values)
        began = time.perf_counter()
        call(java, store, "start", ["boolean"], [True])
        took = time.perf_counter() - began
        call(java, store, "close")
    return took


@contextmanager
def _service(name: str, file: Path) -> Iterator[ServiceProcess]:
    lines = file.read_text().splitlines()
    lines += ["topics = many-.*", "groups = group-.*", "emit.checkpoints.interval.seconds = 1"]
    lines += ["refresh.groups.interval.seconds = 1"]
    own = file.with_name(f"{file.stem}-{name}.properties")
    own.write_text("\n".join(line for line in lines if not line.startswith("A->B.topics")) + "\n")
    with ServiceProcess(f"lockstep_{name.replace('-', '_')}", own, FLOW, instance="bench") as service:
        service.wait_ready()
        yield service


def _write_syncs(bootstrap: str, topic: str, partitions: int, offsets: Sequence[int]) -> None:
    def records() -> Iterator[Record]:
        for at in offsets:
            for number in range(partitions):
                sync = OffsetSync(topic, number, UpstreamOffset(at), DownstreamOffset(at))
                key, value = encode_offset_sync(sync)
                yield Record(key=key, value=value, partition=0)

    produce(bootstrap, SYNCS, records())


def _commit(bootstrap: str, groups: Sequence[str], offset: int) -> None:
    client = admin(bootstrap)
    places = [TopicPartition(GROUPED, number, offset) for number in range(GROUP_PARTITIONS)]

    def committed(piece: Sequence[str]) -> bool:
        """Also once the coordinators of a new cluster have settled."""
        asked = [client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(g, places)])[g] for g in piece]
        return all(place.error is None for one in asked for place in one.result(ADMIN_S).topic_partitions)

    for piece in _pieces(groups, 50):
        until(partial(committed, piece), what=f"groups from {piece[0]} on have moved")


def _has(bootstrap: str, checkpoints: int) -> bool:
    return sum(end_offsets(bootstrap, CHECKPOINTS).values()) >= checkpoints


def _pieces(items: Sequence[str], size: int = AT_ONCE) -> Iterator[Sequence[str]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _status(service: ServiceProcess) -> Mapping[str, Any]:
    """What it says of the flow; nothing while it is too busy to answer."""
    try:
        return service.status(FLOW)
    except TimeoutError:
        return {}


def _mirrored(service: ServiceProcess) -> int:
    found: int = _status(service).get("topics", {}).get("mirrored", 0)
    return found


def _at_rest(service: ServiceProcess, work: str) -> tuple[float, float]:
    """CPU seconds, and how many rounds of this work there were, in `PERIOD_S` with nothing to do."""
    time.sleep(REST_S)
    rounds, used = _rounds(service, work), _cpu(service)
    time.sleep(PERIOD_S)
    return _cpu(service) - used, _rounds(service, work) - rounds


def _rounds(service: ServiceProcess, work: str) -> float:
    """How often that was done."""
    try:
        lines = service.page("/metrics")[1].splitlines()
    except TimeoutError:
        return 0.0  # it is too busy to answer
    samples = [line for line in lines if line.startswith("lockstep_rounds_total{") and f'"{work}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in samples)


def _cpu(service: ServiceProcess) -> float:
    times = psutil.Process(service.pid).cpu_times()
    return float(times.user + times.system)


def _held(service: ServiceProcess) -> float:
    return float(psutil.Process(service.pid).memory_info().rss) / MEBIBYTE
