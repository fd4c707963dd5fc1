"""Some records of a topic of the source, read by a consumer that commits nothing and creates no topic.

As for any consumer, a cluster that never had one creates its own `__consumer_offsets`.
"""

import time
from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.record_parts import message_headers
from lockstep_state.codecs.transform_trial import TrialPartition, TrialRecord
from lockstep_state.kafka.librdkafka_errors import error_text

MOST_AT_ONCE = 500
POLL_S = 0.2


def read_source_records(
    settings: FlowSettings,
    topic: str,
    limit: int,
    *,
    from_end: bool,
    silent_s: float,
    on_read: Callable[[int], None] = lambda _: None,
) -> tuple[TrialPartition, ...]:
    """Return the first or the last `limit` records of a topic by their partitions. It blocks.

    The last ones of all partitions are those with the newest timestamps. A record that is appended meanwhile does not
    count. Of a compacted partition, or one with transactions, the last offsets may have fewer records.

    Args:
        settings: The flow.
        topic: A topic of the source.
        limit: The most records.
        from_end: The last records, not the first ones.
        silent_s: The seconds without an answer after which the cluster counts as not reachable.
        on_read: Is told how many records were read.

    Raises:
        CannotUse: The source has no such topic, or a record has a header whose name is no UTF-8.
        ClusterUnreachable: The source does not answer, or refuses.
    """
    alias = settings.flow.source
    conf = {
        "group.id": "lockstep-transform-try",
        **client_settings.source_consumer(settings, "transform-try"),
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": settings.data_plane.isolation_level,
    }
    bootstrap = str(conf.get("bootstrap.servers", ""))
    consumer = create_client(Consumer, conf, alias)
    try:
        return _Reading(consumer, topic, limit, from_end, silent_s, on_read).read(alias)
    except KafkaException as exc:
        raise ClusterUnreachable(alias, bootstrap, error_text(exc.args[0])) from exc
    except TimeoutError as exc:
        raise ClusterUnreachable(alias, bootstrap, f"no answer within {silent_s:g} s") from exc
    finally:
        consumer.close()


class _Reading:
    """One reading. Its methods raise KafkaException, and TimeoutError for a cluster that is silent."""

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        limit: int,
        from_end: bool,
        silent_s: float,
        on_read: Callable[[int], None],
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self._limit = limit
        self._from_end = from_end
        self._silent_s = silent_s
        self._on_read = on_read
        self._read: list[tuple[int, TrialRecord]] = []
        self._count = 0

    def read(self, alias: str) -> tuple[TrialPartition, ...]:
        ends = self._ends(alias)
        starts = {
            partition: max(first, end - self._limit) if self._from_end else first
            for partition, (first, end) in ends.items()
            if end > first
        }
        unread = {partition: ends[partition][1] for partition in starts}
        self._consumer.assign([TopicPartition(self._topic, partition, start) for partition, start in starts.items()])
        answered = time.monotonic()
        while unread and (self._from_end or self._count < self._limit):
            messages = self._consumer.consume(MOST_AT_ONCE, POLL_S)
            if messages:
                answered = time.monotonic()
            elif time.monotonic() - answered > self._silent_s:
                raise TimeoutError
            for message in messages:
                self._take(message, unread)
            self._on_read(min(self._count, self._limit))
        return self._partitions()

    def _ends(self, alias: str) -> dict[int, tuple[int, int]]:
        # All topics are listed: a request that names one may create it.
        metadata = self._consumer.list_topics(timeout=self._silent_s).topics.get(self._topic)
        if metadata is None:
            raise CannotUse(
                f"cluster {alias} has no topic {self._topic}, or does not let this user see it: name a topic of the "
                "source, and not its copy"
            )
        ends = {}
        for partition in metadata.partitions:
            tp = TopicPartition(self._topic, partition)
            ends[partition] = self._consumer.get_watermark_offsets(tp, timeout=self._silent_s)
        return ends

    def _take(self, message: Message, unread: dict[int, int]) -> None:
        partition = cast(int, message.partition())
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            unread.pop(partition, None)
            return
        end = unread.get(partition)
        offset = cast(int, message.offset())
        if end is None or offset >= end:
            unread.pop(partition, None)
            return
        self._read.append((partition, _as_record(message)))
        self._count += 1
        if offset + 1 >= end:
            del unread[partition]

    def _partitions(self) -> tuple[TrialPartition, ...]:
        if self._from_end:
            newest = sorted(self._read, key=lambda read: (read[1].timestamp, read[1].offset))[-self._limit :]
        else:
            newest = self._read[: self._limit]
        records: dict[int, list[TrialRecord]] = {}
        for partition, record in sorted(newest, key=lambda read: (read[0], read[1].offset)):
            records.setdefault(partition, []).append(record)
        return tuple(TrialPartition(self._topic, partition, tuple(each)) for partition, each in records.items())


def _as_record(message: Message) -> TrialRecord:
    """Return the record of a message. Raises CannotUse for a header whose name is no UTF-8."""
    kind, timestamp = message.timestamp()
    key: Any = message.key()
    value: Any = message.value()
    offset = cast(int, message.offset())
    return TrialRecord(offset, timestamp, key, value, message_headers(message), kind == TIMESTAMP_LOG_APPEND_TIME)
