"""Records that keep coming while a test does something to whoever copies them."""

import itertools
import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from tests.harness.eventually import wait_until

__all__ = ["Traffic"]


class Traffic:
    """Writes numbered records, round-robin over the partitions of a topic, in a thread until it is left.

    No two records are equal, so a doubled or missing one shows. Small lingering batches of `batch` records. What the
    broker took is the truth, whatever the producer heard of it: tests compare with the source topic.
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
        self._partitions = partitions
        self._rate = rate
        self._timestamp_ms = timestamp_ms
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": "true",
                "batch.num.messages": str(batch),
                "linger.ms": "10",
                "compression.type": "lz4",
                "log_level": "0",
                "delivery.timeout.ms": "60000",
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"traffic to {topic}", daemon=True)
        self.written = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join(90)
        left = self._producer.flush(60)
        if error is None:
            assert left == 0, f"{left} records were not acknowledged by the source"

    def wait_for_more(self, records: int, *, within: float = 60.0) -> None:
        """Returns once so many more were written."""
        wanted = self.written + records
        wait_until(lambda: self.written >= wanted, within=within, what=f"{records} more records to {self._topic}")

    def _run(self) -> None:
        begun = time.monotonic()
        for number in itertools.count():
            if self._stopping.is_set():
                return
            self._producer.produce(
                self._topic,
                key=b"key-%d" % (number % 97),
                value=b"record %d " % number + b"x" * 100,
                partition=number % self._partitions,
                timestamp=self._timestamp_ms or time.time_ns() // 1_000_000,
            )
            self._producer.poll(0)
            self.written = number + 1
            ahead = (number + 1) / self._rate - (time.monotonic() - begun)
            if ahead > 0.02:
                self._stopping.wait(ahead)
