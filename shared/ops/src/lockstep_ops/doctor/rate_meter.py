"""Measures how fast this machine writes to a topic, and reads from some. It blocks: call it from a thread.

Both stop early when `stopping` is set. Bytes are those on the wire where librdkafka counts them, compressed or not.
"""

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaException, Message, Producer, TopicPartition

from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.session.broker_session import clock_reading
from lockstep_ops.doctor.checks.bandwidth import MeasuredRate, received_rate
from lockstep_ops.doctor.checks.cluster import ClockFacts
from lockstep_state.kafka.librdkafka_errors import error_text

RECORD_BYTES = 16_384
BATCH_BYTES = 1_000_000
MOST_BYTES = 1_000_000_000
"""The most bytes that a test writes."""

WRITING = {
    # A cluster may give no producer ids. As many requests are in flight as of a producer that has one.
    "enable.idempotence": "false",
    "max.in.flight.requests.per.connection": "5",
    "compression.type": "none",
    "linger.ms": "5",
    "batch.size": str(BATCH_BYTES),
    "message.max.bytes": str(BATCH_BYTES),
    "queue.buffering.max.kbytes": "131072",
    "allow.auto.create.topics": "false",
    "log_level": "0",
}
READING = {
    "group.id": "lockstep-follow",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",
    "queued.max.messages.kbytes": "131072",
    "statistics.interval.ms": "20",
    "allow.auto.create.topics": "false",
    "log_level": "0",
}

CLOCK_QUESTIONS = 5
FLUSH_S = 2.0


class WriteMeter:
    """A producer on the target that writes random bytes to one topic."""

    def __init__(self, alias: str, conf: Mapping[str, Any], topic: str, stopping: threading.Event) -> None:
        self._alias = alias
        self._conf = {**conf, **WRITING, "message.timeout.ms": "10000"}
        self._topic = topic
        self._stopping = stopping
        self._acknowledged = 0
        self._last_at = 0.0
        self._trouble = ""

    def measure(self, seconds: float) -> tuple[ClockFacts, MeasuredRate]:
        """Measure the clock of a broker, while nothing else runs, and then the rate of writing.

        Raises:
            ClusterUnreachable: There is no access token, or certificates cannot be used.
        """
        producer = create_client(Producer, self._conf, self._alias)
        try:
            clock = self._read_clock(producer)
            return clock, self._write(producer, seconds)
        finally:
            producer.purge()
            producer.flush(FLUSH_S)

    def _read_clock(self, producer: Producer) -> ClockFacts:
        """Read the broker's clock by the append time that it gives to a record.

        The quickest of several answers is the most exact.
        """
        readings: list[ClockFacts] = []
        for _ in range(CLOCK_QUESTIONS):
            times: list[float] = []

            def note(error: Any, message: Message, times: list[float] = times) -> None:
                if error is not None:
                    self._trouble = error_text(error)
                elif message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME:
                    times.append(float(message.timestamp()[1]))

            before = time.time()
            producer.produce(self._topic, value=b"clock", partition=0, on_delivery=note)
            producer.flush(FLUSH_S)
            after = time.time()
            if times:
                reading = clock_reading("the leader of the scratch topic", times[0], before, after)
                readings.append(ClockFacts(reading.node, reading.ahead_ms, reading.error_ms))
            if self._trouble or self._stopping.is_set():
                break
        if not readings:
            return ClockFacts(trouble=self._trouble or "the broker gave no time to a record")
        return min(readings, key=lambda clock: clock.error_ms)

    def _write(self, producer: Producer, seconds: float) -> MeasuredRate:
        value = os.urandom(RECORD_BYTES)
        began = time.perf_counter()
        sent = 0
        while not self._trouble and sent < MOST_BYTES:
            if self._stopping.is_set() or time.perf_counter() - began > seconds:
                break
            try:
                producer.produce(self._topic, value=value, on_delivery=self._delivered)
            except BufferError:
                producer.poll(0.05)
                continue
            sent += RECORD_BYTES
            producer.poll(0)
        producer.flush(FLUSH_S)
        lasted = self._last_at - began
        if self._trouble:
            return MeasuredRate(trouble=self._trouble)
        if self._acknowledged == 0:
            return MeasuredRate(trouble="nothing was acknowledged in time")
        return MeasuredRate(self._acknowledged / max(lasted, 1e-3), self._acknowledged)

    def _delivered(self, error: Any, _: Message) -> None:
        if error is not None:
            self._trouble = self._trouble or error_text(error)
            return
        self._acknowledged += RECORD_BYTES
        self._last_at = time.perf_counter()


class ReadMeter:
    """A consumer that is in no group and reads some partitions from given offsets."""

    def __init__(
        self, alias: str, conf: Mapping[str, Any], positions: Sequence[TopicPartition], stopping: threading.Event
    ) -> None:
        self._alias = alias
        self._conf = {**READING, **{key: conf[key] for key in conf if key not in READING or key == "group.id"}}
        self._positions = list(positions)
        self._stopping = stopping
        self._received: list[tuple[float, int]] = []

    def measure(self, seconds: float) -> MeasuredRate:
        """Measure the rate of reading.

        Raises:
            ClusterUnreachable: There is no access token, or certificates cannot be used.
        """
        consumer = create_client(Consumer, {**self._conf, "stats_cb": self._count}, self._alias)
        try:
            consumer.assign(self._positions)
            trouble = self._read(consumer, seconds)
        except KafkaException as exc:
            return MeasuredRate(trouble=error_text(exc.args[0]))
        finally:
            consumer.close()
        return MeasuredRate(trouble=trouble) if trouble else received_rate(self._received)

    def _count(self, text: str) -> None:
        """Note the bytes received from all brokers, out of librdkafka's statistics."""
        body = json.loads(text)
        size = sum(int(broker["rxbytes"]) for broker in body["brokers"].values())
        self._received.append((int(body["ts"]) / 1e6, size))

    def _read(self, consumer: Consumer, seconds: float) -> str:
        """Read and drop records. Return an error's text, or "" without an error."""
        began = time.perf_counter()
        while not self._stopping.is_set() and time.perf_counter() - began < seconds:
            for message in consumer.consume(500, 0.1):
                error = message.error()
                if error is not None:
                    return error_text(error)
        return ""
