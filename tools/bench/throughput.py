"""How fast a pre-loaded topic is copied, at what cost, and how near that is to the limit of the same brokers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tests.faults.deployment import FACTORS
from tests.support.clusters import set_configs
from tests.support.eventually import wait_until
from tests.support.systems import System
from tools.bench.clusters import IN_SYNC, REPLICAS, three_brokers, tls_clusters
from tools.bench.copying import RUNS, copy, limit
from tools.bench.distance import Distance
from tools.bench.limit import LogShape, fetch_only, log_shape
from tools.bench.orders import load
from tools.bench.results import LIMIT, Failed, Readings, Systems
from tools.bench.stage import PARTITIONS, Measured, Stage, Workload, log_facts
from tools.bench.wire import end_offsets

SMALL, TINY = "lz4_16k", "lz4_1k"
COMPACTED, TRANSACTIONS, TLS, REPLICATED, FAR_TARGET = "compacted", "transactions", "tls", "rf3", "far_target"
FAR_TARGET_S = 0.080
UNDELAYED, PLAIN, PLAINTEXT = "undelayed", "plain", "plaintext"
"""Lockstep itself without what the part asks of all: a delay, transactions, TLS."""
SOURCE, TARGET = "A.bootstrap.servers", "B.bootstrap.servers"
EXACTLY_ONCE = {"B.exactly.once.source.support": "enabled", "A.consumer.isolation.level": "read_committed"}


def _limit(stage: Stage, name: str, work: Workload) -> Systems:
    bound = stage.attempt(name, LIMIT, partial(limit, work, stage.say))
    return {LIMIT: bound} if isinstance(bound, Failed) else bound


def _copies(
    stage: Stage,
    name: str,
    work: Workload,
    *,
    systems: Sequence[System] | None = None,
    called: str = "",
    settings: Mapping[str, str] | None = None,
) -> Systems:
    return stage.each(
        name,
        work.topic,
        partial(copy, work),
        keep=[work.topic],
        codec=work.codec,
        systems=systems,
        settings=settings,
        called=called,
    )


def _own(stage: Stage, name: str, work: Workload, called: str, **settings: str) -> Mapping[str, Readings | Failed]:
    """Copy by Lockstep under another name: without what the part asks of all."""
    systems = _copies(stage, name, work, systems=stage.ours, called=f"{name}-{called}", settings=settings)
    return dict(zip([called], systems.values(), strict=False))


def _better(first: Systems, second: Systems) -> Systems:
    """Return the better of both. Brokers get faster for a while, so what comes first is measured again at the end."""

    def rate(readings: Readings | Failed) -> float:
        return readings.values["records_per_s"] if isinstance(readings, Readings) else 0.0

    return {name: max(readings, second[name], key=rate) for name, readings in first.items()}


def _plainly(name: str, codec: str, batch_bytes: int, divisor: int, stage: Stage) -> Measured:
    """Copy as is, or in batches of a producer's default size or smaller: so many requests take their time."""
    if batch_bytes:
        stage = replace(stage, batch_bytes=batch_bytes, records=max(PARTITIONS, stage.records // divisor))
    work = stage.loaded(name, codec)
    bound = _limit(stage, name, work)
    return work.facts, {**_copies(stage, name, work), **bound}


def _transactions(stage: Stage) -> Measured:
    """Copy by every system with exactly-once, and by Lockstep without."""
    work = stage.loaded(TRANSACTIONS)
    bound = _limit(stage, TRANSACTIONS, work)
    first = _own(stage, TRANSACTIONS, work, PLAIN)
    systems = _copies(stage, TRANSACTIONS, replace(work, gaps=True, markers=True), settings=EXACTLY_ONCE)
    return work.facts, {**systems, **_better(first, _own(stage, TRANSACTIONS, work, PLAIN)), **bound}


def _tls(stage: Stage) -> Measured:
    """Copy by every system over TLS on both sides, and by Lockstep without, on the same brokers."""
    with tls_clusters() as (clusters, over_tls):
        stage = replace(stage, clusters=clusters)
        work = stage.loaded(TLS)
        first = _own(stage, TLS, work, PLAINTEXT)
        systems = _copies(stage, TLS, work, settings=over_tls)
        return work.facts, {**systems, **_better(first, _own(stage, TLS, work, PLAINTEXT))}


def _far_source(name: str, round_trip_s: float, stage: Stage) -> Measured:
    """Put the source far away from every system; the target is near, as one that pulls has it."""
    work = stage.loaded(name)
    bound = _limit(stage, name, work)
    ends = end_offsets(work.clusters.source, work.topic, PARTITIONS)
    with stage.source_afar.away(0.0, stage.work / "proxy.log") as near:
        seconds = min(fetch_only(near, work.topic, ends) for _ in range(RUNS))
    stored = log_shape(work.clusters.source, work.topic, ends).stored
    proxy = {"proxy_mb_per_s": stored / seconds / 1e6, "proxy_records_per_s": sum(ends) / seconds}
    stage.say(f"{name}: the proxy alone carries {proxy['proxy_mb_per_s']:,.0f} stored MB/s")
    facts, systems = _far(stage, name, work, stage.source_afar, SOURCE, round_trip_s)
    return {**facts, "far": "source", **proxy}, {**systems, **bound}


def _far_target(stage: Stage) -> Measured:
    """Put the target far away from every system; the source is near, as one that pushes has it."""
    work = stage.loaded(FAR_TARGET)
    facts, systems = _far(stage, FAR_TARGET, work, stage.target_afar, TARGET, FAR_TARGET_S)
    return {**facts, "far": "target"}, systems


def _far(stage: Stage, name: str, work: Workload, distance: Distance, key: str, round_trip_s: float) -> Measured:
    """Copy with what `key` names far away, and by Lockstep through the same proxy without its delay."""
    log = stage.work / "proxy.log"
    with distance.away(0.0, log) as near:
        undelayed = _own(stage, name, work, UNDELAYED, **{key: near})
    with distance.away(round_trip_s, log) as far:
        systems = _copies(stage, name, work, settings={key: far})
    return {**work.facts, "round_trip_ms": round_trip_s * 1e3}, {**systems, **undelayed}


def _replicated(stage: Stage) -> Measured:
    """Copy to a target of three brokers, which acknowledges what two of them have."""
    with three_brokers() as target:
        stage = replace(stage, clusters=replace(stage.clusters, target=target, brokers=()))
        work = stage.loaded(REPLICATED)
        systems = _copies(stage, REPLICATED, work, settings=dict.fromkeys(FACTORS, str(REPLICAS)))
    return {**work.facts, "brokers": REPLICAS, "in_sync": IN_SYNC}, systems


SHARED_KEY_EVERY = 4
"""Every fourth record of a partition has one shared key, so that only the last of them stays. All others have their
own."""

UNTIL_LATER = "86400000"
UNCLEANED = {"cleanup.policy": "compact", "min.compaction.lag.ms": UNTIL_LATER, "segment.bytes": str(64 << 20)}
"""Nothing is cleaned before `clean` asks for it, nor is anything in the copy on the target, which gets these too."""

CLEAN_NOW = {"min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "50"}
CLEAN_NO_MORE = {"min.compaction.lag.ms": UNTIL_LATER, "min.cleanable.dirty.ratio": None, "segment.ms": None}
CLEANED_WITHIN_S = 300.0


def key_of(number: int, partitions: int) -> bytes:
    """Return the key of a record: one in `SHARED_KEY_EVERY` of a partition is superseded by the next such."""
    own = number // partitions % SHARED_KEY_EVERY
    return b"customer-%09d" % number if own else b"latest"


def left_of(records: int, partitions: int) -> int:
    """Return how many of so many records, dealt to the partitions in turn, are left when all is cleaned."""
    held = (len(range(partition, records, partitions)) for partition in range(partitions))
    return sum(count - len(range(0, count, SHARED_KEY_EVERY)) + min(count, 1) for count in held)


def wait_compacted(bootstrap: str, topic: str, ends: Sequence[int], wanted: int) -> LogShape:
    """Wait until the cleaner has left no more than so many records, and return what is left. Raises NeverHappened."""

    def cleaned() -> LogShape | None:
        shape = log_shape(bootstrap, topic, ends)
        return shape if shape.records <= wanted else None

    return wait_until(cleaned, within=CLEANED_WITHIN_S, every=2.0, what=f"{topic} down to {wanted} records")


def clean(work: Workload) -> LogShape:
    """Have the broker's cleaner remove all that was superseded, for no broker takes a batch with gaps from a producer.

    One record more in each partition makes the broker begin a new segment: it never cleans the one it writes to.
    """
    source, topic = work.clusters.source, work.topic
    set_configs(source, topic, CLEAN_NOW)
    load(source, topic, records=PARTITIONS, partitions=PARTITIONS, key_of=lambda _: b"the end")
    ends = end_offsets(source, topic, PARTITIONS)
    shape = wait_compacted(source, topic, ends, left_of(work.loaded.records, PARTITIONS) + PARTITIONS)
    set_configs(source, topic, CLEAN_NO_MORE)
    return shape


def _compacted(stage: Stage) -> Measured:
    """Copy what the cleaner left. The limit is that of the batches before: no broker takes them afterwards."""
    work = stage.loaded(COMPACTED, configs=UNCLEANED, key_of=lambda number: key_of(number, PARTITIONS))
    bound = _limit(stage, COMPACTED, work)
    stage.say(f"{COMPACTED}: cleaning")
    shape = clean(work)
    stage.say(f"{COMPACTED}: {shape.records:,} of {stage.records:,} records are left in {shape.batches:,} batches")
    work = replace(work, loaded=replace(work.loaded, records=shape.records), gaps=True)
    facts = {**work.facts, "records": shape.records, "written": stage.records, **log_facts(shape)}
    return facts, {**_copies(stage, COMPACTED, work), **bound}


MEASURES: Mapping[str, Callable[[Stage], Measured]] = {
    "lz4": partial(_plainly, "lz4", "lz4", 0, 1),
    SMALL: partial(_plainly, SMALL, "lz4", 16 << 10, 2),
    TINY: partial(_plainly, TINY, "lz4", 1 << 10, 12),
    "none": partial(_plainly, "none", "none", 0, 1),
    COMPACTED: _compacted,
    TRANSACTIONS: _transactions,
    "rtt_80": partial(_far_source, "rtt_80", 0.080),
    "rtt_200": partial(_far_source, "rtt_200", 0.200),
    FAR_TARGET: _far_target,
    REPLICATED: _replicated,
    TLS: _tls,
}
