"""Some records of a topic of the source, read by a consumer that commits nothing and creates no topic.

As for any consumer, a cluster that never had one creates its own `__consumer_offsets`.
"""

from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaException, Message

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.topics.log_stretch import poll_stretch, read_bounds
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.record_parts import message_headers
from lockstep_state.codecs.transform_trial import TrialPartition, TrialRecord
from lockstep_state.kafka.librdkafka_errors import error_text


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
        return _SourceReading(consumer, topic, limit, from_end, silent_s, on_read).read(alias)
    except KafkaException as exc:
        raise ClusterUnreachable(alias, bootstrap, error_text(exc.args[0])) from exc
    except TimeoutError as exc:
        raise ClusterUnreachable(alias, bootstrap, f"no answer within {silent_s:g} s") from exc
    finally:
        consumer.close()


class _SourceReading:
    """The reading of one topic of the source.

    Its methods raise KafkaException, and TimeoutError for a cluster that is silent.
    """

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

    def read(self, alias: str) -> tuple[TrialPartition, ...]:
        limits = read_bounds(self._consumer, self._topic, self._silent_s)
        if limits is None:
            raise CannotUse(
                f"cluster {alias} has no topic {self._topic}, or does not let this user see it: name a topic of the "
                "source, and not its copy"
            )
        starts = {
            partition: max(first, end - self._limit) if self._from_end else first
            for partition, (first, end) in limits.items()
        }
        ends = {partition: end for partition, (_, end) in limits.items()}
        for messages in poll_stretch(self._consumer, self._topic, starts, ends, self._silent_s):
            self._read += [(cast(int, message.partition()), _as_record(message)) for message in messages]
            self._on_read(min(len(self._read), self._limit))
            if not self._from_end and len(self._read) >= self._limit:
                break
        return self._partitions()

    def _partitions(self) -> tuple[TrialPartition, ...]:
        if self._from_end:
            newest = sorted(self._read, key=lambda read: (read[1].timestamp, read[1].offset))[-self._limit :]
        else:
            newest = self._read[: self._limit]
        records: dict[int, list[TrialRecord]] = {}
        for partition, record in sorted(newest, key=lambda read: (read[0], read[1].offset)):
            records.setdefault(partition, []).append(record)
        return tuple(TrialPartition(self._topic, partition, tuple(read)) for partition, read in records.items())


def _as_record(message: Message) -> TrialRecord:
    """Return the record of a message. Raises CannotUse for a header whose name is no UTF-8."""
    kind, timestamp = message.timestamp()
    key: Any = message.key()
    value: Any = message.value()
    offset = cast(int, message.offset())
    return TrialRecord(offset, timestamp, key, value, message_headers(message), kind == TIMESTAMP_LOG_APPEND_TIME)
