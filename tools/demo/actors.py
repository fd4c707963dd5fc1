"""Who acts in the demo, each on a thread: what writes, a consumer group, and a reader that takes the time."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.clusters import unique_name
from tools.bench.orders import Orders
from tools.demo.scene import GROUP, SHOP, client

NUMBER = "number"
"""The header with a record's number: counted from 0 within its topic, so that a missing one has a name."""

TICK_SECONDS = 0.02
LONGEST_TICK_SECONDS = 0.1
FLUSHED_WITHIN = 60.0


class Actor:
    """Acts on a thread from `start` to `stop`, which may be called twice."""

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self._failure: KafkaException | None = None
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait until it has ended. Raises KafkaException if acting failed."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def act(self) -> None:
        """Act until `stopping` is set."""
        raise NotImplementedError

    def _guarded(self) -> None:
        try:
            self.act()
        except KafkaException as exc:
            self._failure = exc


class Traffic(Actor):
    """Writes to all of a cluster's topics, at a steady rate: order-like JSON of about 470 bytes with keys, headers and
    timestamps of its own. `written` counts acknowledgements."""

    def __init__(self, alias: str, bootstrap: str) -> None:
        super().__init__(f"traffic-{alias}")
        self.written: Counter[str] = Counter()
        self.refused: list[str] = []
        self._topics = SHOP[alias]
        self._orders = Orders.drawn(seed=len(alias) + ord(alias[0]), pool=500)
        codec = "lz4" if alias == "A" else "zstd"
        # Idempotent, so that a record that is sent again for want of an answer does not stand in the source twice.
        own: dict[str, Any] = {"linger.ms": 1, "compression.type": codec, "enable.idempotence": True}
        self._producer = Producer(client(bootstrap, **own))

    def stop(self) -> None:
        """End it once everything sent is acknowledged or refused. Raises TimeoutError if that takes too long."""
        super().stop()
        if unacknowledged := self._producer.flush(FLUSHED_WITHIN):
            raise TimeoutError(f"{unacknowledged} records were not acknowledged within {FLUSHED_WITHIN:g} s")

    def act(self) -> None:
        due: dict[str, float] = defaultdict(float)
        sent: Counter[str] = Counter()
        last = time.monotonic()
        while not self.stopping.wait(TICK_SECONDS):
            # On a busy machine the traffic thins out; making up for it would be a burst that nobody asked for.
            now = time.monotonic()
            passed, last = min(now - last, LONGEST_TICK_SECONDS), now
            for topic in self._topics:
                due[topic.name] += topic.rate * passed
                while sent[topic.name] < int(due[topic.name]):
                    self._send(topic.name, sent[topic.name], compacted="cleanup.policy" in topic.configs)
                    sent[topic.name] += 1
            self._producer.poll(0)

    def _send(self, topic: str, number: int, *, compacted: bool) -> None:
        # A customer who leaves is a tombstone; an order without a customer has no key. Both must arrive as they are.
        value = None if compacted and number % 10 == 9 else self._orders.value(number)
        key = None if not compacted and number % 20 == 19 else self._orders.key(number)
        headers: list[tuple[str, str | bytes | None]] = [(NUMBER, b"%d" % number)]
        headers += [("channel", b"web"), ("channel", b"")]
        now = int(time.time() * 1000)
        self._producer.produce(topic, value, key, headers=headers, timestamp=now, on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.written[str(message.topic())] += 1
        else:
            self.refused.append(f"{message.topic()}: {error.str()}")


class GroupReader(Actor):
    """One member of the group: reads `topic` and commits after each handful.

    `read` has the numbers of the records by partition, in the order in which they came.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(f"group-{topic}")
        self.topic = topic
        self.read: dict[int, list[int]] = defaultdict(list)
        self.committed: dict[int, int] = {}
        """The offset committed last in each partition; to be looked at after `stop`."""
        own: dict[str, Any] = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer(client(bootstrap, **own, **{"session.timeout.ms": 6000}))

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in list(self.read.values()))

    def act(self) -> None:
        try:
            self._consumer.subscribe([self.topic])
            while not self.stopping.is_set():
                self._add_messages(self._consumer.consume(100, timeout=0.2))
        finally:
            self._consumer.close()

    def _add_messages(self, messages: list[Message]) -> None:
        for message in messages:
            if (error := message.error()) is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue  # librdkafka tells of what it is already mending
            partition = message.partition() or 0
            self.read[partition].append(int(dict(message.headers() or ())[NUMBER] or b""))
            self.committed[partition] = (message.offset() or 0) + 1
        if messages and self.committed:
            positions = [TopicPartition(self.topic, partition, offset) for partition, offset in self.committed.items()]
            self._consumer.commit(offsets=positions, asynchronous=False)


class Probe(Actor):
    """Reads remote topics of one cluster, from when they exist: how long a record takes until it is read there.

    `milliseconds` has one number for each record that was written after `measure_from` (wall clock, milliseconds).
    """

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        super().__init__("probe")
        self.milliseconds: list[float] = []
        self.measure_from = float("inf")
        self._reader = LateReader(bootstrap, topics)

    def act(self) -> None:
        try:
            while not self.stopping.is_set():
                for message in self._reader.consume(100, 0.1):
                    written_at = message.timestamp()[1]
                    if message.error() is None and written_at >= self.measure_from:
                        self.milliseconds.append(time.time() * 1000 - written_at)
        finally:
            self._reader.close()


class LateReader:
    """Reads topics from their beginning, each once it is there: the client would complain about it before."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._missing = set(topics)
        own: dict[str, Any] = {"group.id": unique_name("reader"), "enable.auto.commit": False}
        self._consumer = Consumer(client(bootstrap, **own))

    def consume(self, count: int, timeout: float) -> list[Message]:
        """Return what has come, at most so many messages."""
        if self._missing:
            existing = self._consumer.list_topics(timeout=10).topics
            appeared = self._missing & existing.keys()
            self._missing -= appeared
            partitions = [
                TopicPartition(name, partition, OFFSET_BEGINNING)
                for name in appeared
                for partition in existing[name].partitions
            ]
            if partitions:
                self._consumer.incremental_assign(partitions)
        return self._consumer.consume(count, timeout=timeout)

    def close(self) -> None:
        self._consumer.close()
