"""A consumer group that reads the orders, on one cluster and then on the other."""

import threading
from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tools.demo.scene import GROUP, client
from tools.demo.traffic import NUMBER


class GroupReader:
    """One member of the group: reads `topic` on a thread and commits after each handful, until it is told to stop.

    `read` has the numbers of the records by partition, in the order in which they came.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.read: dict[int, list[int]] = defaultdict(list)
        self.committed: dict[int, int] = {}
        """The offset committed last in each partition; to be looked at after `stop`."""
        self._failure: KafkaException | None = None
        self._stopping = threading.Event()
        own = {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
        self._consumer = Consumer(client(bootstrap, **own))
        self._thread = threading.Thread(target=self._follow, name=f"group-{topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leaves the group, with all that was read committed. Raises KafkaException when that or reading failed."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in list(self.read.values()))

    def _follow(self) -> None:
        try:
            self._consumer.subscribe([self.topic])
            while not self._stopping.is_set():
                self._add_messages(self._consumer.consume(100, timeout=0.2))
        except KafkaException as exc:
            self._failure = exc
        finally:
            self._consumer.close()

    def _add_messages(self, messages: list[Message]) -> None:
        for message in messages:
            if (error := message.error()) is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue  # librdkafka tells of what it is already mending
            self.read[_number(message.partition())].append(number_of(message))
            self.committed[_number(message.partition())] = _number(message.offset()) + 1
        if messages and self.committed:
            positions = [TopicPartition(self.topic, partition, offset) for partition, offset in self.committed.items()]
            self._consumer.commit(offsets=positions, asynchronous=False)


def number_of(message: Message) -> int:
    """The number that the traffic gave the record."""
    number = dict(message.headers() or ())[NUMBER]
    assert number is not None
    return int(number)


def _number(value: int | None) -> int:
    assert value is not None  # only an event without a record has none
    return value
