"""How long a record takes from a producer on A to a consumer on B, at a given rate.

One process writes and reads, so one clock measures: the moment just before `produce` stands in the record itself, in
nanoseconds. Writer and reader are librdkafka's with no linger and no waiting for more bytes, the same for every system;
what they cost is measured by letting them talk on the source topic itself (the floor).
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.eventually import NeverHappened, wait_until
from tools.bench.figures import Busy, Latency
from tools.bench.orders import Orders
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.usage import CompilerAccount, used_by
from tools.bench.wire import Connection, end_offsets

FIRST_RECORD_WITHIN_S = 240.0
ARRIVE_WITHIN_S = 60.0
HELLO_PER_S = 20  # until the first record has come through, so that no backlog of the start is left when it counts
BUSY_PER_S = 4_000
BUSY_S = 20.0  # as long as both brokers were warmed without a mirror
QUIET_S, QUIET_SHARE = 10.0, 0.02  # the brokers' compilers are quiet if they use less of a core for so long
QUIET_WITHIN_S = 120.0
SWITCH_INTERVAL_S = 0.0002  # the writer must not keep the interpreter while the reader has a record in hand
ACKNOWLEDGED_EACH = 7  # of so many records one is asked when the source acknowledged it; all partitions have their turn
POLLED_S = 0.001  # librdkafka waits whole milliseconds; shorter waits are slept, acknowledgements taken at their ends
ASIDE_S = 1.0  # before and after what is measured: nothing is read while processes are looked at
STAMP_AT = slice(12, 31)  # {"sent_ns":"0000000000000000000",...


class Lost(Exception):
    """Records that were written did not arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is written: records per second, for how many seconds, after how many that do not count. `brokers`: the ids
    of both brokers' processes."""

    source: str
    target: str
    topic: str
    partitions: int
    per_s: int
    warm_up_s: float
    measured_s: float
    brokers: Sequence[int] = ()


@dataclass(slots=True)
class _Arrivals:
    """What the reader saw: sent and arrived, in nanoseconds of the process's monotonic clock."""

    pairs: list[tuple[int, int]] = field(default_factory=list)


def floor(course: Course) -> Latency:
    """Writer and reader on the source topic, without a mirror. Raises Lost."""
    with writing(course) as writer:
        return _measure(course, writer, course.source, course.topic)


def latency(course: Course, system: System, file: Path, log: Path) -> Latency:
    """One system between writer and reader. Raises SystemEnded and Lost."""
    remote = f"A.{course.topic}"
    with SystemRun(system, file, log) as run, writing(course) as writer:
        with Connection(course.target) as target:

            def mirrored() -> bool:
                run.check()
                return sum(end_offsets(target, remote, course.partitions)) > 0

            try:
                wait_until(mirrored, within=FIRST_RECORD_WITHIN_S, every=0.1)
            except NeverHappened as never:
                raise SystemEnded(f"nothing was copied within {FIRST_RECORD_WITHIN_S:.0f} s") from never
            _warm(course, run, writer, target, remote)
        found = _measure(course, writer, course.target, remote, run)
    return replace(found, log=log.name)


def _warm(course: Course, run: SystemRun, writer: "Writer", target: Connection, remote: str) -> None:
    """Mirror at a high rate for a while, then at the rate that is measured until the brokers' compilers are quiet, but
    not for ever. Brokers compile what a client often asks of them. Without this the first system would pay for it."""
    writer.at(max(course.per_s, BUSY_PER_S))
    _wait(run, BUSY_S)
    writer.at(course.per_s)
    compilers, began = CompilerAccount(course.brokers), time.monotonic()
    used, share = compilers.read(), 1.0
    while share > QUIET_SHARE and time.monotonic() - began < QUIET_WITHIN_S:
        _wait(run, QUIET_S)
        used, before = compilers.read(), used
        share = (used - before) / QUIET_S
    writer.at(HELLO_PER_S)

    def caught_up() -> bool:
        run.check()
        return sum(end_offsets(target, remote, course.partitions)) >= len(writer.sent) - HELLO_PER_S

    try:
        wait_until(caught_up, within=ARRIVE_WITHIN_S, every=0.1)
    except NeverHappened as never:
        raise SystemEnded(f"not caught up with {BUSY_S:.0f} s at {BUSY_PER_S} records/s") from never


def _wait(run: SystemRun, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        run.check()
        time.sleep(1.0)


class Writer:
    """Writes at an even rate on a thread of its own until it is told to end."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._ending = threading.Event()
        self._per_s = HELLO_PER_S
        self._thread = threading.Thread(target=self._write, name="writer")
        self.refused: list[str] = []
        self.sent: list[int] = []
        self.acknowledged: list[tuple[int, float]] = []
        """When it was sent, and the seconds until its acknowledgement, of every `ACKNOWLEDGED_EACH`th record."""

    def start(self) -> None:
        self._thread.start()

    def at_full_rate(self) -> None:
        self.at(self._course.per_s)

    def at(self, per_s: int) -> None:
        """From now on at this rate."""
        self._per_s = per_s

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
        producer = Producer(
            {
                "bootstrap.servers": self._course.source,
                "linger.ms": 0,
                "acks": "all",
                "on_delivery": self._delivered,
            }
        )
        orders, number, due = Orders.drawn(), 0, time.perf_counter()
        while not self._ending.is_set():
            due += 1 / self._per_s
            while (early := due - time.perf_counter()) > 0:
                if early < POLLED_S:
                    time.sleep(early)
                else:
                    producer.poll(early)
            now = time.monotonic_ns()
            value = b'{"sent_ns":"%019d",' % now + orders.value(number)[1:]
            said = partial(self._checked_at, now) if number % ACKNOWLEDGED_EACH == 0 else None
            producer.produce(self._course.topic, value, orders.key(number), number % self._course.partitions, said)
            producer.poll(0)
            self.sent.append(now)
            number += 1
        producer.flush(ARRIVE_WITHIN_S)


@contextmanager
def writing(course: Course) -> Iterator[Writer]:
    """A writer that trickles until it is told to write at full rate."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    writer = Writer(course)
    writer.start()
    try:
        yield writer
    finally:
        writer.end()
        sys.setswitchinterval(usual)


def _measure(course: Course, writer: Writer, bootstrap: str, topic: str, run: SystemRun | None = None) -> Latency:
    """Read from now on; count what was sent between the end of the warm-up and the end of the measured time."""
    check: Callable[[], None] = (lambda: None) if run is None else run.check
    compilers = CompilerAccount(course.brokers)

    def used() -> tuple[float, Busy]:
        return time.monotonic(), Busy(
            system=run.use().total if run is not None else 0.0,
            brokers=used_by(course.brokers),
            compilers=compilers.read(),
            bench=time.process_time(),
        )

    writer.at_full_rate()
    with reading(bootstrap, topic, course.partitions) as read:
        _read_until(read, time.monotonic() + course.warm_up_s - ASIDE_S, check)
        since, before = used()
        _read_until(read, time.monotonic() + ASIDE_S, check)
        first = time.monotonic_ns()
        _read_until(read, time.monotonic() + course.measured_s, check)
        last = time.monotonic_ns()
        _read_until(read, time.monotonic() + ASIDE_S, check)
        until, after = used()
        writer.end()
        counted = [each for each in writer.sent if first <= each < last]
        deadline = time.monotonic() + ARRIVE_WITHIN_S
        while len(taken := [pair for pair in read.arrivals.pairs if first <= pair[0] < last]) < len(counted):
            if time.monotonic() > deadline:
                raise Lost(
                    f"{len(counted) - len(taken)} of {len(counted)} records did not arrive; {writer.refused[:1]}"
                )
            _read_until(read, time.monotonic() + 0.5, check)
    if len(taken) != len(counted):
        raise Lost(f"{len(taken)} records arrived of {len(counted)}")
    return Latency(
        ordered_ms=tuple(sorted((arrived - sent) / 1e6 for sent, arrived in taken)),
        acknowledged_ms=tuple(sorted(took * 1e3 for sent, took in writer.acknowledged if first <= sent < last)),
        busy=after.since(before, until - since),
        offered_per_s=len(counted) / course.measured_s,
    )


@dataclass(frozen=True, slots=True)
class Reader:
    consumer: Any
    arrivals: _Arrivals


@contextmanager
def reading(bootstrap: str, topic: str, partitions: int) -> Iterator[Reader]:
    """A consumer that waits for nothing, at the present ends of the partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 1,
        }
    )
    with Connection(bootstrap) as connection:
        ends = end_offsets(connection, topic, partitions)
    consumer.assign([TopicPartition(topic, partition, end) for partition, end in enumerate(ends)])
    try:
        yield Reader(consumer, _Arrivals())
    finally:
        consumer.close()


def _read_until(read: Reader, deadline: float, check: Callable[[], None]) -> None:
    pairs, poll = read.arrivals.pairs, read.consumer.poll
    checked = time.monotonic()
    while (now := time.monotonic()) < deadline:
        message = poll(min(0.1, deadline - now))
        if message is None:
            continue
        arrived = time.monotonic_ns()
        if message.error():
            raise Lost(f"the reader: {message.error()}")
        pairs.append((int(message.value()[STAMP_AT]), arrived))
        if now - checked > 1:
            check()
            checked = now
