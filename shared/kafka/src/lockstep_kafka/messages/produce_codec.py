"""Produce as it is on the wire: the request, and the answer for each batch.

The request is encoded here and not by kio, which takes it field by field. If records come one by one, that was a fifth
of the time between a record's arrival and its departure. Requests to brokers before Kafka 2.8 are encoded by kio
(versions below `OWN_ENCODING`).
"""

import struct
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode

from lockstep_kafka.messages.flexible_encoding import NO_TAGS, NULL, encode_length, encode_string, encode_topics
from lockstep_kafka.messages.message_versions import EncodedRequest, Parts, encode_entity, load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.offsets import TopicPartition

OWN_ENCODING = 9
"""The first version that is encoded here."""

PRODUCE_BY_TOPIC_ID = 13
"""The first version that names topics by their ids, and only so."""

ACKNOWLEDGED_BY_ALL = -1

API_KEY = APIS["produce"].key
NO_ERROR = ErrorCode.none
_HEAD = struct.Struct(">hi")
_INDEX = struct.Struct(">i")


class BatchParts(Protocol):
    """A batch in several pieces of memory, which are sent one after the other without a copy."""

    parts: tuple[bytes, memoryview]

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...


Data = bytes | memoryview | BatchParts


def produce_request(
    version: int,
    batches: Sequence[tuple[TopicPartition, PartitionLeader, Data]],
    timeout: timedelta,
    transactional_id: str | None = None,
) -> EncodedRequest:
    """Return a request with these batches, at most one for each partition, in their order.

    It goes by topic id from version 13 on. If the cluster's metadata has no ids, it goes by name in an older version.
    All in-sync replicas have to acknowledge. With a producer id the broker would accept less, and we do not.
    """
    if version >= PRODUCE_BY_TOPIC_ID and any(leader.topic_id is None for _, leader, _ in batches):
        version = PRODUCE_BY_TOPIC_ID - 1
    if version < OWN_ENCODING:
        return _old_request(version, batches, timeout, transactional_id)
    by_id = version >= PRODUCE_BY_TOPIC_ID
    topics: dict[UUID | str | None, list[Parts]] = {}
    key: UUID | str | None = ""
    entries: list[Parts] = []
    for (topic, number), leader, data in batches:
        called = leader.topic_id if by_id else topic
        if called is not key:  # ids are slow keys, and neighbouring batches often share a topic
            key, entries = called, topics.setdefault(called, [])
        records = (data,) if isinstance(data, bytes | memoryview) else data.parts
        entries.append((_INDEX.pack(number) + encode_length(len(data)), *records, NO_TAGS))
    name = NULL if transactional_id is None else encode_string(transactional_id)
    head = _HEAD.pack(ACKNOWLEDGED_BY_ALL, round(timeout.total_seconds() * 1000))
    return EncodedRequest(API_KEY, version, [name, head, *encode_topics(topics), NO_TAGS])


def _old_request(
    version: int,
    batches: Iterable[tuple[TopicPartition, PartitionLeader, Data]],
    timeout: timedelta,
    transactional_id: str | None,
) -> EncodedRequest:
    m = load_message("produce", version, "request")
    topics: dict[str, list[Any]] = {}
    for (topic, number), _, data in batches:
        topics.setdefault(topic, []).append(m.PartitionProduceData(index=number, records=bytes(data)))
    return encode_entity(
        m.ProduceRequest(
            transactional_id=transactional_id,
            acks=ACKNOWLEDGED_BY_ALL,
            timeout=timeout,
            topic_data=tuple(
                m.TopicProduceData(name=topic, partition_data=tuple(entries)) for topic, entries in topics.items()
            ),
        )
    )


class ProduceAnswer(NamedTuple):
    """The target's answer for one batch.

    With `code` 0 it was appended at `base_offset`.
    """

    code: int
    base_offset: int = -1
    message: str = ""
    records: tuple[tuple[int, str], ...] = ()
    """(index in the batch, why) of the records that the target refuses."""
    append_time_ms: int | None = None
    """The time in the answer, or None.

    It is the time of the append if the target stamps batches itself. In the answer to a duplicate it is the time of the
    duplicate's newest record (`kafka-wire.md` §0).
    """

    def rewrote_times(self, max_timestamp: int) -> bool:
        """Return whether the target has put a time of its own in place of the records'.

        The base offset does not identify a duplicate. A first try whose answer was lost may be just at the offset
        where the second one was to go.
        """
        return self.append_time_ms is not None and self.append_time_ms != max_timestamp


def produce_answer(answer: Any) -> ProduceAnswer:
    """Return a broker's answer for one partition."""
    if answer.error_code is NO_ERROR and answer.log_append_time is None:
        return ProduceAnswer(0, answer.base_offset)
    return ProduceAnswer(
        int(answer.error_code),
        int(answer.base_offset),
        getattr(answer, "error_message", None) or "",  # messages and record errors exist from version 8 on
        tuple([(int(e.batch_index), e.batch_index_error_message or "") for e in getattr(answer, "record_errors", ())]),
        append_time_ms=None if answer.log_append_time is None else round(answer.log_append_time.timestamp() * 1000),
    )
