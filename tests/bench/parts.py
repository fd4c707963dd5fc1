"""The parts of the bench, each with its preparation, and with every system that fails shown as failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException

from tests.bench.clusters import Clusters
from tests.bench.compare import Differs
from tests.bench.figures import Failed, LatencyPart, Part, Scalar, StartPart, ThroughputPart
from tests.bench.latency import Course, Lost, floor, latency
from tests.bench.limit import log_shape
from tests.bench.load import load
from tests.bench.starting import start
from tests.bench.systems import System, SystemEnded, properties
from tests.bench.throughput import Workload, copy, limit
from tests.bench.wire import BrokerRefused, Connection, end_offsets
from tests.harness.eventually import NeverHappened

__all__ = ["PARTITIONS", "PARTS", "Bench"]

PARTITIONS = 8
CODECS = {"lz4": "lz4", "none": "none"}
RATES = {"latency_500": 500, "latency_5000": 5_000}
WARM_PER_S = 4_000
WARM_S = 20.0
START = "startup"
PARTS = (*CODECS, *RATES, START)
START_RECORDS = 10_000

# What a system, or a broker under load, may do wrong; anything else is our mistake and ends the bench with a traceback.
WRONG = (SystemEnded, Differs, Lost, BrokerRefused, NeverHappened, KafkaException, OSError)

Measured = TypeVar("Measured")
Measure = Callable[[System, Path, Path], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One invocation: which systems, on which clusters, how much, and where the output goes."""

    clusters: Clusters
    systems: Sequence[System]
    records: int
    batch_bytes: int
    measured_s: float
    warm_up_s: float
    output: Path
    work: Path
    say: Callable[[str], None]

    def part(self, name: str) -> Part:
        """Run one of `PARTS`. Raises NotLoaded and NeverHappened where the preparation, not a system, fails."""
        if name in CODECS:
            return self._throughput(name, CODECS[name])
        if name in RATES:
            return self._latency(name, RATES[name])
        return self._start()

    def _throughput(self, name: str, codec: str) -> ThroughputPart:
        topic = f"orders-{name}"
        source = self.clusters.source
        self._fresh(topic)
        self.say(f"{name}: loading {self.records:,} records")
        loaded = load(
            source, topic, records=self.records, partitions=PARTITIONS, codec=codec, batch_bytes=self.batch_bytes
        )
        with Connection(source) as connection:
            ends = end_offsets(connection, topic, PARTITIONS)
        batches, stored = log_shape(source, topic, ends)
        work = Workload(clusters=self.clusters, topic=topic, partitions=PARTITIONS, codec=codec, loaded=loaded)
        bound = self._try(name, "limit", "", partial(limit, work, self.say))
        systems = self._each(name, topic, codec, partial(copy, work), before=partial(self.clusters.begin_anew, [topic]))
        facts: dict[str, Scalar] = {
            "records": loaded.records,
            "record_bytes": loaded.record_bytes,
            "codec": codec,
            "partitions": PARTITIONS,
            "batches": batches,
            "batch_records": loaded.records / batches,
            "batch_stored_bytes": stored / batches,
        }
        return ThroughputPart(name=name, facts=facts, limit=bound, systems=systems)

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

    def _fresh(self, topic: str) -> None:
        self.clusters.begin_anew(keep=[])
        self.clusters.create(self.clusters.source, topic, PARTITIONS)

    def _each(
        self, part: str, topic: str, codec: str, measure: Measure[Measured], *, before: Callable[[], None]
    ) -> Mapping[str, Measured | Failed]:
        """Every system in turn, after ``before`` has removed what the one before it left."""
        logs = self.output / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        found = {}
        for system in self.systems:
            before()
            file, log = self.work / f"{part}-{system.name}.properties", logs / f"{part}-{system.name}.log"
            file.write_text(properties(self.clusters.source, self.clusters.target, topic, system.settings(codec)))
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
