"""The reading of a stretch of each partition of a topic, by a consumer that commits nothing. It blocks."""

import time
from collections.abc import Iterator, Mapping
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

MOST_AT_ONCE = 500
POLL_S = 0.2


def poll_stretch(
    consumer: Consumer, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], silent_s: float
) -> Iterator[list[Message]]:
    """Yield the records of each poll until all of the stretch is read. A poll may have none.

    Args:
        consumer: A consumer that is told where a partition ends (`enable.partition.eof`).
        topic: The topic.
        starts: The offset from which each partition is read.
        ends: The offset before which the reading of each partition ends.
        silent_s: The seconds without an answer after which the cluster counts as silent.

    Raises:
        KafkaException: The cluster refuses.
        TimeoutError: The cluster is silent.
    """
    unread = {number: end for number, end in ends.items() if end > starts[number]}
    if not unread:
        return
    consumer.assign([TopicPartition(topic, number, starts[number]) for number in unread])
    answered = time.monotonic()
    while unread:
        messages = consumer.consume(MOST_AT_ONCE, POLL_S)
        if messages:
            answered = time.monotonic()
        elif time.monotonic() - answered > silent_s:
            raise TimeoutError
        yield [message for message in messages if _is_unread(message, unread)]


def _is_unread(message: Message, unread: dict[int, int]) -> bool:
    """Return whether a message is a record before the end of its partition, and take out partitions that are read."""
    number = cast(int, message.partition())
    if (error := message.error()) is not None:
        if error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        unread.pop(number, None)
        return False
    offset, end = cast(int, message.offset()), unread.get(number)
    if end is None or offset + 1 >= end:
        unread.pop(number, None)
    return end is not None and offset < end
