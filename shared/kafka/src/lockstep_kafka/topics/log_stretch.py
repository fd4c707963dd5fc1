"""The reading of a stretch of each partition of a topic, by a consumer that commits nothing. It blocks."""

import time
from collections.abc import Iterator, Mapping
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_kafka.topics.topic_reader import bounds

MOST_AT_ONCE = 500
POLL_S = 0.2


def read_bounds(
    consumer: Consumer, topic: str, silent_s: float, partition: int | None = None
) -> dict[int, tuple[int, int]] | None:
    """Return (first offset, offset after the last) of each partition of a topic, or of one; None: there is no topic.

    The topic is not created: all topics are listed, because a request that names one may create it.

    Raises:
        KafkaException: The cluster refuses, or does not answer within `silent_s` seconds.
    """
    metadata = consumer.list_topics(timeout=silent_s).topics.get(topic)
    if metadata is None or not metadata.partitions:
        return None
    numbers = [number for number in sorted(metadata.partitions) if partition in (None, number)]
    return {number: bounds(consumer, topic, number, silent_s) for number in numbers}


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
