"""Records that keep coming while a test does something to whoever copies them."""

import itertools
import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.support.eventually import wait_until

NOT_NOW = {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
"""What a producer says that has been without its broker, or is not told of the topic yet by one just started."""

LOST_AFTER = 20.0
"""Seconds without an acknowledgement after which another producer goes on."""


class Traffic:
    """Writes numbered records, round-robin over the partitions of a topic, in a thread until it is left.

    No two records are equal, so a doubled or missing one shows. Small lingering batches of `batch` records. What the
    broker took is the truth, whatever the producer heard of it: tests compare with the source topic. Brokers may go
    and come back; whatever else ends the writing is raised by `wait_for_more` and when it is left.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int = 1,
        rate: float = 500.0,
        batch: int = 10,
        timestamp_ms: int | None = None,
    ) -> None:
        self._topic = topic
        self.partitions = partitions
        self._rate = rate
        self._timestamp_ms = timestamp_ms
        self._conf = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": "true",
            "batch.num.messages": str(batch),
            "linger.ms": "10",
            "compression.type": "lz4",
            "log_level": "0",
            "delivery.timeout.ms": "60000",
        }
        self._producer = Producer(self._conf)
        self._answered_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"traffic to {topic}", daemon=True)
        self._trouble: Exception | None = None
        self.written = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join(90)
        unacknowledged = self._producer.flush(60)
        if error is None:
            self._must_go_on()
            assert unacknowledged == 0, f"{unacknowledged} records were not acknowledged by the source"

    def wait_for_more(self, records: int, *, within: float = 60.0) -> None:
        """Wait until so many more were written."""
        wanted = self.written + records

        def came() -> bool:
            self._must_go_on()
            return self.written >= wanted

        wait_until(came, within=within, what=f"{records} more records to {self._topic}")

    def _must_go_on(self) -> None:
        if self._trouble is not None:
            raise self._trouble

    def _run(self) -> None:
        try:
            self._write()
        except Exception as exc:  # noqa: BLE001 - raised where somebody looks
            self._trouble = exc

    def _write(self) -> None:
        begun = self._answered_at = time.monotonic()
        for number in itertools.count():
            while not self._stopping.is_set() and not self._taken(number):
                self._stopping.wait(0.1)
            if self._stopping.is_set():
                return
            self._producer.poll(0)
            self.written = number + 1
            ahead = (number + 1) / self._rate - (time.monotonic() - begun)
            if ahead > 0.02:
                self._stopping.wait(ahead)

    def _taken(self, number: int) -> bool:
        if time.monotonic() - self._answered_at > LOST_AFTER:
            self._reconnect()
        try:
            self._producer.produce(
                self._topic,
                key=b"key-%d" % (number % 97),
                value=b"record %d " % number + b"x" * 100,
                partition=number % self.partitions,
                timestamp=self._timestamp_ms or time.time_ns() // 1_000_000,
                on_delivery=self._delivered,
            )
        except (KafkaException, BufferError) as exc:
            if isinstance(exc, KafkaException) and exc.args[0].code() not in NOT_NOW:
                raise
            self._producer.poll(0)
            return False
        return True

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._answered_at = time.monotonic()

    def _reconnect(self) -> None:
        """Connect anew: librdkafka may have lost its broker for good (docs/decisions/0040)."""
        self._producer.purge()
        self._producer.flush(1)
        self._producer = Producer(self._conf)
        self._answered_at = time.monotonic()
