"""What the control services make of many topics, groups and offset syncs; each service alone, on two clusters.

MM2's own store of offset syncs, from the jars, replays the same topic beside ours.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
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
from tools.bench.results import MEBIBYTE, Readings
from tools.bench.stage import Measured, Stage, Trial

CONTROL_PLANE = "control_plane"
TOPICS, GROUPS, OFFSET_SYNCS = 10_000, 1_000, 1_000_000
WITHIN_S = 600.0
REST_S, PERIOD_S = 20.0, 60.0
ADMIN_S = 120.0
FLOW = "A->B"
SYNCS, CHECKPOINTS, GROUPED = "mm2-offset-syncs.B.internal", "A.checkpoints.internal", "many-groups"
GROUP_PARTITIONS, SYNC_PARTITIONS = 10, 100

until = partial(wait_until, within=WITHIN_S, every=0.1)


def many_topics(clusters: Clusters, trial: Trial) -> Mapping[str, float]:
    """Measure topics of one partition: mirrored for the first time, checked after a restart, then at rest."""
    client = admin(clusters.source)
    for piece in _pieces([f"many-{number:05d}" for number in range(TOPICS)], 500):
        for future in client.create_topics([NewTopic(name, 1, 1) for name in piece], request_timeout=ADMIN_S).values():
            future.result(ADMIN_S)
    with _service("topic-sync", trial) as service:
        began = time.perf_counter()
        until(lambda: _status(service).get("topics", {}).get("mirrored", 0) >= TOPICS, what="all topics are mirrored")
        mirrored_s = time.perf_counter() - began
        service.kill()
        began = time.perf_counter()
        service.start()
        until(lambda: _rounds(service, "topic refresh") >= 1, what="all topics are looked at")
        planned_s = time.perf_counter() - began
        used, rounds = _at_rest(service, "topic refresh")
        return {
            "topics_mirrored_s": mirrored_s,
            "topics_planned_s": planned_s,
            "topics_round_cpu_s": used / rounds,
            "topics_cpu_share": used / PERIOD_S,
            "topics_rss_mib": _held(service),
        }


def many_groups(clusters: Clusters, trial: Trial) -> Mapping[str, float]:
    """Measure groups in ten partitions each: all moved while no service ran, then checked while none moves."""
    source, target = clusters.source, clusters.target
    for bootstrap, topic in ((source, GROUPED), (target, f"A.{GROUPED}")):
        create_topic(bootstrap, topic, partitions=GROUP_PARTITIONS)
        produce(bootstrap, topic, [Record(value=b"x", partition=n % GROUP_PARTITIONS) for n in range(10_000)])
    create_topic(source, SYNCS, configs={"cleanup.policy": "compact"})
    _write_syncs(source, GROUPED, GROUP_PARTITIONS, [100])
    _commit(source, [f"group-{number:04d}" for number in range(GROUPS)], 100)
    wanted = GROUPS * GROUP_PARTITIONS
    with _service("checkpoint", trial) as service:
        service.hear("leading", within=WITHIN_S)
        began = time.perf_counter()
        until(lambda: sum(end_offsets(target, CHECKPOINTS).values()) >= wanted, what="every group has its checkpoints")
        first_s = time.perf_counter() - began
        used, rounds = _at_rest(service, "checkpoint emission")
        return {
            "groups_first_s": first_s,
            "groups_round_s": PERIOD_S / rounds,
            "groups_round_cpu_s": used / rounds,
            "groups_rss_mib": _held(service),
        }


def many_syncs(clusters: Clusters, trial: Trial) -> Mapping[str, float]:
    """Measure the replay of offset syncs at the start of the checkpoint service, and by MM2's own store."""
    source = clusters.source
    create_topic(source, SYNCS, configs={"cleanup.policy": "compact"})
    _write_syncs(source, "many-syncs", SYNC_PARTITIONS, range(0, 100 * OFFSET_SYNCS // SYNC_PARTITIONS, 100))
    with _service("checkpoint", trial) as service:
        service.hear("leading", within=WITHIN_S)
        began = time.perf_counter()
        until(lambda: _status(service).get("offset_syncs", {}).get("read"), what="all offset syncs are read")
        ours_s, held = time.perf_counter() - began, _held(service)
        assert service.status(FLOW)["offset_syncs"]["position"] >= OFFSET_SYNCS - 1
    return {"syncs_replayed_s": ours_s, "syncs_java_s": _java_replay(clusters), "syncs_rss_mib": held}


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
        duration_s = time.perf_counter() - began
        call(java, store, "close")
    return duration_s


@contextmanager
def _service(name: str, trial: Trial) -> Iterator[ServiceProcess]:
    lines = trial.file.read_text().splitlines()
    lines += ["topics = many-.*", "groups = group-.*", "emit.checkpoints.interval.seconds = 1"]
    lines += ["refresh.groups.interval.seconds = 1"]
    own = trial.file.with_name(f"{trial.file.stem}-{name}.properties")
    own.write_text("\n".join(line for line in lines if not line.startswith("A->B.topics")) + "\n")
    with ServiceProcess(f"lockstep_{name.replace('-', '_')}", own, FLOW, instance="bench") as service:
        service.wait_ready()
        yield service


def _write_syncs(bootstrap: str, topic: str, partitions: int, offsets: Sequence[int]) -> None:
    def records() -> Iterator[Record]:
        for offset in offsets:
            for number in range(partitions):
                sync = OffsetSync(topic, number, UpstreamOffset(offset), DownstreamOffset(offset))
                key, value = encode_offset_sync(sync)
                yield Record(key=key, value=value, partition=0)

    produce(bootstrap, SYNCS, records())


def _commit(bootstrap: str, groups: Sequence[str], offset: int) -> None:
    client = admin(bootstrap)
    offsets = [TopicPartition(GROUPED, number, offset) for number in range(GROUP_PARTITIONS)]

    def committed(piece: Sequence[str]) -> bool:
        """Return whether the coordinators, which settle on a new cluster first, took the offsets of these groups."""
        futures = [client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(g, offsets)])[g] for g in piece]
        return all(tp.error is None for future in futures for tp in future.result(ADMIN_S).topic_partitions)

    for piece in _pieces(groups, 50):
        until(partial(committed, piece), what=f"groups from {piece[0]} on have moved")


def _pieces(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _status(service: ServiceProcess) -> Mapping[str, Any]:
    """Return what its status page says of the flow, or nothing while it is too busy to answer."""
    try:
        return service.status(FLOW)
    except TimeoutError:
        return {}


def _at_rest(service: ServiceProcess, work: str) -> tuple[float, float]:
    """Return the CPU seconds, and the rounds of this work, in `PERIOD_S` with nothing to do."""

    def cpu() -> float:
        times = psutil.Process(service.pid).cpu_times()
        return float(times.user + times.system)

    time.sleep(REST_S)
    rounds, used = _rounds(service, work), cpu()
    time.sleep(PERIOD_S)
    return cpu() - used, _rounds(service, work) - rounds


def _rounds(service: ServiceProcess, work: str) -> float:
    """Return how many rounds of this work were done."""
    try:
        lines = service.page("/metrics")[1].splitlines()
    except TimeoutError:
        return 0.0  # it is too busy to answer
    samples = [line for line in lines if line.startswith("lockstep_rounds_total{") and f'"{work}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in samples)


def _held(service: ServiceProcess) -> float:
    return float(psutil.Process(service.pid).memory_info().rss) / MEBIBYTE


def _measured(stage: Stage, trial: Trial) -> Readings:
    """Measure each of the three on clean clusters. Topics come last: so many take minutes to delete."""
    values: dict[str, float] = {}
    for what, measure in (("groups", many_groups), ("syncs", many_syncs), ("topics", many_topics)):
        stage.say(f"{CONTROL_PLANE}: {what}")
        stage.clusters.begin_anew()
        values |= measure(stage.clusters, trial)
    return Readings(values=values)


def _control_plane(stage: Stage) -> Measured:
    systems = stage.each(CONTROL_PLANE, "none", partial(_measured, stage), systems=stage.ours)
    return {"topics": TOPICS, "groups": GROUPS, "syncs": OFFSET_SYNCS}, systems


MEASURES = {CONTROL_PLANE: _control_plane}
