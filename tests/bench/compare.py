"""Is the copy the source? End offsets of every partition, and every record of samples from its beginning, middle and
end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.bench.wire import Connection, end_offsets

__all__ = ["Differs", "compare", "places"]

SAMPLES = 9  # stretches of each partition, evenly spread, the first and the last record included
STRETCH = 100
READ_S = 30.0


class Differs(Exception):
    """The copy is not the source; the message says where."""


def places(end: int, samples: int = SAMPLES, stretch: int = STRETCH) -> list[tuple[int, int]]:
    """``(from, to)`` of evenly spread stretches of a log from 0 to ``end``, in order and apart from each other."""
    if end <= samples * stretch:
        return [(0, end)] if end else []
    step = (end - stretch) / (samples - 1)
    return [(round(each * step), round(each * step) + stretch) for each in range(samples)]


def compare(source: str, target: str, topic: str, remote: str, partitions: int) -> int:
    """Raises Differs at the first difference.

    Returns how many records were compared by key, value, headers and timestamp.
    """
    with Connection(source) as ours, Connection(target) as theirs:
        upstream, downstream = end_offsets(ours, topic, partitions), end_offsets(theirs, remote, partitions)
    if upstream != downstream:
        raise Differs(f"end offsets {downstream} on the target, {upstream} on the source")
    compared = 0
    for partition, end in enumerate(upstream):
        wanted = places(end)
        pairs = zip(
            _read(source, topic, partition, wanted), _read(target, remote, partition, wanted), strict=True
        )  # fmt: skip
        for (offset, original), (_, copied) in pairs:
            if original != copied:
                raise Differs(f"the record at {offset} of partition {partition} is not the source's")
            compared += 1
    return compared


def _read(bootstrap: str, topic: str, partition: int, wanted: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer(settings | {"auto.offset.reset": "error"})
    try:
        for start, end in wanted:
            consumer.assign([TopicPartition(topic, partition, start)])
            for message in consumer.consume(end - start, READ_S):
                if message.error():
                    raise Differs(f"{topic}-{partition} from {start}: {message.error()}")
                yield message.offset() or 0, _digest(message)
    finally:
        consumer.close()


def _digest(message: Any) -> bytes:
    return sha256(repr((message.key(), message.value(), message.headers(), message.timestamp())).encode()).digest()
