"""How long a record takes from a producer on A to a consumer on B, at a given rate.

One process writes and reads, so one clock measures: the moment just before `produce` stands in the record itself, in
nanoseconds. Writer and reader are librdkafka's with no linger and no waiting for more bytes, the same for every system;
what they cost is measured by letting them talk on the source topic itself (the floor).
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.support.systems import RELAY, System, SystemRun
from tests.support.tree_usage import CompilerAccount, used_by
from tools.bench.clusters import Clusters
from tools.bench.orders import Orders
from tools.bench.results import OURS, TWO_SLOTS, Readings, percentile
from tools.bench.stage import PARTITIONS, Lost, Measured, Stage, Trial
from tools.bench.wire import end_offsets

ARRIVE_WITHIN_S = 60.0
HELLO_PER_S = 20  # until the first record has come through, so that no backlog of the start is left when it counts
BUSY_PER_S = 4_000
BUSY_S = 20.0  # both brokers are warmed for so long without a mirror, and with each system
QUIET_S, QUIET_SHARE = 10.0, 0.02  # the brokers' compilers are quiet if they use less of a core for so long
QUIET_WITHIN_S = 120.0
SWITCH_INTERVAL_S = 0.0002  # the writer must not keep the interpreter while the reader has a record in hand
ACKNOWLEDGED_EACH = 7  # of so many records one is asked when the source acknowledged it; all partitions have their turn
POLLED_S = 0.001  # librdkafka waits whole milliseconds; shorter waits are slept, acknowledgements taken at their ends
ASIDE_S = 1.0  # before and after what is measured: nothing is read while processes are looked at
STAMP_AT = slice(12, 31)  # {"sent_ns":"0000000000000000000",...
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
WRITTEN = ("p50", "p99")
"""Those of what the writer alone takes."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is written: records per second, for how many seconds, after how many that do not count."""

    clusters: Clusters
    topic: str
    per_s: int
    warm_up_s: float
    measured_s: float


def course_of(stage: Stage, topic: str, per_s: int) -> Course:
    """Return a course between the clusters of the stage."""
    return Course(stage.clusters, topic, per_s, stage.warm_up_s, stage.measured_s)


def warm(stage: Stage, course: Course) -> None:
    """Let both brokers compile what they do for single records, or whoever is measured first pays for it: a broker's
    compiler takes whole cores for half a minute."""
    stage.say(f"{course.per_s} records/s: warming both brokers")
    for broker in (stage.clusters.target, stage.clusters.source):
        stage.clusters.begin_anew()
        stage.clusters.create(broker, course.topic, PARTITIONS)
        floor(Course(replace(stage.clusters, source=broker), course.topic, BUSY_PER_S, 0.0, BUSY_S))


def floor(course: Course) -> Readings:
    """Measure writer and reader on the source topic, without a mirror. Raises Lost."""
    with writing(course) as writer:
        return _measure(course, writer, course.clusters.source, course.topic)


def latency(course: Course, trial: Trial) -> Readings:
    """Measure one system between writer and reader. Raises SystemEnded and Lost."""
    remote = f"A.{course.topic}"
    with writing(course) as writer, trial.copying(course.clusters.target, remote) as (run, copied, _):
        _warm(course, run, writer, copied)
        return _measure(course, writer, course.clusters.target, remote, run)


def _warm(course: Course, run: SystemRun, writer: "Writer", copied: Callable[[], int]) -> None:
    """Mirror at a high rate for a while, then at the rate that is measured until the brokers' compilers are quiet, but
    not for ever. Brokers compile what a client often asks of them. Without this the first system would pay for it."""
    writer.per_s = max(course.per_s, BUSY_PER_S)
    run.sleep(BUSY_S)
    writer.per_s = course.per_s
    compilers, began = CompilerAccount(course.clusters.brokers), time.monotonic()
    used, share = compilers.read(), 1.0
    while share > QUIET_SHARE and time.monotonic() - began < QUIET_WITHIN_S:
        run.sleep(QUIET_S)
        used, before = compilers.read(), used
        share = (used - before) / QUIET_S
    writer.per_s = HELLO_PER_S
    otherwise = f"not caught up with {BUSY_S:.0f} s at {BUSY_PER_S} records/s"
    run.wait(lambda: copied() >= len(writer.sent) - HELLO_PER_S, within=ARRIVE_WITHIN_S, otherwise=otherwise)


class Writer:
    """Writes at an even rate on a thread of its own until it is told to end."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer")
        self.per_s = HELLO_PER_S
        self.refused: list[str] = []
        self.sent: list[int] = []
        self.acknowledged: list[tuple[int, float]] = []
        """When it was sent, and the seconds until its acknowledgement, of every `ACKNOWLEDGED_EACH`th record."""
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.refused.append(str(error))

    def _checked_at(self, sent: int, error: Any, message: Any) -> None:
        self._delivered(error, message)
        if error is None:
            self.acknowledged.append((sent, message.latency()))

    def _write(self) -> None:
        conf: dict[str, Any] = {"bootstrap.servers": self._course.clusters.source, "linger.ms": 0, "acks": "all"}
        producer = Producer({**conf, "on_delivery": self._delivered})
        orders, number, due = Orders.drawn(), 0, time.perf_counter()
        while not self._ending.is_set():
            due += 1 / self.per_s
            while (early := due - time.perf_counter()) > 0:
                if early < POLLED_S:
                    time.sleep(early)
                else:
                    producer.poll(early)
            now = time.monotonic_ns()
            value = b'{"sent_ns":"%019d",' % now + orders.value(number)[1:]
            on_delivery = partial(self._checked_at, now) if number % ACKNOWLEDGED_EACH == 0 else None
            producer.produce(self._course.topic, value, orders.key(number), number % PARTITIONS, on_delivery)
            producer.poll(0)
            self.sent.append(now)
            number += 1
        producer.flush(ARRIVE_WITHIN_S)


@contextmanager
def writing(course: Course) -> Iterator[Writer]:
    """Yield a writer that trickles until it is given another rate."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    writer = Writer(course)
    try:
        yield writer
    finally:
        writer.end()
        sys.setswitchinterval(usual)


@contextmanager
def reading(bootstrap: str, topic: str, partitions: int) -> Iterator[Consumer]:
    """Yield a consumer that waits for nothing, at the present ends of the partitions."""
    conf = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    at_once = {"fetch.min.bytes": 1, "fetch.wait.max.ms": 100, "fetch.queue.backoff.ms": 1}
    ends = end_offsets(bootstrap, topic, partitions)
    with closing(Consumer({**conf, **at_once})) as consumer:
        consumer.assign([TopicPartition(topic, partition, end) for partition, end in enumerate(ends)])
        yield consumer


def read_until(
    consumer: Consumer, deadline: float, check: Callable[[], None], on_message: Callable[[Message, int], object]
) -> None:
    """Call `on_message` with each message and when it came (monotonic nanoseconds), up to the deadline. Raises Lost."""
    checked = time.monotonic()
    while (now := time.monotonic()) < deadline:
        message = consumer.poll(min(0.1, deadline - now))
        if message is not None:
            arrived = time.monotonic_ns()
            if message.error():
                raise Lost(f"the reader: {message.error()}")
            on_message(message, arrived)
        if now - checked > 1:
            check()
            checked = now


def _measure(course: Course, writer: Writer, bootstrap: str, topic: str, run: SystemRun | None = None) -> Readings:
    """Read from now on; count what was sent between the end of the warm-up and the end of the measured time."""
    check: Callable[[], None] = (lambda: None) if run is None else run.check
    compilers = CompilerAccount(course.clusters.brokers)
    pairs: list[tuple[int, int]] = []  # sent and arrived, in nanoseconds of the process's monotonic clock

    def used() -> tuple[float, Mapping[str, float]]:
        seconds = {"brokers_cpu_share": used_by(course.clusters.brokers), "compilers_cpu_share": compilers.read()}
        seconds |= {"cpu_share": run.use().total} if run is not None else {}
        return time.monotonic(), {**seconds, "bench_cpu_share": time.process_time()}

    writer.per_s = course.per_s
    with reading(bootstrap, topic, PARTITIONS) as consumer:

        def read(seconds: float) -> None:
            read_until(
                consumer,
                time.monotonic() + seconds,
                check,
                lambda message, arrived: pairs.append((int((message.value() or b"")[STAMP_AT]), arrived)),
            )

        read(course.warm_up_s - ASIDE_S)
        since, before = used()
        read(ASIDE_S)
        first = time.monotonic_ns()
        read(course.measured_s)
        last = time.monotonic_ns()
        read(ASIDE_S)
        until, after = used()
        writer.end()
        counted = [sent for sent in writer.sent if first <= sent < last]
        deadline = time.monotonic() + ARRIVE_WITHIN_S
        while len(arrivals := [pair for pair in pairs if first <= pair[0] < last]) < len(counted):
            if time.monotonic() > deadline:
                missing = len(counted) - len(arrivals)
                raise Lost(f"{missing} of {len(counted)} records did not arrive; {writer.refused[:1]}")
            read(0.5)
    if len(arrivals) != len(counted):
        raise Lost(f"{len(arrivals)} records arrived of {len(counted)}")
    arrived = [(arrived_ns - sent) / 1e6 for sent, arrived_ns in arrivals]
    acknowledged = [seconds * 1e3 for sent, seconds in writer.acknowledged if first <= sent < last]
    shares = {name: (after[name] - before[name]) / (until - since) for name in after}
    return Readings(
        values=latency_values(arrived, acknowledged) | shares | {"offered_per_s": len(counted) / course.measured_s}
    )


def latency_values(arrived_ms: Sequence[float], acknowledged_ms: Sequence[float]) -> dict[str, float]:
    """Return the quantiles of the arrivals at the reader, and of the acknowledgements by the source."""
    ordered, written = sorted(arrived_ms), sorted(acknowledged_ms)
    values = {f"{name}_ms": percentile(ordered, quantile) for name, quantile in QUANTILES.items()}
    values |= {f"{name}_acknowledged_ms": percentile(written, QUANTILES[name]) for name in WRITTEN}
    return {**values, "max_ms": ordered[-1], "samples": len(ordered)}


def by_slots(systems: Sequence[System]) -> Sequence[System]:
    """Return the systems with Lockstep twice: with one slot, as MM2 as shipped has one task, and with two slots."""
    split: list[System] = []
    for system in systems:
        if system.name == OURS:
            split += [replace(system, settings=lambda codec: {"tasks.max": "1"}), replace(system, name=TWO_SLOTS)]
        else:
            split.append(system)
    return split


def _latency(name: str, per_s: int, stage: Stage) -> Measured:
    course = course_of(stage, f"orders-{per_s}", per_s)
    warm(stage, course)
    again = partial(stage.fresh, course.topic)
    again()
    lowest = stage.attempt(name, "floor", partial(floor, course))
    beside = [*by_slots(stage.systems), *([RELAY] if stage.ours else [])]
    systems = stage.each(name, course.topic, partial(latency, course), before=again, systems=beside)
    facts = {"per_s": per_s, "partitions": PARTITIONS, "warm_up_s": stage.warm_up_s, "measured_s": stage.measured_s}
    return facts, {**systems, "floor": lowest}


MEASURES = {
    "latency_500": partial(_latency, "latency_500", 500),
    "latency_5000": partial(_latency, "latency_5000", 5_000),
}
