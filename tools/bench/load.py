"""Filling the source topic before anything is measured, and saying what then lies in its log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from tools.bench.orders import Orders

LINGER_MS = 50  # long enough that batches fill, so their size is what was asked for
FLUSH_S = 120.0
EVERY = 1_000  # records between two looks at the delivery reports


class NotLoaded(Exception):
    """The source topic could not be filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """``record_bytes`` is the mean of key and value before compression."""

    records: int
    record_bytes: float


def load(
    bootstrap: str,
    topic: str,
    *,
    records: int,
    partitions: int,
    codec: str,
    batch_bytes: int,
    key_of: Callable[[int], bytes] | None = None,
) -> Loaded:
    """Write the records, dealt to the partitions in turn, so that each holds the same number.

    ``key_of`` a number is the order's own key where nothing is given. Without a producer id: the stored batches can
    then be produced again just as they lie. Raises NotLoaded.
    """
    refused: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(str(error))

    producer = Producer(_settings(bootstrap, codec, batch_bytes) | {"on_delivery": delivered})
    orders, size = Orders.drawn(), 0
    draw_key = key_of or orders.key
    for number in range(records):
        key, value = draw_key(number), orders.value(number)
        size += len(key) + len(value)
        _produce(producer, topic, key, value, number % partitions)
        if number % EVERY == 0:
            producer.poll(0)
    left = producer.flush(FLUSH_S)
    if left or refused:
        raise NotLoaded(f"{left} records not acknowledged, {len(refused)} refused ({refused[:1]})")
    return Loaded(records=records, record_bytes=size / records)


def _settings(bootstrap: str, codec: str, batch_bytes: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "compression.type": codec,
        "linger.ms": LINGER_MS,
        "batch.size": batch_bytes,
        "batch.num.messages": 1_000_000,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 512_000,
        "enable.idempotence": False,
        "max.in.flight.requests.per.connection": 1,  # order without a producer id
        "acks": "all",
        "delivery.report.only.error": True,
    }


def _produce(producer: Producer, topic: str, key: bytes, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
            return
        except BufferError:  # the queue is full: wait for acknowledgements to make room
            producer.poll(0.1)
