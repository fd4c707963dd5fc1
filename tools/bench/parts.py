"""The parts of the bench, each with its preparation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tools.bench.alone import ALONE, CONTROL_PLANE
from tools.bench.away import AWAY, away
from tools.bench.brokers import IN_SYNC, REPLICAS, three_brokers, tls_clusters
from tools.bench.compacted import UNCLEANED, clean, key_of
from tools.bench.distance import Distance
from tools.bench.figures import OPEN, OURS, PLAIN, TWO_SLOTS, Copy, LatencyPart, Part, StartPart, ThroughputPart
from tools.bench.killing import KILLS, kills
from tools.bench.latency import Course, floor, latency
from tools.bench.limit import LogShape, fetch_only, log_shape
from tools.bench.load import load
from tools.bench.outcome import Failed, Scalar
from tools.bench.readings import ReadingsPart
from tools.bench.scale import SCALE, scale
from tools.bench.stage import NOTHING, PARTITIONS, Stage
from tools.bench.starting import start
from tools.bench.switching import SWITCHOVER, switchover
from tools.bench.systems import RELAY, System
from tools.bench.throughput import Workload, copy, limit
from tools.bench.verifying import SETTINGS as VERIFYING
from tools.bench.verifying import verifying
from tools.bench.wire import Connection, end_offsets

SMALL, TINY = "lz4_16k", "lz4_1k"
BATCHES = {SMALL: (16 << 10, 2), TINY: (1 << 10, 12)}
"""Largest batch before compression, and by how much the records are divided: so many requests take their time."""
RATES = {"latency_500": 500, "latency_5000": 5_000}
START = "startup"
START_RECORDS = 10_000
ROUND_TRIPS = {"rtt_80": 0.080, "rtt_200": 0.200}
FAR_TARGET, FAR_TARGET_S = "far_target", 0.080
FAR_CODEC = "lz4"
PROXY_RUNS = 3
COMPACTED = "compacted"
TRANSACTIONS = "transactions"
REPLICATED = "rf3"
TLS = "tls"
VERIFY = "verify"
SOURCE, TARGET = "A.bootstrap.servers", "B.bootstrap.servers"
FACTORS = (
    *("replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor"),
    *("offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor"),
)
ONE_SLOT = {"tasks.max": "1"}
UNJUDGED = (TINY, "rtt_200", FAR_TARGET, REPLICATED, CONTROL_PLANE, SCALE)


def _throughput(stage: Stage, name: str, codec: str) -> ThroughputPart:
    work, facts = _loaded(stage, name, codec)
    bound = stage.attempt(name, "limit", "", partial(limit, work, stage.say))
    return ThroughputPart(name=name, facts=facts, limit=bound, systems=_copies(stage, name, work))


def _small(stage: Stage, name: str) -> ThroughputPart:
    """As `lz4`, in batches of a producer's default size, or smaller."""
    batch_bytes, divisor = BATCHES[name]
    stage = replace(stage, batch_bytes=batch_bytes, records=max(PARTITIONS, stage.records // divisor))
    return _throughput(stage, name, "lz4")


def _compacted(stage: Stage) -> ThroughputPart:
    """The limit is that of the batches before they were cleaned: no broker takes them afterwards."""
    work, facts = _loaded(stage, COMPACTED, "lz4", UNCLEANED, lambda number: key_of(number, PARTITIONS))
    bound = stage.attempt(COMPACTED, "limit", "", partial(limit, work, stage.say))
    stage.say(f"{COMPACTED}: cleaning")
    left, shape = clean(stage.clusters, work.topic, PARTITIONS, work.loaded, stage.say)
    work = replace(work, loaded=left, gaps=True)
    facts |= {"records": left.records, "written": stage.records, **_log_facts(shape)}
    return ThroughputPart(name=COMPACTED, facts=facts, limit=bound, systems=_copies(stage, COMPACTED, work))


def _transactions(stage: Stage) -> ThroughputPart:
    """Every system with exactly-once, and ours without."""
    work, facts = _loaded(stage, TRANSACTIONS, "lz4")
    bound = stage.attempt(TRANSACTIONS, "limit", "", partial(limit, work, stage.say))
    called = f"{TRANSACTIONS}-{PLAIN}"
    first = _copies(stage, TRANSACTIONS, work, systems=stage.ours, called=called).get(OURS)
    exactly = [replace(system, settings=partial(_exactly_once, system)) for system in stage.systems]
    systems = _copies(stage, TRANSACTIONS, replace(work, gaps=True, markers=True), systems=exactly)
    # Brokers are still getting faster: what comes first is at a disadvantage, so ours without is measured twice.
    second = _copies(stage, TRANSACTIONS, work, systems=stage.ours, called=f"{called}-again").get(OURS)
    plain = max(first, second, key=lambda copied: copied.records_per_s if isinstance(copied, Copy) else 0.0)
    return ThroughputPart(name=TRANSACTIONS, facts=facts, limit=bound, systems=systems, own=plain, own_name=PLAIN)


def _tls(stage: Stage) -> ThroughputPart:
    """Every system over TLS on both sides, and ours without, on the same brokers."""
    with tls_clusters() as (clusters, over_tls):
        stage = replace(stage, clusters=clusters)
        work, facts = _loaded(stage, TLS, "lz4")
        first = _copies(stage, TLS, work, systems=stage.ours, called=f"{TLS}-{OPEN}").get(OURS)
        systems = _copies(stage, TLS, work, settings=over_tls)
        second = _copies(stage, TLS, work, systems=stage.ours, called=f"{TLS}-{OPEN}-again").get(OURS)
    # As with transactions: brokers are still getting faster, and ours over TLS lies between the two.
    plain = max(first, second, key=lambda copied: copied.records_per_s if isinstance(copied, Copy) else 0.0)
    return ThroughputPart(name=TLS, facts=facts, limit=None, systems=systems, own=plain, own_name=OPEN)


def _exactly_once(system: System, codec: str) -> Mapping[str, str]:
    return {
        **system.settings(codec),
        "B.exactly.once.source.support": "enabled",
        "A.consumer.isolation.level": "read_committed",
    }


def _far_source(stage: Stage, name: str, round_trip_s: float) -> ThroughputPart:
    """The source is far away from every system; the target is near, as one that pulls has it."""
    work, facts = _loaded(stage, name, FAR_CODEC)
    bound = stage.attempt(name, "limit", "", partial(limit, work, stage.say))
    with stage.source_afar.away(0.0, stage.logs() / f"{name}-proxy.log") as near:
        facts |= _proxy(stage, name, near, work)
    part = ThroughputPart(name=name, facts=facts | {"far": "source"}, limit=bound, systems={})
    return _far(stage, part, work, stage.source_afar, SOURCE, round_trip_s)


def _far_target(stage: Stage) -> ThroughputPart:
    """The target is far away from every system and the source is near, as one that pushes has it."""
    work, facts = _loaded(stage, FAR_TARGET, FAR_CODEC)
    part = ThroughputPart(name=FAR_TARGET, facts=facts | {"far": "target"}, limit=None, systems={})
    return _far(stage, part, work, stage.target_afar, TARGET, FAR_TARGET_S)


def _far(
    stage: Stage, part: ThroughputPart, work: Workload, distance: Distance, key: str, round_trip_s: float
) -> ThroughputPart:
    """Every system with what `key` names far away, and ours through the same proxy without its delay."""
    log = stage.logs() / f"{part.name}-proxy.log"
    with distance.away(0.0, log) as near:
        called = f"{part.name}-undelayed"
        undelayed = _copies(stage, part.name, work, systems=stage.ours, settings={key: near}, called=called).get(OURS)
    with distance.away(round_trip_s, log) as far:
        systems = _copies(stage, part.name, work, settings={key: far})
    facts = {**part.facts, "round_trip_ms": round_trip_s * 1e3}
    return replace(part, facts=facts, systems=systems, own=undelayed)


def _replicated(stage: Stage) -> ThroughputPart:
    """The target has three brokers, and acknowledges what two of them have."""
    with three_brokers() as target:
        stage = replace(stage, clusters=replace(stage.clusters, target=target, brokers=()))
        work, facts = _loaded(stage, REPLICATED, FAR_CODEC)
        systems = _copies(stage, REPLICATED, work, settings=dict.fromkeys(FACTORS, str(REPLICAS)))
    facts |= {"brokers": REPLICAS, "in_sync": IN_SYNC}
    return ThroughputPart(name=REPLICATED, facts=facts, limit=None, systems=systems)


def _proxy(stage: Stage, name: str, near: str, work: Workload) -> dict[str, Scalar]:
    """What the proxy itself can carry when it adds no delay."""
    with Connection(stage.clusters.source) as connection:
        ends = end_offsets(connection, work.topic, PARTITIONS)
    stored = log_shape(stage.clusters.source, work.topic, ends).stored
    seconds = min(fetch_only(near, work.topic, ends) for _ in range(PROXY_RUNS))
    found: dict[str, Scalar] = {
        "proxy_mb_per_s": stored / seconds / 1e6,
        "proxy_records_per_s": sum(ends) / seconds,
    }
    stage.say(f"{name}: the proxy alone carries {found['proxy_mb_per_s']:,.0f} stored MB/s")
    return found


def _loaded(
    stage: Stage,
    name: str,
    codec: str,
    configs: Mapping[str, str] | None = None,
    key_of: Callable[[int], bytes] | None = None,
) -> tuple[Workload, dict[str, Scalar]]:
    """The source topic of a throughput part, filled, and what is to be said of it."""
    topic, source = f"orders-{name}", stage.clusters.source
    stage.say(f"{name}: loading {stage.records:,} records")
    stage.clusters.begin_anew(keep=[])
    stage.clusters.create(source, topic, PARTITIONS, configs)
    loaded = load(
        source,
        topic,
        records=stage.records,
        partitions=PARTITIONS,
        codec=codec,
        batch_bytes=stage.batch_bytes,
        key_of=key_of,
    )
    with Connection(source) as connection:
        ends = end_offsets(connection, topic, PARTITIONS)
    shape = log_shape(source, topic, ends)
    work = Workload(clusters=stage.clusters, topic=topic, partitions=PARTITIONS, codec=codec, loaded=loaded)
    return work, {
        "records": loaded.records,
        "record_bytes": loaded.record_bytes,
        "codec": codec,
        "partitions": PARTITIONS,
        **_log_facts(shape),
    }


def _copies(
    stage: Stage,
    name: str,
    work: Workload,
    *,
    systems: Sequence[System] | None = None,
    called: str = "",
    settings: Mapping[str, str] = NOTHING,
) -> Mapping[str, Copy | Failed]:
    before = partial(stage.clusters.begin_anew, [work.topic])
    measure = partial(copy, work)
    return stage.each(
        called or name,
        work.topic,
        work.codec,
        measure,
        before=before,
        systems=systems,
        settings=settings,
    )


def _latency(stage: Stage, name: str, per_s: int) -> LatencyPart:
    course = Course(
        source=stage.clusters.source,
        target=stage.clusters.target,
        topic=f"orders-{per_s}",
        partitions=PARTITIONS,
        per_s=per_s,
        warm_up_s=stage.warm_up_s,
        measured_s=stage.measured_s,
        brokers=stage.clusters.brokers,
    )
    stage.warm(course)
    again = partial(stage.fresh, course.topic)
    again()
    lowest = stage.attempt(name, "floor", "", partial(floor, course))
    measure = partial(latency, course)
    beside = [*by_slots(stage.systems), *([RELAY] if stage.ours else [])]
    systems = stage.each(name, course.topic, "none", measure, before=again, systems=beside)
    facts: dict[str, Scalar] = {
        "per_s": per_s,
        "partitions": PARTITIONS,
        "warm_up_s": stage.warm_up_s,
        "measured_s": stage.measured_s,
    }
    return LatencyPart(name=name, facts=facts, floor=lowest, systems=systems)


def by_slots(systems: Sequence[System]) -> Sequence[System]:
    """Ours with one slot, for MM2 as shipped has one task and ours is compared with that; then as it is elsewhere."""
    found: list[System] = []
    for system in systems:
        if system.name == OURS:
            found += [replace(system, settings=lambda codec: ONE_SLOT), replace(system, name=TWO_SLOTS)]
        else:
            found.append(system)
    return found


def _start(stage: Stage) -> StartPart:
    topic = "orders-startup"
    stage.fresh(topic)
    load(
        stage.clusters.source,
        topic,
        records=START_RECORDS,
        partitions=PARTITIONS,
        codec="lz4",
        batch_bytes=stage.batch_bytes,
    )
    measure = partial(start, stage.clusters, topic, PARTITIONS, START_RECORDS)
    systems = stage.each(START, topic, "lz4", measure, before=partial(stage.clusters.begin_anew, [topic]))
    return StartPart(name=START, facts={"records": START_RECORDS, "partitions": PARTITIONS}, systems=systems)


def _verify(stage: Stage) -> ReadingsPart:
    work, facts = _loaded(stage, VERIFY, "lz4")
    before = partial(stage.clusters.begin_anew, [work.topic])
    measure = partial(verifying, work, stage.say)
    systems = stage.each(VERIFY, work.topic, work.codec, measure, before=before, systems=stage.ours, settings=VERIFYING)
    return ReadingsPart(name=VERIFY, facts=facts, systems=systems)


def _log_facts(shape: LogShape) -> dict[str, Scalar]:
    return {
        "batches": shape.batches,
        "batch_records": shape.records / shape.batches,
        "batch_stored_bytes": shape.stored / shape.batches,
    }


WAYS: Mapping[str, Callable[[Stage], Part]] = {
    "lz4": partial(_throughput, name="lz4", codec="lz4"),
    **{name: partial(_small, name=name) for name in BATCHES},
    "none": partial(_throughput, name="none", codec="none"),
    COMPACTED: _compacted,
    TRANSACTIONS: _transactions,
    **{name: partial(_far_source, name=name, round_trip_s=seconds) for name, seconds in ROUND_TRIPS.items()},
    FAR_TARGET: _far_target,
    REPLICATED: _replicated,
    TLS: _tls,
    **{name: partial(_latency, name=name, per_s=per_s) for name, per_s in RATES.items()},
    START: _start,
    VERIFY: _verify,
    KILLS: kills,
    AWAY: away,
    SWITCHOVER: switchover,
    SCALE: scale,
    **ALONE,
}
PARTS = tuple(WAYS)
BY_DEFAULT = tuple(name for name in PARTS if name not in UNJUDGED)


def run(stage: Stage, name: str) -> Part:
    """Run one of `PARTS`. Raises NotLoaded and NeverHappened where the preparation, not a system, fails."""
    return WAYS[name](stage)
