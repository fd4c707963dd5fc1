"""Producers and consumers of one application that moves from cluster to cluster, and what they wrote and read."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.eventually import wait_until

POLL_S = 0.1
TICK_S = 0.02
"""A writer rests no shorter: a wait for each of a thousand records a second would keep a core busy."""
UNHEARD = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._WAIT_COORD)
"""What a client says of a cluster that is away."""
NOT_YET = (KafkaError.UNKNOWN_TOPIC_OR_PART, *UNHEARD)


class _Work:
    """A thread, and what tells it to end."""

    def __init__(self, thread: threading.Thread | None = None, stopping: threading.Event | None = None) -> None:
        self._thread = thread
        self._stopping = stopping or threading.Event()

    def ask_to_end(self) -> None:
        """Tell it to end. Do not wait."""
        self._stopping.set()

    def end(self) -> None:
        """Wait until it has ended."""
        self.ask_to_end()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive(), "the application does not stop"


class GroupReadings:
    """What one group of the application reads, with one consumer."""

    def __init__(self, name: str, topics: Sequence[str]) -> None:
        self.name = name
        self.topics = list(topics)
        self.read: Counter[str] = Counter()
        self.first_read_at = 0.0
        """When the consumer read its first record since it was started last (`time.time`); 0: none yet."""

    def subscribed(self, offered: Sequence[str]) -> list[str]:
        """Return which of these topics are its own, or copies of them."""
        return [name for name in offered if any(name == own or name.endswith(f".{own}") for own in self.topics)]


class Application:
    """Writes numbered records to topics, and reads them in groups, on one cluster at a time. Each value is written
    once, so that what is lost, or read twice, shows."""

    def __init__(
        self,
        group: str,
        topics: Sequence[str],
        *,
        partitions: int,
        rate: float = 200.0,
        groups: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`groups`: the topics that each group reads, by its name, if there are others than one that reads all.
        `settings`: further ones of the consumers."""
        self.group = group
        self._topics = list(topics)
        self._partitions = partitions
        self._rate = rate
        self._settings = dict(settings or {})
        self._numbers = itertools.count()
        self.written: dict[str, float] = {}
        """When a broker has acknowledged each value (`time.time`)."""
        self.groups = [GroupReadings(name, read) for name, read in (groups or {group: topics}).items()]
        self._producing, self._consuming = _Work(), [_Work()]
        self._trouble: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_all()

    @property
    def read(self) -> Counter[str]:
        """Return how often the first group has read each value."""
        return self.groups[0].read

    @property
    def unread(self) -> set[str]:
        """Return values that were written, and that a group of their topic has not read yet."""
        written = list(self.written)
        unread_values = set[str]()
        for group in self.groups:
            read = dict(group.read).keys()  # the thread that reads goes on
            unread_values |= {
                value for value in written if value.partition(" ")[0] in group.topics and value not in read
            }
        return unread_values

    @property
    def read_twice(self) -> dict[str, int]:
        """Return how often values were read that the first group has read more than once."""
        return {value: count for value, count in dict(self.read).items() if count > 1}

    @property
    def read_again(self) -> int:
        """Return how many times a group has read a record that it had read before."""
        return sum(count - 1 for group in self.groups for count in dict(group.read).values())

    def start(self, bootstrap: str, subscribed: Sequence[str], prefix: str = "") -> None:
        """Begin to write to the topics on a cluster, whose names begin with `prefix`, and to read the `subscribed`."""
        self.check()
        self._producing = self._begun(lambda stopping: self._produce(bootstrap, prefix, stopping))
        self._consuming = [self._reading(bootstrap, group, subscribed) for group in self.groups]

    def _reading(self, bootstrap: str, group: GroupReadings, subscribed: Sequence[str]) -> _Work:
        group.first_read_at = 0.0
        return self._begun(lambda stopping: self._consume(bootstrap, group, group.subscribed(subscribed), stopping))

    def go_on(self, records: int = 200, *, within: float = 120.0) -> None:
        """Wait until so many more were written and read on the cluster where it is."""
        written, read = len(self.written) + records, sum(self.read.values()) + records
        wait_until(
            lambda: len(self.written) >= written and sum(self.read.values()) >= read,
            within=within,
            every=0.1,
            what="the application goes on",
        )
        self.check()

    def abandon(self) -> None:
        """Let all end when they can: their cluster is gone, and a commit may wait for it for long."""
        for work in (self._producing, *self._consuming):
            work.ask_to_end()
        self._producing, self._consuming = _Work(), [_Work()]

    def stop(self) -> None:
        """End all. The producer has its acknowledgements, and each consumer has committed what it has read."""
        self._end_all()
        self.check()

    def stop_writing(self) -> None:
        """End the producer. The consumers go on."""
        self._producing.end()

    def stop_when_read(self, *, within: float = 60.0) -> None:
        """End the producer, and the consumers once everything is read."""
        self.stop_writing()
        try:
            wait_until(lambda: not self.unread, within=within, every=0.1, what="everything is read")
        finally:
            self._end_all()
        self.check()

    def check(self) -> None:
        """Raise what a thread has ended with."""
        if self._trouble is not None:
            raise self._trouble

    def _end_all(self) -> None:
        works = (self._producing, *self._consuming)
        for work in works:
            work.ask_to_end()
        for work in works:
            work.end()

    def _begun(self, work: Callable[[threading.Event], None]) -> "_Work":
        stopping = threading.Event()
        thread = threading.Thread(target=self._guarded, args=(work, stopping), daemon=True)
        thread.start()
        return _Work(thread, stopping)

    def _guarded(self, work: Callable[[threading.Event], None], stopping: threading.Event) -> None:
        try:
            work(stopping)
        except Exception as exc:  # noqa: BLE001 - raised by `check`
            self._trouble = exc

    def _produce(self, bootstrap: str, prefix: str, stopping: threading.Event) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": "true", "linger.ms": "5", "log_level": "0"}
        )
        began, sent = time.monotonic(), 0
        while not stopping.is_set():
            number = next(self._numbers)
            topic = self._topics[number % len(self._topics)]
            partition = (number // len(self._topics)) % self._partitions
            while not stopping.is_set():
                try:
                    value, key = f"{topic} {number}", f"{number % 13}"
                    producer.produce(f"{prefix}{topic}", value, key, partition, on_delivery=self._acknowledged)
                    break
                except BufferError:  # the cluster has acknowledged nothing for long
                    producer.poll(POLL_S)
            producer.poll(0)
            sent += 1
            if (ahead := sent / self._rate - (time.monotonic() - began)) > TICK_S:
                stopping.wait(ahead)
        producer.flush(10)

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.written[(message.value() or b"").decode()] = time.time()

    def _consume(
        self, bootstrap: str, group: GroupReadings, subscribed: Sequence[str], stopping: threading.Event
    ) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group.name,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "log_level": "0",
                "topic.metadata.refresh.interval.ms": "1000",
                **self._settings,
            }
        )
        consumer.subscribe(list(subscribed))
        try:
            while not stopping.is_set():
                self._keep(consumer, group, consumer.consume(100, POLL_S), stopping)
        finally:
            consumer.close()

    def _keep(
        self, consumer: Consumer, group: GroupReadings, messages: Sequence[Message], stopping: threading.Event
    ) -> None:
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() in NOT_YET:
                    continue
                raise KafkaException(error)
            if not stopping.is_set():
                group.first_read_at = group.first_read_at or time.time()
            group.read[(message.value() or b"").decode()] += 1
            ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
        if not ends:
            return
        offsets = [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as exc:
            if exc.args[0].code() not in UNHEARD:
                raise
