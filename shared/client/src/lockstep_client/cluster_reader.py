"""The I/O: topic names and the records of one partition, read from a cluster within a given time.

Each call opens a consumer of its own and closes it again. It joins no group and commits nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_client.errors import ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_state.kafka.librdkafka_errors import error_text

Conf = Mapping[str, str | int | float | bool]
"""librdkafka's settings, `bootstrap.servers` and what the cluster demands of a client."""

READING: dict[str, str | int | float | bool] = {
    "allow.auto.create.topics": False,
    "auto.offset.reset": "error",  # of a log that loses its beginning under our eyes we would miss a part
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_uncommitted",  # as MM2's own client; librdkafka's default is the other one
}
# librdkafka demands a group's name, and looks for its coordinator, though nothing is asked of it.
GROUP = "lockstep-client"

AT_ONCE = 1000
LONGEST_WAIT = 0.2  # seconds in one call; a Ctrl-C is seen in between

UNREACHABLE = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
}
DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
}
HARMLESS = {
    KafkaError.GROUP_AUTHORIZATION_FAILED,  # of the group that we do not use
    *UNREACHABLE,  # librdkafka tries again; the deadline ends it
}


class Reading:
    """A cluster being read until a deadline."""

    def __init__(self, consumer: Consumer, bootstrap: str, timeout: float, complaints: list[str]) -> None:
        self._consumer = consumer
        self._complaints = complaints
        self.bootstrap = bootstrap
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def topics(self) -> frozenset[str]:
        """Return the names of all visible topics. Raises ClusterUnreachable, NotPermitted, RequestRefused."""
        with self._translating_errors("list topics"):
            return frozenset(self._consumer.list_topics(timeout=self._remaining_s()).topics)

    def bounds(self, topic: str) -> tuple[int, int]:
        """Return the first offset and the present end of partition 0. Raises as `topics`."""
        with self._translating_errors(f"read {topic}"):
            watermarks = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=self._remaining_s())
        if watermarks is None:
            raise ClusterUnreachable(self.bootstrap, self._reason(f"no answer within {self._timeout:g} s"))
        return watermarks

    def records(self, topic: str, begin: int, end: int, on_record: Callable[[Message], None]) -> int:
        """Hand partition 0 to `on_record` from its beginning until `end`, in order, and return the position reached.

        That is below `end` if time ran out first. Raises NotPermitted, RequestRefused.
        """
        position = begin
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while position < end and self._remaining_s() > 0:
            # poll returns with the first record at once; consume(n, timeout) would wait for n of them.
            first_message = self._consumer.poll(min(self._remaining_s(), LONGEST_WAIT))
            if first_message is None:
                continue
            for message in [first_message, *self._consumer.consume(AT_ONCE, 0)]:
                error = message.error()
                if error is None:
                    on_record(message)
                    position = (message.offset() or 0) + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    position = max(position, message.offset() or 0)
                elif error.code() not in HARMLESS:
                    raise self._error(f"read {topic}", error)
        return position

    def _remaining_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    @contextmanager
    def _translating_errors(self, request: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as exc:
            self._consumer.poll(0)  # lets error_cb say what is wrong on the wire
            raise self._error(request, exc.args[0]) from exc

    def _error(self, request: str, error: KafkaError) -> ClusterUnreachable | NotPermitted | RequestRefused:
        if error.code() in DENIED:
            return NotPermitted(request, error_text(error))
        if error.code() in UNREACHABLE:
            return ClusterUnreachable(self.bootstrap, self._reason(error_text(error)))
        return RequestRefused(request, error.code(), error_text(error))

    def _reason(self, default: str) -> str:
        return self._complaints[-1] if self._complaints else default


@contextmanager
def reading(conf: Conf, timeout: float) -> Iterator[Reading]:
    """Open a cluster to read from within `timeout` seconds from now.

    Raises ValueError for a time that is not above 0, and KafkaException for settings that librdkafka does not take.
    """
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}: seconds above 0 are needed")
    complaints: list[str] = []

    def complain(error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # follows the one that says why
            complaints.append(error_text(error))

    consumer = Consumer({"group.id": GROUP, **conf, **READING, "error_cb": complain})
    try:
        yield Reading(consumer, str(conf.get("bootstrap.servers", "")), timeout, complaints)
    finally:
        consumer.close()
