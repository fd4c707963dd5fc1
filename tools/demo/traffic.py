"""Order-like traffic: JSON of about 470 bytes with keys, headers and timestamps of its own, at a steady rate."""

import threading
import time
from collections import Counter, defaultdict
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tools.bench.orders import Orders
from tools.demo.scene import SHOP, client

NUMBER = "number"
"""The header with a record's number: counted from 0 within its topic, so that a missing one has a name."""

TICK_SECONDS = 0.02
LONGEST_TICK_SECONDS = 0.1
FLUSHED_WITHIN = 60.0


class Traffic:
    """Writes to all of a cluster's topics, on a thread, from `start` to `stop`. `written` counts acknowledgements."""

    def __init__(self, alias: str, bootstrap: str) -> None:
        self.written: Counter[str] = Counter()
        self.refused: list[str] = []
        self._topics = SHOP[alias]
        self._orders = Orders.drawn(seed=len(alias) + ord(alias[0]), pool=500)
        codec = "lz4" if alias == "A" else "zstd"
        # Idempotent, so that a record that is sent again for want of an answer does not stand in the source twice.
        own: dict[str, Any] = {"linger.ms": 1, "compression.type": codec, "enable.idempotence": True}
        self._producer = Producer(client(bootstrap, **own))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name=f"traffic-{alias}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns once everything sent is acknowledged or refused; raises TimeoutError when that takes too long.

        Idempotent.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if left := self._producer.flush(FLUSHED_WITHIN):
            raise TimeoutError(f"{left} records were not acknowledged within {FLUSHED_WITHIN:g} s")

    def _write(self) -> None:
        due: dict[str, float] = defaultdict(float)
        sent: Counter[str] = Counter()
        last = time.monotonic()
        while not self._stopping.wait(TICK_SECONDS):
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
