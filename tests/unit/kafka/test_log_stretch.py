"""Which records of each poll are in a stretch, and when its reading ends."""

from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lockstep_kafka.topics.log_stretch import poll_stretch

EOF = KafkaError(KafkaError._PARTITION_EOF)


class FakeMessage:
    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        self.place, self._error = (partition, offset), error

    def partition(self) -> int:
        return self.place[0]

    def offset(self) -> int:
        return self.place[1]

    def error(self) -> KafkaError | None:
        return self._error


class Polled:
    """A consumer with the messages of each poll."""

    def __init__(self, *polls: list[FakeMessage]) -> None:
        self.polls = list(polls)
        self.assigned: list[tuple[int, int]] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = [(each.partition, each.offset) for each in partitions]

    def consume(self, _count: int, _timeout: float) -> list[FakeMessage]:
        return self.polls.pop(0) if self.polls else []


def read(consumer: Polled, starts: dict[int, int], ends: dict[int, int]) -> list[list[tuple[int, int]]]:
    polls: Any = poll_stretch(cast(Consumer, consumer), "orders", starts, ends, 0.0)
    return [[message.place for message in messages] for messages in polls]


def test_records_before_the_ends_are_given_poll_by_poll() -> None:
    consumer = Polled([FakeMessage(0, 3), FakeMessage(1, 7)], [FakeMessage(0, 4), FakeMessage(0, 5)])
    assert read(consumer, {0: 3, 1: 7, 2: 9}, {0: 5, 1: 8, 2: 9}) == [[(0, 3), (1, 7)], [(0, 4)]]
    assert consumer.assigned == [(0, 3), (1, 7)]


def test_record_behind_a_gap_and_the_end_of_the_log_end_a_partition() -> None:
    consumer = Polled([FakeMessage(0, 6), FakeMessage(1, 0)], [FakeMessage(1, 1, EOF)])
    assert read(consumer, {0: 3, 1: 0}, {0: 5, 1: 4}) == [[(1, 0)], []]


def test_nothing_to_read_takes_no_poll() -> None:
    consumer = Polled([FakeMessage(0, 0)])
    assert read(consumer, {0: 4}, {0: 4}) == []
    assert (consumer.assigned, len(consumer.polls)) == ([], 1)


def test_refusal_and_silence_are_errors() -> None:
    with pytest.raises(KafkaException):
        read(Polled([FakeMessage(0, 0, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]), {0: 0}, {0: 1})
    with pytest.raises(TimeoutError):
        read(Polled(), {0: 0}, {0: 1})
