"""How fast a pre-loaded topic is copied, at what cost, and how near that is to the limit of the same brokers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TextIO

from tests.support.clusters import set_configs
from tests.support.eventually import wait_until
from tests.support.systems import System, SystemEnded, SystemRun
from tests.support.tree_usage import Cpu, used_by
from tools.bench.clusters import IN_SYNC, REPLICAS, three_brokers, tls_clusters
from tools.bench.compare import compare, compare_in_order
from tools.bench.distance import Distance
from tools.bench.limit import LogShape, both_at_once, fetch_only, log_shape, produce_only, read_batches, requests
from tools.bench.orders import load
from tools.bench.results import LIMIT, MEBIBYTE, SHIPPED, TUNED, Failed, Readings, Row, Scalar, Systems
from tools.bench.stage import FIRST_RECORD_WITHIN_S, PARTITIONS, STANDSTILL_S, Part, Stage, Trial, Workload, log_facts
from tools.bench.wire import end_offsets, ends_of

POLL_S = 0.02  # between two looks at the target's end offsets: the error of the window's length
SAMPLE_S = 1.0  # between two looks at the process tree, which cost far more
SETTLED_S = 5.0  # MM2's tuned producer lingers 50 ms, its transactions end with each poll
RUNS = 3
BROKERS_WARM_S = 45.0
SHORTEST_WARM_UP_S = 3.0  # counted for a run that is over sooner, as small ones are
WARM_UP_S = 15.0  # of copying: the compilers of two brokers that serve it take 40 % of a core for so long
LIMIT_TOPIC = "limit"

SMALL, TINY = "lz4_16k", "lz4_1k"
COMPACTED, TRANSACTIONS, TLS, REPLICATED, FAR_TARGET = "compacted", "transactions", "tls", "rf3", "far_target"
FAR_TARGET_S = 0.080
UNDELAYED, PLAIN, PLAINTEXT = "undelayed", "plain", "plaintext"
"""Lockstep itself without what the part asks of all: a delay, transactions, TLS."""
SOURCE, TARGET = "A.bootstrap.servers", "B.bootstrap.servers"
FACTORS = (
    *("replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor"),
    *("offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor"),
)
EXACTLY_ONCE = {"B.exactly.once.source.support": "enabled", "A.consumer.isolation.level": "read_committed"}

ROWS = (
    Row("records/s", "records_per_s"),
    Row("MB/s", "mb_per_s"),
    Row("  to tuned MM2", "records_per_s", to=TUNED),
    Row("", "records_per_s", to=SHIPPED),
    Row("  to the limit", "records_per_s", to=LIMIT),
    Row("  to both at once", "records_per_s", to="both_at_once"),
    *(Row(f"  to {own}", "records_per_s", to=own) for own in (UNDELAYED, PLAIN, PLAINTEXT)),
    Row("CPU s per million", "cpu_s_per_million", 2),
    Row("  user", "cpu_user_s_per_million", 2),
    Row("  system", "cpu_system_s_per_million", 2),
    Row("  CPU to tuned MM2", "cpu_s_per_million", to=TUNED, ratio="cpu_ratio"),
    Row("", "cpu_s_per_million", to=SHIPPED, ratio="cpu_ratio"),
    Row("brokers' CPU s per million", "brokers_cpu_s_per_million", 2),
    Row("start to first record, s", "startup_s", 1),
    Row("start to last record, s", "total_s", 1),
    Row("CPU s per million, with start", "cpu_s_per_million_from_start", 2),
    *(Row("", "cpu_s_per_million_from_start", to=peer, ratio="cpu_from_start_ratio") for peer in (TUNED, SHIPPED)),
    Row("peak RSS, MiB", "peak_rss_mib"),
    Row("records compared, all equal", "records_compared"),
)
SOURCE_NOTE = (
    "Source: {records:,} records of {record_bytes:.0f} bytes (key and value), {codec}, {partitions} partitions; "
    "{batches:,} batches of {batch_records:.0f} records and {batch_stored_bytes:,.0f} stored bytes on average."
)
EQUAL_NOTE = "Equal: the end offsets of every partition, and the sampled records in key, value, headers and timestamp."
LIMIT_NOTE = "The limit is the lower of fetch only and produce only, each the best of its runs."
FAR_NOTE = (
    "A proxy before the {far} makes each round trip {round_trip_ms:g} ms longer; undelayed is Lockstep through the "
    "same proxy without its delay."
)
PROXY_NOTE = (
    "Without delay the proxy alone carries {proxy_mb_per_s:,.0f} stored MB/s, {proxy_records_per_s:,.0f} records/s "
    "(fetch only)."
)
TLS_NOTE = (
    "Both clusters are reached over TLS, with the versions and suites that each side prefers; plaintext is Lockstep "
    "without, on the same brokers, the better of one run before and one after."
)
TRANSACTIONS_NOTE = (
    "Records and progress go to the target in transactions; plain is Lockstep without. Markers take offsets, so a copy "
    "is complete when what is committed has stopped to grow; every record was compared, not samples."
)
REPLICATED_NOTE = (
    "The target has {brokers} brokers, every topic there as many replicas, and {in_sync} of them must have what is "
    "acknowledged."
)
COMPACTED_NOTE = (
    "The log cleaner has been through the source: {records:,} of {written:,} records are left, and batches have gaps. "
    "The limit is of before that. Every record was compared, not samples."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One system copied one pre-loaded topic.

    The *window* runs from the poll that first saw a record on the target to the poll that saw the last one; what
    already lay there at the first poll does not count as copied within it. Times in seconds.
    """

    records: int
    window_records: int
    window_s: float
    start_s: float
    total_s: float
    cpu_window: Cpu
    cpu_total: Cpu
    peak_rss_bytes: int
    record_bytes: float
    compared: int
    brokers_cpu_s: float | None = None
    """Of both brokers in the window; None where it was not measured."""

    def readings(self) -> Readings:
        """Return the figures by their keys."""
        rate = self.window_records / self.window_s if self.window_s else 0.0
        million = self.window_records / 1e6 if self.window_records else float("inf")
        values = {
            "records_per_s": rate,
            "mb_per_s": rate * self.record_bytes / 1e6,
            "records_per_s_from_start": self.records / self.total_s,
            "cpu_s_per_million": self.cpu_window.total / million,
            "cpu_user_s_per_million": (self.cpu_window.total - self.cpu_window.system) / million,
            "cpu_system_s_per_million": self.cpu_window.system / million,
            "cpu_s_per_million_from_start": self.cpu_total.total * 1e6 / self.records,
            "startup_s": self.start_s,
            "total_s": self.total_s,
            "peak_rss_mib": self.peak_rss_bytes / MEBIBYTE,
            "records_compared": self.compared,
        }
        if self.brokers_cpu_s is not None:
            values["brokers_cpu_s_per_million"] = self.brokers_cpu_s / million
        return Readings(values=values)


def copy(work: Workload, trial: Trial) -> Readings:
    """Run one system on a clean target until all is copied, on brokers that have served it before.

    Raises SystemEnded, NeverHappened, and Lost when the copy is not the source.
    """
    _warm(work, trial)
    with _copying(work, trial) as (run, copied):
        at_first = run.wait(copied, within=FIRST_RECORD_WITHIN_S, every=POLL_S, otherwise="nothing was copied")
        first_at, first_cpu, brokers = run.elapsed(), run.use(), used_by(work.clusters.brokers)
        with trial.log.with_suffix(".tsv").open("w") as course:
            course.write(f"{first_at:.3f}\t{at_first}\n")
            settled_s = SETTLED_S if work.markers else 0.0
            last_at, last_cpu = _follow(run, copied, at_first, work.loaded.records, course, settled_s=settled_s)
            brokers = used_by(work.clusters.brokers) - brokers
        peak = run.account.peak_rss
    compare_all = compare_in_order if work.gaps else compare
    compared = compare_all(work.clusters.source, work.clusters.target, work.topic, work.remote, work.partitions)
    return Copy(
        records=work.loaded.records,
        window_records=work.loaded.records - at_first,
        window_s=last_at - first_at,
        start_s=first_at,
        total_s=last_at,
        cpu_window=last_cpu.since(first_cpu),
        cpu_total=last_cpu,
        peak_rss_bytes=peak,
        record_bytes=work.loaded.record_bytes,
        compared=compared,
        brokers_cpu_s=brokers if work.clusters.brokers and not work.markers else None,
    ).readings()


@contextmanager
def _copying(work: Workload, trial: Trial) -> Iterator[tuple[SystemRun, Callable[[], int]]]:
    """The system while it runs, and what says how many records (with markers, offsets) of it are on the target."""
    target = work.clusters.target
    with trial.running() as run, ends_of(target, work.remote, work.partitions, committed=work.markers) as ends:
        yield run, lambda: sum(ends())


def _warm(work: Workload, trial: Trial) -> None:
    """Let the system copy for a while, from the start again where it has copied all there is, and remove what it wrote.
    The brokers' compilers follow what a client asks: the same commit copied half as fast from brokers that saw it, or
    transactions, for the first time, and who copies all there is in four seconds had seen no more of them."""
    copied_s = 0.0
    while copied_s < WARM_UP_S:
        with _copying(work, replace(trial, log=trial.log.with_suffix(".warm.log"))) as (run, copied):
            run.wait(copied, within=FIRST_RECORD_WITHIN_S, every=POLL_S, otherwise="nothing was copied")
            began = run.elapsed()
            while copied() < work.loaded.records and copied_s + run.elapsed() - began < WARM_UP_S:
                run.check()
                time.sleep(POLL_S)
            copied_s += max(SHORTEST_WARM_UP_S, run.elapsed() - began)
        work.clusters.begin_anew([work.topic])


def _follow(
    run: SystemRun, copied: Callable[[], int], seen: int, wanted: int, course: TextIO, *, settled_s: float = 0.0
) -> tuple[float, Cpu]:
    """When the copy grew for the last time, and what it had cost by then. With `settled_s` its offsets say only that
    there are at least so many records, and it is complete once it has not grown for so long."""
    moved = sampled = run.elapsed()
    used = run.use()
    while seen < wanted or run.elapsed() - moved < settled_s:
        time.sleep(POLL_S)
        now = copied()
        if now > seen:
            seen, moved = now, run.elapsed()
            course.write(f"{moved:.3f}\t{seen}\n")
            if moved - sampled > SAMPLE_S or seen >= wanted:
                used, sampled = run.use(), moved
            continue
        run.check()
        if run.elapsed() - moved > STANDSTILL_S:
            raise SystemEnded(f"{seen} of {wanted} records copied, then nothing more for {STANDSTILL_S:.0f} s")
        if run.elapsed() - sampled > SAMPLE_S:
            run.use()
            sampled = run.elapsed()
    if seen > wanted and not settled_s:
        raise SystemEnded(f"{seen} records on the target, {wanted} on the source")
    return moved, used


# -- the limit ---------------------------------------------------------------------------------------------------------


def limit(work: Workload, say: Callable[[str], None]) -> Systems:
    """Three runs in each direction and three of both at once, after as many of these as warm both brokers. Raises
    BrokerRefused."""
    source, target = work.clusters.source, work.clusters.target
    ends = end_offsets(source, work.topic, work.partitions)
    ready = requests(LIMIT_TOPIC, read_batches(source, work.topic, ends))

    def appended(how: Callable[[], float]) -> float:
        work.clusters.create(target, LIMIT_TOPIC, work.partitions)
        seconds = how()
        work.clusters.delete(target, LIMIT_TOPIC)
        return seconds

    both = partial(appended, partial(both_at_once, source, work.topic, ends, target, ready))
    # A broker's JVM that has not yet compiled what appends batches spends three times the CPU on it.
    began = time.monotonic()
    while time.monotonic() - began < BROKERS_WARM_S:
        both()
    measured = {
        "fetch_only": partial(fetch_only, source, work.topic, ends),
        "produce_only": partial(appended, partial(produce_only, target, ready)),
        "both_at_once": both,
    }
    rates = {name: [sum(ends) / measure() for _ in range(RUNS)] for name, measure in measured.items()}
    for name, each in rates.items():
        say(f"{name.replace('_', ' ')} {', '.join(f'{rate / 1000:,.0f}k' for rate in each)} records/s")
    return limit_readings({name: max(each) for name, each in rates.items()}, work.loaded.record_bytes)


def limit_readings(best: Mapping[str, float], record_bytes: float) -> Systems:
    """What the best rates come to. The limit is the lower of both bests: a copy that fetches and produces one after the
    other cannot beat it, one that overlaps them may."""
    lowest = min(best["fetch_only"], best["produce_only"])
    return {
        **{
            name: Readings(values={"records_per_s": rate, "mb_per_s": rate * record_bytes / 1e6})
            for name, rate in best.items()
        },
        LIMIT: Readings(values={"records_per_s": lowest}),
    }


def _limit(stage: Stage, name: str, work: Workload) -> Systems:
    found = stage.attempt(name, LIMIT, partial(limit, work, stage.say))
    return {LIMIT: found} if isinstance(found, Failed) else found


# -- parts -------------------------------------------------------------------------------------------------------------

Found = tuple[Mapping[str, Scalar], Systems]


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
    """Lockstep itself, under another name: without what the part asks of all."""
    found = _copies(stage, name, work, systems=stage.ours, called=f"{name}-{called}", settings=settings)
    return dict(zip([called], found.values(), strict=False))


def _better(first: Systems, second: Systems) -> Systems:
    """Brokers are still getting faster: what comes first is at a disadvantage, so it is measured again at the end."""

    def rate(one: Readings | Failed) -> float:
        return one.values["records_per_s"] if isinstance(one, Readings) else 0.0

    return {name: max(one, second[name], key=rate) for name, one in first.items()}


def _plainly(name: str, codec: str, batch_bytes: int, divisor: int, stage: Stage) -> Found:
    """As `lz4`, in batches of a producer's default size, or smaller: so many requests take their time."""
    if batch_bytes:
        stage = replace(stage, batch_bytes=batch_bytes, records=max(PARTITIONS, stage.records // divisor))
    work = stage.loaded(name, codec)
    bound = _limit(stage, name, work)
    return work.facts, {**_copies(stage, name, work), **bound}


def _transactions(stage: Stage) -> Found:
    """Every system with exactly-once, and ours without."""
    work = stage.loaded(TRANSACTIONS)
    bound = _limit(stage, TRANSACTIONS, work)
    first = _own(stage, TRANSACTIONS, work, PLAIN)
    systems = _copies(stage, TRANSACTIONS, replace(work, gaps=True, markers=True), settings=EXACTLY_ONCE)
    return work.facts, {**systems, **_better(first, _own(stage, TRANSACTIONS, work, PLAIN)), **bound}


def _tls(stage: Stage) -> Found:
    """Every system over TLS on both sides, and ours without, on the same brokers."""
    with tls_clusters() as (clusters, over_tls):
        stage = replace(stage, clusters=clusters)
        work = stage.loaded(TLS)
        first = _own(stage, TLS, work, PLAINTEXT)
        systems = _copies(stage, TLS, work, settings=over_tls)
        return work.facts, {**systems, **_better(first, _own(stage, TLS, work, PLAINTEXT))}


def _far_source(name: str, round_trip_s: float, stage: Stage) -> Found:
    """The source is far away from every system; the target is near, as one that pulls has it."""
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


def _far_target(stage: Stage) -> Found:
    """The target is far away from every system and the source is near, as one that pushes has it."""
    work = stage.loaded(FAR_TARGET)
    facts, systems = _far(stage, FAR_TARGET, work, stage.target_afar, TARGET, FAR_TARGET_S)
    return {**facts, "far": "target"}, systems


def _far(stage: Stage, name: str, work: Workload, distance: Distance, key: str, round_trip_s: float) -> Found:
    """Every system with what `key` names far away, and ours through the same proxy without its delay."""
    log = stage.work / "proxy.log"
    with distance.away(0.0, log) as near:
        undelayed = _own(stage, name, work, UNDELAYED, **{key: near})
    with distance.away(round_trip_s, log) as far:
        systems = _copies(stage, name, work, settings={key: far})
    return {**work.facts, "round_trip_ms": round_trip_s * 1e3}, {**systems, **undelayed}


def _replicated(stage: Stage) -> Found:
    """The target has three brokers, and acknowledges what two of them have."""
    with three_brokers() as target:
        stage = replace(stage, clusters=replace(stage.clusters, target=target, brokers=()))
        work = stage.loaded(REPLICATED)
        systems = _copies(stage, REPLICATED, work, settings=dict.fromkeys(FACTORS, str(REPLICAS)))
    return {**work.facts, "brokers": REPLICAS, "in_sync": IN_SYNC}, systems


# -- a source that the log cleaner has been through --------------------------------------------------------------------

EACH = 4
"""One record of so many in a partition bears the key that the next such bears too; all others have their own."""

UNTIL_LATER = "86400000"
UNCLEANED = {"cleanup.policy": "compact", "min.compaction.lag.ms": UNTIL_LATER, "segment.bytes": str(64 << 20)}
"""Settings under which the topic is filled and then copied: nothing is cleaned before `clean` asks for it, nor is
anything in the copy on the target, which gets them too."""

CLEAN_NOW = {"min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "50"}
CLEAN_NO_MORE = {"min.compaction.lag.ms": UNTIL_LATER, "min.cleanable.dirty.ratio": None, "segment.ms": None}
CLEANED_WITHIN_S = 300.0


def key_of(number: int, partitions: int) -> bytes:
    """Return the key of a record: one in `EACH` of a partition is superseded by the next such."""
    own = number // partitions % EACH
    return b"customer-%09d" % number if own else b"latest"


def left_of(records: int, partitions: int) -> int:
    """Return how many of so many records, dealt to the partitions in turn, are left when all is cleaned."""
    left = 0
    for partition in range(partitions):
        held = len(range(partition, records, partitions))
        superseded = len(range(0, held, EACH))
        left += held - superseded + min(superseded, 1)
    return left


def wait_compacted(bootstrap: str, topic: str, ends: Sequence[int], wanted: int) -> LogShape:
    """Wait until the cleaner has left no more than so many records, and return what is left. Raises NeverHappened."""

    def cleaned() -> LogShape | None:
        shape = log_shape(bootstrap, topic, ends)
        return shape if shape.records <= wanted else None

    return wait_until(cleaned, within=CLEANED_WITHIN_S, every=2.0, what=f"{topic} down to {wanted} records")


def clean(work: Workload) -> LogShape:
    """Have the broker's cleaner remove all that was superseded, for no broker takes a batch with gaps from a producer.

    One record more in each partition makes the broker begin a new segment: it never cleans the one it writes to.
    Returns what is then there. Raises NeverHappened and KafkaException.
    """
    source, topic = work.clusters.source, work.topic
    set_configs(source, topic, CLEAN_NOW)
    load(source, topic, records=PARTITIONS, partitions=PARTITIONS, key_of=lambda _: b"the end")
    ends = end_offsets(source, topic, PARTITIONS)
    shape = wait_compacted(source, topic, ends, left_of(work.loaded.records, PARTITIONS) + PARTITIONS)
    set_configs(source, topic, CLEAN_NO_MORE)
    return shape


def _compacted(stage: Stage) -> Found:
    """The limit is that of the batches before they were cleaned: no broker takes them afterwards."""
    work = stage.loaded(COMPACTED, configs=UNCLEANED, key_of=lambda number: key_of(number, PARTITIONS))
    bound = _limit(stage, COMPACTED, work)
    stage.say(f"{COMPACTED}: cleaning")
    shape = clean(work)
    stage.say(f"{COMPACTED}: {shape.records:,} of {stage.records:,} records are left in {shape.batches:,} batches")
    work = replace(work, loaded=replace(work.loaded, records=shape.records), gaps=True)
    facts = {**work.facts, "records": shape.records, "written": stage.records, **log_facts(shape)}
    return facts, {**_copies(stage, COMPACTED, work), **bound}


def _part(name: str, measure: Callable[[Stage], Found], *notes: str, limited: bool = True, asked: bool = False) -> Part:
    """A part of throughput. `asked`: only if it is named."""
    return Part(
        name=name,
        title=f"Throughput, {name}",
        rows=ROWS,
        measure=measure,
        notes=(SOURCE_NOTE, *([LIMIT_NOTE] if limited else []), EQUAL_NOTE, *notes),
        by_default=not asked,
    )


PARTS = (
    _part("lz4", partial(_plainly, "lz4", "lz4", 0, 1)),
    _part(SMALL, partial(_plainly, SMALL, "lz4", 16 << 10, 2)),
    _part(TINY, partial(_plainly, TINY, "lz4", 1 << 10, 12), asked=True),
    _part("none", partial(_plainly, "none", "none", 0, 1)),
    _part(COMPACTED, _compacted, COMPACTED_NOTE),
    _part(TRANSACTIONS, _transactions, TRANSACTIONS_NOTE),
    _part("rtt_80", partial(_far_source, "rtt_80", 0.080), FAR_NOTE, PROXY_NOTE),
    _part("rtt_200", partial(_far_source, "rtt_200", 0.200), FAR_NOTE, PROXY_NOTE, asked=True),
    _part(FAR_TARGET, _far_target, FAR_NOTE, limited=False, asked=True),
    _part(REPLICATED, _replicated, REPLICATED_NOTE, limited=False, asked=True),
    _part(TLS, _tls, TLS_NOTE, limited=False),
)
