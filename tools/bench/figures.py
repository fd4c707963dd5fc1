"""What a bench run measured, as values. Pure: no I/O and no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from tools.bench.outcome import Failed, Scalar
from tools.bench.readings import ReadingsPart
from tools.bench.usage import Cpu

OURS = "lockstep"
TWO_SLOTS = "lockstep_two_slots"
PEERS = ("mm2_tuned", "mm2")
UNDELAYED = "undelayed"
PLAIN = "plain"
OPEN = "plaintext"
"""Lockstep without transactions."""
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
WRITTEN = ("p50", "p99")
"""Those of what the writer alone takes."""
MEBIBYTE = 1 << 20


def percentile(ordered: Sequence[float], quantile: float) -> float:
    """The nearest-rank percentile of values in ascending order: an observed value, never an interpolation.

    Raises ValueError when there is no value or the quantile is not in (0, 1].
    """
    if not ordered:
        raise ValueError("no values to take a percentile of")
    if not 0 < quantile <= 1:
        raise ValueError(f"a quantile lies in (0, 1], not {quantile}")
    return ordered[ceil(quantile * len(ordered)) - 1]


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """``ours / theirs``, or None where one of them is missing or the divisor is zero."""
    if ours is None or not theirs:
        return None
    return ours / theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One system copied one pre-loaded topic.

    The *window* runs from the poll that first saw a record on the target to the poll that saw the last one; what
    already lay there at the first poll does not count as copied within it. Times in seconds, ``record_bytes`` is the
    mean of key and value before compression.
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
    log: str = ""
    brokers_cpu_s: float | None = None
    """Of both brokers in the window; None where it was not measured."""

    @property
    def records_per_s(self) -> float:
        return self.window_records / self.window_s if self.window_s else 0.0

    @property
    def records_per_s_from_start(self) -> float:
        return self.records / self.total_s

    @property
    def mb_per_s(self) -> float:
        return self.records_per_s * self.record_bytes / 1e6

    @property
    def cpu_s_per_million(self) -> float:
        return self._per_million(self.cpu_window.total)

    @property
    def cpu_system_s_per_million(self) -> float:
        return self._per_million(self.cpu_window.system)

    @property
    def cpu_user_s_per_million(self) -> float:
        return self.cpu_s_per_million - self.cpu_system_s_per_million

    @property
    def cpu_s_per_million_from_start(self) -> float:
        return self.cpu_total.total * 1e6 / self.records

    @property
    def brokers_cpu_s_per_million(self) -> float | None:
        return None if self.brokers_cpu_s is None else self._per_million(self.brokers_cpu_s)

    def _per_million(self, seconds: float) -> float:
        return seconds * 1e6 / self.window_records if self.window_records else 0.0

    def figures(self) -> dict[str, Scalar]:
        brokers = self.brokers_cpu_s_per_million
        return {
            "records_per_s": self.records_per_s,
            "mb_per_s": self.mb_per_s,
            "records_per_s_from_start": self.records_per_s_from_start,
            "cpu_s_per_million": self.cpu_s_per_million,
            "cpu_user_s_per_million": self.cpu_user_s_per_million,
            "cpu_system_s_per_million": self.cpu_system_s_per_million,
            "cpu_s_per_million_from_start": self.cpu_s_per_million_from_start,
            "startup_s": self.start_s,
            "total_s": self.total_s,
            "peak_rss_mib": self.peak_rss_bytes / MEBIBYTE,
            "records_compared": self.compared,
            **({} if brokers is None else {"brokers_cpu_s_per_million": brokers}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Records per second of each fetch-only and each produce-only run of the very same batches, and of each that does
    both side by side."""

    fetch_only: tuple[float, ...]
    produce_only: tuple[float, ...]
    both_at_once: tuple[float, ...]

    @property
    def records_per_s(self) -> float:
        """The lower of both bests: a copy that fetches and produces one after the other cannot beat it, one that
        overlaps them may.
        """
        return min(max(self.fetch_only), max(self.produce_only))

    def figures(self) -> dict[str, Scalar]:
        return {
            "records_per_s.limit": self.records_per_s,
            "records_per_s.fetch_only": max(self.fetch_only),
            "records_per_s.produce_only": max(self.produce_only),
            "records_per_s.both_at_once": max(self.both_at_once),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """CPU seconds of each: so far, or in a second while latency was measured. `compilers`: of the brokers, their JIT
    compilers."""

    system: float
    brokers: float
    bench: float
    compilers: float

    def since(self, before: "Busy", seconds: float) -> "Busy":
        """Both are CPU seconds so far."""
        return Busy(
            system=(self.system - before.system) / seconds,
            brokers=(self.brokers - before.brokers) / seconds,
            bench=(self.bench - before.bench) / seconds,
            compilers=(self.compilers - before.compilers) / seconds,
        )

    def figures(self) -> dict[str, Scalar]:
        return {
            "cpu_share": self.system,
            "brokers_cpu_share": self.brokers,
            "compilers_cpu_share": self.compilers,
            "bench_cpu_share": self.bench,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds from just before the record was handed to the producer to its arrival at the reader, in ascending
    order; and of some of the records, drawn evenly, to its acknowledgement by the source.
    """

    ordered_ms: tuple[float, ...]
    acknowledged_ms: tuple[float, ...]
    busy: Busy
    offered_per_s: float
    log: str = ""

    def at(self, quantile: float) -> float:
        return percentile(self.ordered_ms, quantile)

    def acknowledged_at(self, quantile: float) -> float:
        return percentile(self.acknowledged_ms, quantile)

    def figures(self) -> dict[str, Scalar]:
        named: dict[str, Scalar] = {f"{name}_ms": self.at(quantile) for name, quantile in QUANTILES.items()}
        return (
            named
            | {f"{name}_acknowledged_ms": self.acknowledged_at(QUANTILES[name]) for name in WRITTEN}
            | self.busy.figures()
            | {
                "max_ms": self.ordered_ms[-1],
                "samples": len(self.ordered_ms),
                "offered_per_s": self.offered_per_s,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a system starts and what it holds when idle: seconds to the first copied record of each start, resident bytes
    by process.
    """

    seconds: tuple[float, ...]
    idle_rss: tuple[tuple[str, int], ...]
    idle_cpu_share: float
    log: str = ""

    @property
    def median_s(self) -> float:
        return percentile(sorted(self.seconds), 0.5)

    def figures(self) -> dict[str, Scalar]:
        return {
            "startup_s": self.median_s,
            "idle_rss_mib": sum(size for _, size in self.idle_rss) / MEBIBYTE,
            "idle_cpu_share": self.idle_cpu_share,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputPart:
    """``own`` is Lockstep itself without what the part asks of all (a delay, transactions), under the name
    ``own_name``. Without ``limit`` it was not measured."""

    name: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    limit: Limit | Failed | None
    systems: Mapping[str, Copy | Failed]
    own: Copy | Failed | None = None
    own_name: str = UNDELAYED


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPart:
    """``floor`` is the same writer and reader on the source topic itself, with no mirror between them."""

    name: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    floor: Latency | Failed
    systems: Mapping[str, Latency | Failed]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPart:
    name: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    systems: Mapping[str, Start | Failed]


Part = ThroughputPart | LatencyPart | StartPart | ReadingsPart
