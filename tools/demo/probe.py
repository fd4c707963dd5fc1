"""How long a record takes: written on one cluster by the traffic until read from the other by a consumer."""

import threading
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.clusters import unique_name
from tools.demo.scene import client


class Probe:
    """Reads remote topics of one cluster on a thread, from when they exist until `stop`.

    `milliseconds` has one number for each record that was written after `measure_from` (wall clock, milliseconds).
    """

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self.milliseconds: list[float] = []
        self.measure_from = float("inf")
        self._missing = set(topics)
        self._stopping = threading.Event()
        own: dict[str, Any] = {"group.id": unique_name("probe"), "enable.auto.commit": False}
        self._consumer = Consumer(client(bootstrap, **own))
        self._thread = threading.Thread(target=self._read, name="probe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _read(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._missing:
                    self._look_for_topics()
                for message in self._consumer.consume(100, timeout=0.1):
                    written_at = message.timestamp()[1]
                    if message.error() is None and written_at >= self.measure_from:
                        self.milliseconds.append(time.time() * 1000 - written_at)
        finally:
            self._consumer.close()

    def _look_for_topics(self) -> None:
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
