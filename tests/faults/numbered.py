"""Records that bear their number: written at an even rate by a process of its own, and read back.

The writer is another process so that it keeps its rate whatever the one that breaks things is doing.
"""

import signal
import sys
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support import processes
from tests.support.clusters import unique_name
from tests.support.message_stream import read_messages

DIGITS = 12
PADDING = b" " + b"x" * 100
TICK_S = 0.005
FLUSH_S = 240.0
SAYS_S = 30.0  # then it says what was not acknowledged, rather than be killed
READ_S = 60.0


class Writer:
    """Writes ``rate`` records a second, dealt to the partitions in turn, until it is left. Numbers begin at ``first``.

    What the broker took is the truth. Raises AssertionError on leaving when the source did not acknowledge everything.
    """

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, rate: int, log: Path, first: int = 0) -> None:
        self._command = [sys.executable, "-m", "tests.faults.numbered", bootstrap, topic]
        self._command += [str(partitions), str(rate), str(first)]
        self._log = log

    def __enter__(self) -> Self:
        self._process = processes.spawn(self._command, output=self._log)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        status = processes.end(self._process, within=FLUSH_S + SAYS_S)
        if error is None:
            assert status == 0, f"the writer ended with {status}:\n{processes.tail(self._log)}"


def read_numbers(bootstrap: str, topic: str) -> "Mapping[int, array[int]]":
    """The number of every record that stands in the topic now, by partition, in order.

    Raises KafkaException, and TimeoutError when a partition is not read to its end.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique_name("numbers"),
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",  # a copy may be made in transactions
            "check.crcs": "true",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=READ_S).topics[topic].partitions
        numbers = {partition: array("q") for partition in sorted(partitions)}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in numbers])
        ended: set[int] = set()
        messages = read_messages(
            consumer, READ_S, lambda: f"{topic}: partitions {sorted(numbers.keys() - ended)} not read to their ends"
        )
        for message in messages:
            error, partition = message.error(), message.partition() or 0
            if error is None:
                numbers[partition].append(int((message.value() or b"")[:DIGITS]))
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            else:
                ended.add(partition)
                if len(ended) == len(numbers):
                    break
        return numbers
    finally:
        consumer.close()


def _write(bootstrap: str, topic: str, partitions: int, rate: int, first: int) -> int:
    """Returns the exit status: 0 when every record was acknowledged."""
    # Not an Event: its lock is this thread's own while it waits, so a handler that sets it may wait for itself.
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    refused: list[str] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            refused.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": "true",
            "linger.ms": "5",
            "compression.type": "lz4",
            "queue.buffering.max.messages": "1000000",
            "delivery.timeout.ms": str(int(FLUSH_S * 1000)),
            "delivery.report.only.error": True,
            "on_delivery": delivered,
            "log_level": "0",
        }
    )
    number, began = 0, time.monotonic()
    while not asked:
        time.sleep(TICK_S)
        due = int((time.monotonic() - began) * rate)
        while number < due:
            try:
                producer.produce(topic, b"%0*d" % (DIGITS, first + number) + PADDING, partition=number % partitions)
            except BufferError:  # the source is away and the queue is full: later
                break
            number += 1
        producer.poll(0)
    unsent = producer.flush(FLUSH_S)
    print(f"written {number}, not acknowledged {unsent}, refused {len(refused)} {refused[:1]}")  # noqa: T201 - its log
    return 1 if unsent or refused else 0


if __name__ == "__main__":
    sys.exit(_write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
