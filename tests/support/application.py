"""Producers and consumers of one application that moves from cluster to cluster, and what they wrote and read."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.eventually import wait_until

POLL_S = 0.1


class _Work:
    """A thread, and what tells it to end."""

    def __init__(self, thread: threading.Thread | None = None, stopping: threading.Event | None = None) -> None:
        self._thread = thread
        self._stopping = stopping or threading.Event()

    def ask_to_end(self) -> None:
        """Returns at once."""
        self._stopping.set()

    def end(self) -> None:
        """Returns once it has ended."""
        self.ask_to_end()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive(), "the application does not stop"


class Application:
    """Writes numbered records to topics, and reads them as one group, on one cluster at a time. Each value is written
    once, so that what is lost, or read twice, shows."""

    def __init__(self, group: str, topics: Sequence[str], *, partitions: int, rate: float = 200.0) -> None:
        self.group = group
        self._topics = list(topics)
        self._partitions = partitions
        self._rate = rate
        self._numbers = itertools.count()
        self.written: list[str] = []
        """Values that a broker has acknowledged."""
        self.read: Counter[str] = Counter()
        self._read_by_partition: dict[tuple[str, int], list[str]] = {}
        self.first_read_at = 0.0
        """When the consumer read its first record since it was started last (`time.time`)."""
        self._producing, self._consuming = _Work(), _Work()
        self._trouble: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for work in (self._producing, self._consuming):
            work.end()

    @property
    def unread(self) -> set[str]:
        """Values that were written and not read yet."""
        return set(self.written) - dict(self.read).keys()  # the thread that reads goes on

    @property
    def read_twice(self) -> dict[str, int]:
        return {value: count for value, count in dict(self.read).items() if count > 1}

    def start(self, bootstrap: str, subscribed: Sequence[str]) -> None:
        """Begin to write to the topics on a cluster, and to read those that are `subscribed` there."""
        self.check()
        self.first_read_at = 0.0
        self._producing = self._begun(lambda stopping: self._produce(bootstrap, stopping))
        self._consuming = self._begun(lambda stopping: self._consume(bootstrap, subscribed, stopping))

    def go_on(self, records: int = 200, *, within: float = 120.0) -> None:
        """Until so many more were written and read, where it is."""
        written, read = len(self.written) + records, sum(self.read.values()) + records
        wait_until(
            lambda: len(self.written) >= written and sum(self.read.values()) >= read,
            within=within,
            every=0.1,
            what="the application goes on",
        )
        self.check()

    def abandon(self) -> None:
        """Let both end when they can: their cluster is gone, and a commit may wait for it for long."""
        for work in (self._producing, self._consuming):
            work.ask_to_end()
        self._producing, self._consuming = _Work(), _Work()

    def stop(self) -> None:
        """End both. The producer has its acknowledgements, and the consumer has committed what it has read."""
        self._producing.end()
        self._consuming.end()
        self.check()

    def stop_when_read(self, *, within: float = 60.0) -> None:
        """End the producer, and the consumer once it has read everything."""
        self._producing.end()
        try:
            wait_until(lambda: not self.unread, within=within, every=0.1, what="everything is read")
        finally:
            self._consuming.end()
        self.check()

    def check(self) -> None:
        """Raises what a thread has ended with."""
        if self._trouble is not None:
            raise self._trouble

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

    def _produce(self, bootstrap: str, stopping: threading.Event) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": "true", "linger.ms": "5", "log_level": "0"}
        )
        began, sent = time.monotonic(), 0
        while not stopping.is_set():
            number = next(self._numbers)
            topic = self._topics[number % len(self._topics)]
            value = f"{topic} {number}"
            producer.produce(
                topic,
                key=f"{number % 13}",
                value=value,
                partition=(number // len(self._topics)) % self._partitions,
                on_delivery=self._acknowledged,
            )
            producer.poll(0)
            sent += 1
            stopping.wait(max(0.0, sent / self._rate - (time.monotonic() - began)))
        producer.flush(10)

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.written.append((message.value() or b"").decode())

    def _consume(self, bootstrap: str, subscribed: Sequence[str], stopping: threading.Event) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.group,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "log_level": "0",
                "topic.metadata.refresh.interval.ms": "1000",
            }
        )
        consumer.subscribe(list(subscribed))
        try:
            while not stopping.is_set():
                self._keep(consumer, consumer.consume(100, POLL_S))
        finally:
            consumer.close()

    def _keep(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise KafkaException(error)
            self.first_read_at = self.first_read_at or time.time()
            value = (message.value() or b"").decode()
            self.read[value] += 1
            where = message.topic() or "", message.partition() or 0
            self._read_by_partition.setdefault(where, []).append(value)
            ends[where] = (message.offset() or 0) + 1
        if ends:
            offsets = [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
