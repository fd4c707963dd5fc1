"""Some records of a control topic with their headers, read by a consumer that commits nothing. It blocks.

A topic may have millions of records, and anybody with the right to write may append what they like. So the number of
records, the offsets that are searched, and the seconds are limited.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import Consumer, KafkaException, Message

from lockstep_config.credentials.permissions import Access
from lockstep_kafka.common.errors import ClusterUnreachable, TopicMissing
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.topics.log_stretch import poll_stretch, read_bounds
from lockstep_kafka.topics.topic_reader import Record, reading_error
from lockstep_ops.control_topics import ControlTopic

WINDOWS = (1, 8, 64)
"""Offsets that are searched for one record from the end on, window after window: compaction leaves few in many."""

READING = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
    "fetch.message.max.bytes": "1048576",
    "queued.max.messages.kbytes": "8192",
    "log_level": "0",
}

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A record and its headers; None: the name of one is no UTF-8, so that none can be read."""

    record: Record
    headers: tuple[Header, ...] | None = ()


@dataclass(frozen=True, slots=True)
class ControlRecords:
    """Records of a topic, the oldest first, and the bounds of each partition: its first offset and its end.

    Records of several partitions are in the order of their timestamps.
    """

    records: tuple[ControlRecord, ...]
    bounds: Mapping[int, tuple[int, int]]
    older: int | None = None
    """The offset before which there are perhaps more records; None: there are none, or it is several partitions."""


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """The records that are wanted: at most `limit` of `partition`, or of all partitions with None.

    With `from_end` they are the newest ones, else the oldest ones. `before` is an offset that they are below; None:
    the end. `matches` says which records count.
    """

    limit: int
    from_end: bool = True
    partition: int | None = None
    before: int | None = None
    matches: Callable[[Record], bool] = lambda _: True


def read_control_records(
    topic: ControlTopic, access: Access, search: RecordSearch, *, silent_s: float = 5.0, within_s: float = 15.0
) -> ControlRecords:
    """Return records of a topic. A record that is appended meanwhile does not count.

    Args:
        topic: The topic.
        access: The rights that we need on its cluster. Errors name them.
        search: The records that are wanted.
        silent_s: The seconds without an answer after which the cluster counts as not reachable.
        within_s: The seconds after which the reading ends with what was found.

    Raises:
        ClusterError: The cluster does not answer, has no such topic (TopicMissing), or does not permit it.
    """
    conf = {"group.id": "lockstep-records", **topic.conf, **READING}
    bootstrap = str(conf.get("bootstrap.servers", ""))
    consumer = create_client(Consumer, conf, topic.alias)
    try:
        return _ControlTopicReading(consumer, topic, search, silent_s, time.monotonic() + within_s).read()
    except KafkaException as exc:
        raise reading_error(exc.args[0], topic.name, topic.alias, bootstrap, access) from exc
    except TimeoutError as exc:
        raise ClusterUnreachable(topic.alias, bootstrap, f"no answer within {silent_s:g} s") from exc
    finally:
        consumer.close()


class _ControlTopicReading:
    """The reading of one control topic.

    Its methods raise KafkaException, and TimeoutError for a cluster that is silent.
    """

    def __init__(
        self, consumer: Consumer, topic: ControlTopic, search: RecordSearch, silent_s: float, ends_at: float
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self._search = search
        self._silent_s = silent_s
        self._ends_at = ends_at

    def read(self) -> ControlRecords:
        limits = read_bounds(self._consumer, self._topic.name, self._silent_s, self._search.partition)
        if limits is None:
            raise TopicMissing(self._topic.alias, self._topic.name)
        before = self._search.before
        ends = {number: end if before is None else min(end, before) for number, (_, end) in limits.items()}
        firsts = {number: first for number, (first, _) in limits.items()}
        if not self._search.from_end:
            return ControlRecords(tuple(self._first_records(firsts, ends)), limits)
        records, reached = self._last_records(firsts, ends)
        kept = records[-self._search.limit :]
        if len(limits) != 1:
            return ControlRecords(tuple(kept), limits)
        ((number, first),) = firsts.items()
        older = kept[0].record.offset if len(records) > len(kept) else reached[number]
        return ControlRecords(tuple(kept), limits, older if older > first else None)

    def _first_records(self, firsts: Mapping[int, int], ends: Mapping[int, int]) -> list[ControlRecord]:
        records: list[ControlRecord] = []
        for entry in self._records_between(firsts, ends):
            records.append(entry)
            if len(records) >= self._search.limit:
                break
        return _sorted(records)

    def _last_records(
        self, firsts: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[list[ControlRecord], dict[int, int]]:
        """Return the newest records, oldest first, and the offset from which on each partition was read."""
        records: list[ControlRecord] = []
        reached = dict(ends)
        for window in WINDOWS:
            starts = {number: max(firsts[number], end - window * self._search.limit) for number, end in reached.items()}
            records += self._records_between(starts, reached)
            reached = {number: min(starts[number], reached[number]) for number in reached}
            is_whole = all(reached[number] <= firsts[number] for number in reached)
            if len(records) >= self._search.limit or is_whole or time.monotonic() >= self._ends_at:
                break
        return _sorted(records), reached

    def _records_between(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[ControlRecord]:
        """Yield the records that count, as they come."""
        if time.monotonic() >= self._ends_at:
            return
        for messages in poll_stretch(self._consumer, self._topic.name, starts, ends, self._silent_s):
            for message in messages:
                entry = _as_record(message, self._topic.name)
                if self._search.matches(entry.record):
                    yield entry
            if time.monotonic() >= self._ends_at:
                return


def _as_record(message: Message, topic: str) -> ControlRecord:
    number, offset = cast(int, message.partition()), cast(int, message.offset())
    key, value = cast(Any, message.key()), cast(Any, message.value())
    record = Record(topic, number, offset, key, value, message.timestamp()[1])
    try:
        return ControlRecord(record, tuple(cast("list[Header]", message.headers() or [])))
    except (UnicodeDecodeError, SystemError):
        # confluent-kafka makes a text of each name, and cannot give the others if that fails.
        return ControlRecord(record, None)


def _sorted(records: list[ControlRecord]) -> list[ControlRecord]:
    """Return the records of one partition in the order of the log, and of several in the order of time."""
    if len({entry.record.partition for entry in records}) <= 1:
        return sorted(records, key=lambda entry: entry.record.offset)
    return sorted(records, key=lambda entry: (entry.record.timestamp_ms, entry.record.partition, entry.record.offset))
