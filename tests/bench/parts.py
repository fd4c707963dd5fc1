"""The parts of the bench, each with its preparation, and with every system that fails shown as failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException

from tests.bench.arriving import new_topics, ten_topics
from tests.bench.catching_up import Backlog, NoRoom, catch_up, room_for
from tests.bench.clusters import Clusters
from tests.bench.compacted import UNCLEANED, clean, key_of
from tests.bench.compare import Differs
from tests.bench.distance import Distance
from tests.bench.figures import OURS, UNDELAYED, Copy, Failed, LatencyPart, Part, Scalar, StartPart, ThroughputPart
from tests.bench.idle import Fleet, idle
from tests.bench.latency import Course, Lost, floor, latency
from tests.bench.limit import LogShape, fetch_only, log_shape
from tests.bench.load import load
from tests.bench.orders import Orders
from tests.bench.readings import ReadingsPart
from tests.bench.starting import start
from tests.bench.systems import System, SystemEnded, properties
from tests.bench.throughput import Workload, copy, limit
from tests.bench.wire import BrokerRefused, Connection, end_offsets
from tests.harness.eventually import NeverHappened

__all__ = ["BY_DEFAULT", "PARTITIONS", "PARTS", "Bench"]

PARTITIONS = 8
CODECS = {"lz4": "lz4", "none": "none"}
RATES = {"latency_500": 500, "latency_5000": 5_000}
WARM_PER_S = 4_000
WARM_S = 20.0
START = "startup"
ROUND_TRIPS = {"rtt_80": 0.080, "rtt_200": 0.200}
FAR_CODEC = "lz4"
PROXY_RUNS = 3
COMPACTED = "compacted"
IDLE, CATCH_UP, NEW_TOPIC, TEN_TOPICS = "idle_2000", "catch_up", "new_topic", "ten_topics"
READ = (IDLE, CATCH_UP, NEW_TOPIC, TEN_TOPICS)
PARTS = (*CODECS, COMPACTED, *ROUND_TRIPS, *RATES, START, *READ)
BY_DEFAULT = tuple(part for part in PARTS if part != "rtt_200")
START_RECORDS = 10_000
IDLE_TOPICS, IDLE_PARTITIONS, IDLE_PERIOD_S = 20, 100, 60.0
BUSY_PER_S = 4_000

# What a system, or a broker under load, may do wrong; anything else is our mistake and ends the bench with a traceback.
WRONG = (SystemEnded, Differs, Lost, NoRoom, BrokerRefused, NeverHappened, KafkaException, OSError)

Measured = TypeVar("Measured")
Measure = Callable[[System, Path, Path], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One invocation: which systems, on which clusters, how much, and where the output goes."""

    clusters: Clusters
    distance: Distance
    systems: Sequence[System]
    records: int
    backlog_bytes: int
    batch_bytes: int
    measured_s: float
    warm_up_s: float
    output: Path
    work: Path
    say: Callable[[str], None]

    def part(self, name: str) -> Part:
        """Run one of `PARTS`. Raises NotLoaded and NeverHappened where the preparation, not a system, fails."""
        ways: Mapping[str, Callable[[], Part]] = {
            **{each: partial(self._throughput, each, codec) for each, codec in CODECS.items()},
            COMPACTED: self._compacted,
            **{each: partial(self._far, each, seconds) for each, seconds in ROUND_TRIPS.items()},
            **{each: partial(self._latency, each, per_s) for each, per_s in RATES.items()},
            START: self._start,
            IDLE: self._idle,
            CATCH_UP: self._catch_up,
            NEW_TOPIC: self._new_topic,
            TEN_TOPICS: self._ten_topics,
        }
        return ways[name]()

    def _throughput(self, name: str, codec: str) -> ThroughputPart:
        work, facts = self._loaded(name, codec)
        bound = self._try(name, "limit", "", partial(limit, work, self.say))
        return ThroughputPart(name=name, facts=facts, limit=bound, systems=self._copies(name, work))

    def _compacted(self) -> ThroughputPart:
        """The limit is that of the batches before they were cleaned: no broker takes them afterwards."""
        work, facts = self._loaded(COMPACTED, "lz4", UNCLEANED, lambda number: key_of(number, PARTITIONS))
        bound = self._try(COMPACTED, "limit", "", partial(limit, work, self.say))
        self.say(f"{COMPACTED}: cleaning")
        left, shape = clean(self.clusters, work.topic, PARTITIONS, work.loaded, self.say)
        work = replace(work, loaded=left, gaps=True)
        facts |= {"records": left.records, "written": self.records, **_log_facts(shape)}
        return ThroughputPart(name=COMPACTED, facts=facts, limit=bound, systems=self._copies(COMPACTED, work))

    def _far(self, name: str, round_trip_s: float) -> ThroughputPart:
        """The source is far away from every system; the target is near, as one that pulls has it."""
        work, facts = self._loaded(name, FAR_CODEC)
        bound = self._try(name, "limit", "", partial(limit, work, self.say))
        log = self._logs() / f"{name}-proxy.log"
        with self.distance.away(0.0, log) as near:
            facts |= self._proxy(name, near, work)
            called = f"{name}-{UNDELAYED}"
            undelayed = self._copies(name, work, systems=self._ours, source=near, called=called).get(OURS)
        with self.distance.away(round_trip_s, log) as far:
            systems = self._copies(name, work, source=far)
        facts["round_trip_ms"] = round_trip_s * 1e3
        return ThroughputPart(name=name, facts=facts, limit=bound, systems=systems, undelayed=undelayed)

    def _proxy(self, name: str, near: str, work: Workload) -> dict[str, Scalar]:
        """What the proxy itself can carry when it adds no delay."""
        with Connection(self.clusters.source) as connection:
            ends = end_offsets(connection, work.topic, PARTITIONS)
        stored = log_shape(self.clusters.source, work.topic, ends).stored
        seconds = min(fetch_only(near, work.topic, ends) for _ in range(PROXY_RUNS))
        found: dict[str, Scalar] = {
            "proxy_mb_per_s": stored / seconds / 1e6,
            "proxy_records_per_s": sum(ends) / seconds,
        }
        self.say(f"{name}: the proxy alone carries {found['proxy_mb_per_s']:,.0f} stored MB/s")
        return found

    def _loaded(
        self,
        name: str,
        codec: str,
        configs: Mapping[str, str] | None = None,
        key_of: Callable[[int], bytes] | None = None,
    ) -> tuple[Workload, dict[str, Scalar]]:
        """The source topic of a throughput part, filled, and what is to be said of it."""
        topic, source = f"orders-{name}", self.clusters.source
        self.say(f"{name}: loading {self.records:,} records")
        self.clusters.begin_anew(keep=[])
        self.clusters.create(source, topic, PARTITIONS, configs)
        loaded = load(
            source,
            topic,
            records=self.records,
            partitions=PARTITIONS,
            codec=codec,
            batch_bytes=self.batch_bytes,
            key_of=key_of,
        )
        with Connection(source) as connection:
            ends = end_offsets(connection, topic, PARTITIONS)
        shape = log_shape(source, topic, ends)
        work = Workload(clusters=self.clusters, topic=topic, partitions=PARTITIONS, codec=codec, loaded=loaded)
        return work, {
            "records": loaded.records,
            "record_bytes": loaded.record_bytes,
            "codec": codec,
            "partitions": PARTITIONS,
            **_log_facts(shape),
        }

    def _copies(
        self, name: str, work: Workload, *, systems: Sequence[System] | None = None, source: str = "", called: str = ""
    ) -> Mapping[str, Copy | Failed]:
        before = partial(self.clusters.begin_anew, [work.topic])
        return self._each(
            called or name, work.topic, work.codec, partial(copy, work), before=before, systems=systems, source=source
        )

    def _latency(self, name: str, per_s: int) -> LatencyPart:
        course = Course(
            source=self.clusters.source,
            target=self.clusters.target,
            topic=f"orders-{per_s}",
            partitions=PARTITIONS,
            per_s=per_s,
            warm_up_s=self.warm_up_s,
            measured_s=self.measured_s,
        )
        self._warm(course)
        again = partial(self._fresh, course.topic)
        again()
        lowest = self._try(name, "floor", "", partial(floor, course))
        systems = self._each(name, course.topic, "none", partial(latency, course), before=again)
        facts: dict[str, Scalar] = {
            "per_s": per_s,
            "partitions": PARTITIONS,
            "warm_up_s": self.warm_up_s,
            "measured_s": self.measured_s,
        }
        return LatencyPart(name=name, facts=facts, floor=lowest, systems=systems)

    def _warm(self, course: Course) -> None:
        """Let both brokers compile what they do for single records, or whoever is measured first pays for it: a
        broker's compiler takes whole cores for half a minute."""
        self.say(f"{course.per_s} records/s: warming both brokers")
        for broker in (course.target, course.source):
            self.clusters.begin_anew(keep=[])
            self.clusters.create(broker, course.topic, PARTITIONS)
            floor(replace(course, source=broker, per_s=WARM_PER_S, warm_up_s=0.0, measured_s=WARM_S))

    def _start(self) -> StartPart:
        topic = "orders-startup"
        self._fresh(topic)
        load(
            self.clusters.source,
            topic,
            records=START_RECORDS,
            partitions=PARTITIONS,
            codec="lz4",
            batch_bytes=self.batch_bytes,
        )
        measure = partial(start, self.clusters, topic, PARTITIONS, START_RECORDS)
        systems = self._each(START, topic, "lz4", measure, before=partial(self.clusters.begin_anew, [topic]))
        return StartPart(name=START, facts={"records": START_RECORDS, "partitions": PARTITIONS}, systems=systems)

    def _idle(self) -> ReadingsPart:
        names = [f"idle-{number:02d}" for number in range(IDLE_TOPICS)]
        self.say(f"{IDLE}: {IDLE_TOPICS} topics of {IDLE_PARTITIONS} partitions, a record in each")
        self.clusters.begin_anew(keep=[])
        for name in names:
            self.clusters.create(self.clusters.source, name, IDLE_PARTITIONS)
            load(
                self.clusters.source,
                name,
                records=IDLE_PARTITIONS,
                partitions=IDLE_PARTITIONS,
                codec="none",
                batch_bytes=self.batch_bytes,
            )
        fleet = Fleet(clusters=self.clusters, topics=names, partitions=IDLE_PARTITIONS, period_s=IDLE_PERIOD_S)
        before = partial(self.clusters.begin_anew, names)
        systems = self._each(IDLE, "idle-.*", "none", partial(idle, fleet, self.say), before=before, systems=self._ours)
        return ReadingsPart(name=IDLE, facts={"partitions": IDLE_TOPICS * IDLE_PARTITIONS}, systems=systems)

    def _catch_up(self) -> ReadingsPart:
        topic, size = "orders-catch-up", self.backlog_bytes
        records = size // len(Orders.drawn().key(0) + Orders.drawn().value(0))
        facts: dict[str, Scalar] = {"bytes": size, "records": records, "partitions": PARTITIONS, "codec": "none"}
        self._fresh(topic)  # what is left of earlier parts is in the way of this one
        try:
            room_for(size)
        except NoRoom as none:
            failed = Failed(reason=str(none))
            return ReadingsPart(name=CATCH_UP, facts=facts, systems={system.name: failed for system in self._ours})
        self.say(f"{CATCH_UP}: loading {size / 1e9:.1f} GB, {records:,} records")
        loaded = load(
            self.clusters.source,
            topic,
            records=records,
            partitions=PARTITIONS,
            codec="none",
            batch_bytes=self.batch_bytes,
        )
        backlog = Backlog(clusters=self.clusters, topic=topic, partitions=PARTITIONS, loaded=loaded)
        before = partial(self.clusters.begin_anew, [topic])
        systems = self._each(CATCH_UP, topic, "none", partial(catch_up, backlog), before=before, systems=self._ours)
        return ReadingsPart(name=CATCH_UP, facts=facts, systems=systems)

    def _new_topic(self) -> ReadingsPart:
        first = "new-before"
        measure = partial(new_topics, self.clusters, PARTITIONS, first)
        before = partial(self._fresh_with_records, first)
        systems = self._each(NEW_TOPIC, "new-.*", "none", measure, before=before, systems=self._ours)
        return ReadingsPart(name=NEW_TOPIC, facts={"partitions": PARTITIONS}, systems=systems)

    def _ten_topics(self) -> ReadingsPart:
        course = Course(
            source=self.clusters.source,
            target=self.clusters.target,
            topic="busy",
            partitions=PARTITIONS,
            per_s=BUSY_PER_S,
            warm_up_s=0.0,
            measured_s=0.0,
        )
        self._warm(course)
        measure = partial(ten_topics, course, self.clusters)
        before = partial(self._fresh, course.topic)
        systems = self._each(TEN_TOPICS, "busy, added-.*", "none", measure, before=before, systems=self._ours)
        facts: dict[str, Scalar] = {"per_s": BUSY_PER_S, "partitions": PARTITIONS}
        return ReadingsPart(name=TEN_TOPICS, facts=facts, systems=systems)

    @property
    def _ours(self) -> Sequence[System]:
        """What has an absolute figure to reach is measured for Lockstep alone."""
        return [system for system in self.systems if system.name == OURS]

    def _fresh_with_records(self, topic: str) -> None:
        self._fresh(topic)
        load(
            self.clusters.source,
            topic,
            records=PARTITIONS,
            partitions=PARTITIONS,
            codec="none",
            batch_bytes=self.batch_bytes,
        )

    def _fresh(self, topic: str) -> None:
        self.clusters.begin_anew(keep=[])
        self.clusters.create(self.clusters.source, topic, PARTITIONS)

    def _logs(self) -> Path:
        logs = self.output / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        return logs

    def _each(
        self,
        part: str,
        topic: str,
        codec: str,
        measure: Measure[Measured],
        *,
        before: Callable[[], None],
        systems: Sequence[System] | None = None,
        source: str = "",
    ) -> Mapping[str, Measured | Failed]:
        """Every system in turn, after ``before`` has removed what the one before it left.

        They find the source at its own address, or where ``source`` says.
        """
        logs = self._logs()
        found = {}
        for system in self.systems if systems is None else systems:
            before()
            file, log = self.work / f"{part}-{system.name}.properties", logs / f"{part}-{system.name}.log"
            told = source or self.clusters.source
            file.write_text(properties(told, self.clusters.target, topic, system.settings(codec)))
            found[system.name] = self._try(part, system.name, log.name, partial(measure, system, file, log))
        return found

    def _try(self, part: str, what: str, log: str, measure: Callable[[], Measured]) -> Measured | Failed:
        self.say(f"{part}: {what}")
        try:
            return measure()
        except WRONG as wrong:
            failed = Failed(reason=f"{type(wrong).__name__}: {wrong}", log=log)
            self.say(f"{part}: {what} {failed}")
            return failed


def _log_facts(shape: LogShape) -> dict[str, Scalar]:
    return {
        "batches": shape.batches,
        "batch_records": shape.records / shape.batches,
        "batch_stored_bytes": shape.stored / shape.batches,
    }
