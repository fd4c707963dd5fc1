"""How each system is run, whatever is measured: on clean clusters, one after the other, failures shown as failed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from confluent_kafka import KafkaException

from tests.support.eventually import NeverHappened
from tests.support.mm2 import properties
from tools.bench.catching_up import NoRoom
from tools.bench.clusters import Clusters
from tools.bench.compare import Differs
from tools.bench.distance import Distance
from tools.bench.figures import OURS
from tools.bench.latency import Course, Lost, floor
from tools.bench.load import load
from tools.bench.outcome import Failed
from tools.bench.systems import System, SystemEnded
from tools.bench.wire import BrokerRefused

PARTITIONS = 8
WARM_PER_S = 4_000
WARM_S = 20.0

# What a system, or a broker under load, may do wrong; anything else is our mistake and ends the bench with a traceback.
WRONG = (SystemEnded, Differs, Lost, NoRoom, BrokerRefused, NeverHappened, KafkaException, OSError)

NOTHING: Mapping[str, str] = MappingProxyType({})

Measured = TypeVar("Measured")
Measure = Callable[[System, Path, Path], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One invocation: which systems, on which clusters, how much, and where the output goes."""

    clusters: Clusters
    source_afar: Distance
    target_afar: Distance
    systems: Sequence[System]
    records: int
    backlog_bytes: int
    batch_bytes: int
    measured_s: float
    warm_up_s: float
    seed: int
    output: Path
    work: Path
    say: Callable[[str], None]

    @property
    def ours(self) -> Sequence[System]:
        """What has an absolute figure to reach is measured for Lockstep alone."""
        return [system for system in self.systems if system.name == OURS]

    def fresh(self, topic: str) -> None:
        """Both clusters without topics and groups, but for this empty one on the source. Raises NeverHappened."""
        self.clusters.begin_anew(keep=[])
        self.clusters.create(self.clusters.source, topic, PARTITIONS)

    def fresh_with_records(self, topic: str) -> None:
        """As `fresh`, with a record in each partition. Raises NotLoaded too."""
        self.fresh(topic)
        load(
            self.clusters.source,
            topic,
            records=PARTITIONS,
            partitions=PARTITIONS,
            codec="none",
            batch_bytes=self.batch_bytes,
        )

    def warm(self, course: Course) -> None:
        """Let both brokers compile what they do for single records, or whoever is measured first pays for it: a
        broker's compiler takes whole cores for half a minute."""
        self.say(f"{course.per_s} records/s: warming both brokers")
        for broker in (course.target, course.source):
            self.clusters.begin_anew(keep=[])
            self.clusters.create(broker, course.topic, PARTITIONS)
            floor(replace(course, source=broker, per_s=WARM_PER_S, warm_up_s=0.0, measured_s=WARM_S))

    def logs(self) -> Path:
        """The folder of what the systems say; made where it is missing."""
        logs = self.output / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        return logs

    def each(
        self,
        part: str,
        topic: str,
        codec: str,
        measure: Measure[Measured],
        *,
        before: Callable[[], None],
        systems: Sequence[System] | None = None,
        settings: Mapping[str, str] = NOTHING,
    ) -> Mapping[str, Measured | Failed]:
        """Every system in turn, after ``before`` has removed what the one before it left; ``settings`` go into the file
        of each, also over where it finds its clusters."""
        logs = self.logs()
        found = {}
        for system in self.systems if systems is None else systems:
            before()
            file, log = self.work / f"{part}-{system.name}.properties", logs / f"{part}-{system.name}.log"
            settings_of_run = {**system.settings(codec), **settings}
            file.write_text(properties(self.clusters.source, self.clusters.target, topic, settings_of_run))
            found[system.name] = self.attempt(part, system.name, log.name, partial(measure, system, file, log))
        return found

    def attempt(self, part: str, what: str, log: str, measure: Callable[[], Measured]) -> Measured | Failed:
        """What was measured; or Failed, where a system or a broker did something wrong (`WRONG`)."""
        self.say(f"{part}: {what}")
        try:
            return measure()
        except WRONG as wrong:
            failed = Failed(reason=f"{type(wrong).__name__}: {wrong}", log=log)
            self.say(f"{part}: {what} {failed}")
            return failed
