"""Is the copy the source? End offsets of every partition, and every record of samples from its beginning, middle and
end.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.support.message_stream import read_messages
from tools.bench.stage import PARTITIONS, Lost
from tools.bench.wire import end_offsets

SAMPLES = 9  # stretches of each partition, evenly spread, the first and the last record included
STRETCH = 100
READ_S = 30.0
FETCH_BYTES = 64 * 1024  # of a partition at a time: little is read beyond a stretch

Content = tuple[Any, ...]
Made = Callable[[Message], Content | None]
"""Returns what a record of the source is on the target; None: it is left out."""


def sampled(end: int, samples: int = SAMPLES, stretch: int = STRETCH) -> list[tuple[int, int]]:
    """Return ``(from, to)`` of stretches of a log from 0 to ``end``, evenly spread and apart from each other."""
    if end <= samples * stretch:
        return [(0, end)] if end else []
    step = (end - stretch) / (samples - 1)
    return [(round(number * step), round(number * step) + stretch) for number in range(samples)]


def compare(source: str, target: str, topic: str, remote: str) -> int:
    """Compare ends and samples. Raises Lost at the first difference.

    Returns how many records were compared by key, value, headers and timestamp.
    """
    upstream, downstream = end_offsets(source, topic, PARTITIONS), end_offsets(target, remote, PARTITIONS)
    if upstream != downstream:
        raise Lost(f"end offsets {downstream} on the target, {upstream} on the source")
    compared = 0
    wanted = [sampled(end) for end in upstream]
    for number in range(max(map(len, wanted), default=0)):
        stretches = {partition: samples[number] for partition, samples in enumerate(wanted) if number < len(samples)}
        originals, copies = _read(source, topic, stretches), _read(target, remote, stretches)
        for (partition, offset), original in sorted(originals.items()):
            if original != copies.get((partition, offset)):
                raise Lost(f"the record at {offset} of partition {partition} is not the source's")
            compared += 1
    return compared


def content(message: Message) -> Content:
    """Return what a copy has in common with its record."""
    return message.key(), message.value(), message.headers(), message.timestamp()


def compare_in_order(source: str, target: str, topic: str, remote: str, made: Made = content) -> int:
    """Compare every record by its place, for a source whose offsets have gaps, with what is `made` of it.

    Raises Lost at the first difference. Returns how many records were compared.
    """
    compared = 0
    for partition in range(PARTITIONS):
        logs = _read_all(source, topic, partition, made), _read_all(target, remote, partition, content)
        for original, copied in zip_longest(*logs):
            if original != copied:
                place = "the target has no more" if copied is None else "it is not the source's"
                raise Lost(f"record {compared} in order, in partition {partition}: {place}")
            compared += 1
    return compared


def _messages(bootstrap: str, topic: str, starts: Mapping[int, int], **settings: object) -> Iterator[Message]:
    """Yield what is read from these offsets on. Raises Lost if nothing arrives for long."""
    own = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    with closing(Consumer({**own, "auto.offset.reset": "error", **settings})) as consumer:
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
        try:
            for message in read_messages(consumer, READ_S, lambda: f"{topic} was not read to the end"):
                if (error := message.error()) is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise Lost(f"{topic}-{message.partition()}: {error}")
                yield message
        except TimeoutError as late:
            raise Lost(str(late)) from late


def _read_all(bootstrap: str, topic: str, partition: int, made: Made) -> Iterator[bytes]:
    # A copy may be made in transactions.
    settings = {"enable.partition.eof": True, "isolation.level": "read_committed"}
    for message in _messages(bootstrap, topic, {partition: 0}, **settings):
        if message.error() is not None:
            return
        if (wanted := made(message)) is not None:
            yield _digest(wanted)


def _read(bootstrap: str, topic: str, wanted: Mapping[int, tuple[int, int]]) -> Mapping[tuple[int, int], bytes]:
    """Return a digest of each record in these ranges of offsets, by partition and offset.

    All partitions are read together, for each change of an assignment costs a tenth of a second.
    """
    digests: dict[tuple[int, int], bytes] = {}
    starts = {partition: start for partition, (start, _) in wanted.items()}
    missing = sum(end - start for start, end in wanted.values())
    for message in _messages(bootstrap, topic, starts, **{"max.partition.fetch.bytes": FETCH_BYTES}):
        partition, offset = message.partition() or 0, message.offset() or 0
        if offset < wanted[partition][1]:
            digests[partition, offset] = _digest(content(message))
        if len(digests) == missing:
            break
    return digests


def _digest(what: Content) -> bytes:
    return sha256(repr(what).encode()).digest()
