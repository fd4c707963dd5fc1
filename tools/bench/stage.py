"""A part of the bench, and how each system is run for it: on clean clusters, one after the other, failures as such."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaException, Message

from tests.support.mm2 import properties
from tests.support.systems import System, SystemEnded, SystemRun
from tools.bench.clusters import Clusters
from tools.bench.distance import Distance
from tools.bench.limit import LogShape, log_shape
from tools.bench.orders import Loaded, load
from tools.bench.results import OURS, Failed, Readings, Result, Row, Scalar, Systems
from tools.bench.wire import BrokerRefused, end_offsets, ends_of

PARTITIONS = 8
FIRST_RECORD_WITHIN_S = 240.0
STANDSTILL_S = 60.0
POLL_S = 0.02  # between two looks at the target's end offsets: the error of the window's length


class Lost(Exception):
    """Records that were written did not arrive, or are others than the source's; the message says which."""


# What a system, or a broker under load, may do wrong; anything else is our mistake and ends the bench with a traceback.
# A wait of the tests' helpers ends with an AssertionError.
WRONG = (SystemEnded, Lost, BrokerRefused, AssertionError, KafkaException, OSError)

T = TypeVar("T")

Measured = tuple[Mapping[str, Scalar], Systems]
"""The facts of a part, and what was read of each system."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A system that is to be measured, with the file that it gets and the log that it writes."""

    system: System
    file: Path
    log: Path

    def running(self) -> SystemRun:
        """Return what starts it on entry and ends it on exit."""
        return SystemRun(self.system, self.file, self.log)

    @contextmanager
    def copying(
        self, target: str, remote: str, *, committed: bool = False, every: float = 0.1
    ) -> Iterator[tuple[SystemRun, Callable[[], int], int]]:
        """Run it, and wait for a record in the remote topic. Yield the run, what counts the records there (with
        `committed`, offsets), and how many there were at first. Raises SystemEnded."""
        with self.running() as run, ends_of(target, remote, PARTITIONS, committed=committed) as ends:
            copied = lambda: sum(ends())  # noqa: E731
            first = run.wait(copied, within=FIRST_RECORD_WITHIN_S, every=every, otherwise="nothing was copied")
            yield run, copied, first

    def with_lines(self, name: str, lines: Sequence[str]) -> "Trial":
        """Return the same system with more lines in a file of its own, and a log of its own."""
        file = self.file.with_suffix(f".{name}.properties")
        file.write_text("\n".join([self.file.read_text(), *lines, ""]))
        return Trial(self.system, file, self.log.with_suffix(f".{name}.log"))


Measure = Callable[[Trial], Readings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A source topic that is filled, and what is to be said of it.

    Attributes:
        gaps: The offsets of the source are not those of the copy.
        markers: The copy has markers of transactions, which take offsets too.
        made: What the system makes of the source's records; None: they stay as they are.
        read: Records of the source for each record of the copy.
        beside: Topics of the source that are not measured.
    """

    clusters: Clusters
    topic: str
    codec: str
    loaded: Loaded
    facts: Mapping[str, Scalar]
    gaps: bool = False
    markers: bool = False
    made: Callable[[Message], tuple[object, ...] | None] | None = None
    read: float = 1.0
    beside: Sequence[str] = ()
    copied_to: str = ""

    @property
    def remote(self) -> str:
        """Return the topic on B, by default under MM2's default policy."""
        return self.copied_to or f"A.{self.topic}"

    def copied_by(self, trial: Trial) -> AbstractContextManager[tuple[SystemRun, Callable[[], int], int]]:
        """Run a system as `Trial.copying` does. Its topic is read so often that it shows when the first record came."""
        return trial.copying(self.clusters.target, self.remote, committed=self.markers, every=POLL_S)


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
        """Return Lockstep alone: what has an absolute figure to reach is measured for no other system."""
        return [system for system in self.systems if system.name == OURS]

    def fresh(
        self,
        topic: str,
        *,
        records: int = 0,
        codec: str = "none",
        configs: Mapping[str, str] | None = None,
        **how: Any,
    ) -> Loaded:
        """Leave nothing on both clusters but this topic on the source, with so many records.

        Raises KafkaException and NeverHappened.
        """
        source = self.clusters.source
        self.clusters.begin_anew()
        self.clusters.create(source, topic, PARTITIONS, configs)
        size: dict[str, Any] = {"records": records, "partitions": PARTITIONS, "batch_bytes": self.batch_bytes}
        return load(source, topic, **size, codec=codec, **how)

    def loaded(self, part: str, codec: str = "lz4", **how: Any) -> Workload:
        """Fill the source topic of a part, as `fresh` does."""
        topic, source = f"orders-{part}", self.clusters.source
        self.say(f"{part}: loading {self.records:,} records")
        loaded = self.fresh(topic, records=self.records, codec=codec, **how)
        facts: dict[str, Scalar] = {
            "records": loaded.records,
            "record_bytes": loaded.record_bytes,
            "codec": codec,
            "partitions": PARTITIONS,
            **log_facts(log_shape(source, topic, end_offsets(source, topic, PARTITIONS))),
        }
        return Workload(clusters=self.clusters, topic=topic, codec=codec, loaded=loaded, facts=facts)

    def trial(self, name: str, system: System, topic: str, codec: str, settings: Mapping[str, str]) -> Trial:
        """Write the file of a system. `settings` go over what it has, also over where it finds its clusters."""
        file = self.work / f"{name}-{system.name}.properties"
        given = {**system.settings(codec), **settings}
        file.write_text(properties(self.clusters.source, self.clusters.target, topic, given))
        return Trial(system, file, self.log(name, system))

    def log(self, name: str, system: System) -> Path:
        """Return where a system logs, in a folder that is there."""
        logs = self.output / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        return logs / f"{name}-{system.name}.log"

    def each(
        self,
        part: str,
        topic: str,
        measure: Measure,
        *,
        keep: Sequence[str] = (),
        before: Callable[[], object] | None = None,
        codec: str = "none",
        systems: Sequence[System] | None = None,
        settings: Mapping[str, str] | None = None,
        called: str = "",
    ) -> Systems:
        """Measure every system in turn, on clusters without what the one before it left: there are the topics to keep,
        or what `before` has made."""
        measured: dict[str, Readings | Failed] = {}
        for system in self.systems if systems is None else systems:
            before() if before else self.clusters.begin_anew(keep)
            trial = self.trial(called or part, system, topic, codec, settings or {})
            measured[system.name] = self.attempt(part, system.name, partial(measure, trial), trial.log)
        return measured

    def attempt(self, part: str, what: str, measure: Callable[[], T], log: Path | None = None) -> T | Failed:
        """Return what was measured; or Failed, where a system or a broker did something wrong (`WRONG`)."""
        self.say(f"{part}: {what}")
        try:
            return measure()
        except WRONG as wrong:
            failed = Failed(reason=f"{type(wrong).__name__}: {wrong}", log=log.name if log else "")
            self.say(f"{part}: {what} {failed}")
            return failed


def log_facts(shape: LogShape) -> dict[str, Scalar]:
    """Return the batches of a log, and what they have on average."""
    return {
        "batches": shape.batches,
        "batch_records": shape.records / shape.batches,
        "batch_stored_bytes": shape.stored / shape.batches,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the bench: what it is called, the rows of its table, and what measures it.

    Attributes:
        notes: Sentences below the table, with the facts in braces. Without them the facts are listed.
        measure: Raises KafkaException and NeverHappened where the preparation, not a system, fails.
        by_default: Whether it runs if no part is named.
    """

    name: str
    title: str
    rows: Sequence[Row]
    measure: Callable[[Stage], Measured]
    notes: Sequence[str] = ()
    by_default: bool = True

    def run(self, stage: Stage) -> Result:
        """Measure the part."""
        facts, systems = self.measure(stage)
        return Result(name=self.name, title=self.title, rows=self.rows, notes=self.notes, facts=facts, systems=systems)
