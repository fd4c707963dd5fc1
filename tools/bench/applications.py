"""The applications of a switch: one that writes to all topics, and groups of one consumer each, on one cluster at a
time."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tools.bench.latency import Lost

POLL_S = 0.1
TICK_S = 0.02
ENDED_WITHIN_S = 30.0
UNHEARD = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)
NOT_YET = (KafkaError.UNKNOWN_TOPIC_OR_PART, *UNHEARD)

Subscribed = Callable[[str], Iterable[str]]
"""The topics that a reader of a topic subscribes to: it and its copy."""


@dataclass(slots=True)
class GroupReadings:
    """`first_at`: when it read its first record since it was started last (`time.time`); 0: none yet."""

    topics: Sequence[str]
    read: Counter[str]
    first_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """`lost`: records that were acknowledged and that a group of their topic has not read. `again`: each time that a
    group has read a record it had read before."""

    lost: int
    again: int


def count(written: Mapping[str, Collection[str]], groups: Iterable[GroupReadings]) -> Count:
    """`written`: values by topic. Each value was written once."""
    groups = list(groups)
    again = sum(times - 1 for group in groups for times in group.read.values())
    return Count(len(_lost(written, groups)), again)


def lost_before(written: Mapping[str, Mapping[str, float]], groups: Iterable[GroupReadings], moment: float) -> int:
    """Those lost that were acknowledged before. `written`: when each value was, by topic."""
    at = {value: when for values in written.values() for value, when in values.items()}
    return sum(at[value] < moment for value in _lost(written, groups))


def _lost(written: Mapping[str, Collection[str]], groups: Iterable[GroupReadings]) -> set[str]:
    lost = set[str]()
    for group in groups:
        for topic in group.topics:
            lost.update(set(written[topic]) - group.read.keys())
    return lost


class Applications:
    """Use as a context manager. `per_s` records a second go to all partitions of all topics in turn; each value is
    written once."""

    def __init__(
        self, topics: Sequence[str], *, partitions: int, groups: Mapping[str, Sequence[str]], per_s: int
    ) -> None:
        self._topics = list(topics)
        self._partitions = partitions
        self._per_s = per_s
        self._number = 0
        self.written: dict[str, dict[str, float]] = {topic: {} for topic in topics}
        """When a broker has acknowledged each value (`time.time`)."""
        self.groups = {name: GroupReadings(theirs, Counter()) for name, theirs in groups.items()}
        self._writing, self._reading = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._writer: threading.Thread | None = None
        self._trouble: list[Exception] = []

    def __enter__(self) -> "Applications":
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def start(self, bootstrap: str, subscribed: Subscribed) -> None:
        """On another cluster than before: nothing of before may run."""
        self._writing, self._reading = threading.Event(), threading.Event()
        self._threads = []
        for name, group in self.groups.items():
            group.first_at = 0.0
            topics = [each for topic in group.topics for each in subscribed(topic)]
            self._threads.append(self._guarded(partial(self._read, bootstrap, name, topics, self._reading)))
        self._writer = self._guarded(partial(self._write, bootstrap, self._writing))

    def stop(self) -> None:
        """Returns once the writer has its acknowledgements and each reader has committed what it has read. Raises
        Lost."""
        self.abandon()
        deadline = time.monotonic() + ENDED_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise Lost(f"the applications do not stop within {ENDED_WITHIN_S:g} s")
        self.check()

    def abandon(self) -> None:
        """As `stop`, on a cluster that may not answer any more: readers are not waited for."""
        self._reading.set()
        self.stop_writing()

    def stop_writing(self) -> None:
        """The readers go on."""
        self._writing.set()
        if self._writer is not None:
            self._writer.join(ENDED_WITHIN_S)

    def count(self) -> Count:
        """What has become of the records so far: those that are still on their way count as lost."""
        return count(self._written(), self._readings())

    def lost_before(self, moment: float) -> int:
        """How many of those that are lost so far were acknowledged before (`time.time`)."""
        return lost_before(self._written(), self._readings(), moment)

    def _written(self) -> Mapping[str, Mapping[str, float]]:
        return {topic: dict(values) for topic, values in self.written.items()}

    def _readings(self) -> Sequence[GroupReadings]:
        return [GroupReadings(one.topics, Counter(dict(one.read))) for one in self.groups.values()]

    def check(self) -> None:
        """Raises Lost with what a thread has ended with."""
        if self._trouble:
            raise Lost(f"the applications: {self._trouble[0]}") from self._trouble[0]

    def _guarded(self, work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except Exception as exc:  # noqa: BLE001 - raised by `check`
                self._trouble.append(exc)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _write(self, bootstrap: str, end: threading.Event) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": "true", "linger.ms": "5", "log_level": "0"}
        )
        began, sent = time.monotonic(), 0
        while not end.is_set():
            due = int((time.monotonic() - began) * self._per_s)
            while sent < due:
                self._write_one(producer)
                sent += 1
            producer.poll(0)
            end.wait(TICK_S)
        # What a dead broker never acknowledges was never written, for all the application knows.
        producer.flush(0.5)
        producer.purge()
        producer.flush(0.5)

    def _write_one(self, producer: Producer) -> None:
        number, self._number = self._number, self._number + 1
        topic = self._topics[number % len(self._topics)]
        value = f"{topic} {number}"
        partition = number // len(self._topics) % self._partitions

        def acknowledged(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.written[topic][value] = time.time()

        producer.produce(topic, key=f"{number % 13}", value=value, partition=partition, on_delivery=acknowledged)

    def _read(self, bootstrap: str, name: str, topics: Sequence[str], end: threading.Event) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "client.id": name,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "log_level": "0",
                "fetch.wait.max.ms": "100",
                "fetch.min.bytes": "65536",  # so that fifty readers do not ask for each record
                "socket.timeout.ms": "10000",
                "topic.metadata.refresh.interval.ms": "5000",
            }
        )
        consumer.subscribe(list(topics))
        group = self.groups[name]
        try:
            while not end.is_set():
                self._keep(consumer, group, consumer.consume(200, POLL_S))
        finally:
            consumer.close()

    def _keep(self, consumer: Consumer, group: GroupReadings, messages: Sequence[Message]) -> None:
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() in NOT_YET:
                    continue
                raise Lost(str(error))
            if not self._reading.is_set():
                group.first_at = group.first_at or time.time()
            group.read[(message.value() or b"").decode()] += 1
            ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
        if ends:
            offsets = [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as exc:
                if exc.args[0].code() not in UNHEARD:
                    raise
