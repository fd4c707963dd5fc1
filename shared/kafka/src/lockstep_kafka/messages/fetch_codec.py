"""Fetch as it is on the wire: the request, and the answer for each partition.

The request is encoded here and not by kio, which takes it field by field. If records come one by one, that is most of a
request's cost. Requests to brokers before Kafka 2.7 are encoded by kio (versions below `OWN_ENCODING`).
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from lockstep_config.flow.model import FetchSettings
from lockstep_kafka.messages.fetch_session import NO_SESSION, FetchPosition, SessionRequest
from lockstep_kafka.messages.flexible_encoding import NO_TAGS, encode_string, encode_topics
from lockstep_kafka.messages.message_versions import EncodedRequest, Parts, encode_entity, load_message, make_entity
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

DIVERGED = -2
"""A code that is not Kafka's: an answer without an error that names a diverging epoch."""

WITH_SESSIONS, WITH_RACK = 7, 11
"""The first versions with a session and an error of the whole answer (KIP-227), and with the rack (KIP-392)."""

OWN_ENCODING = 12
"""The first version that is encoded here.

It is also the first with the leader epoch of the record before the position (KIP-595).
"""

BY_TOPIC_ID = 13
"""The first version that names topics by their ids, and only so."""

REPLICA_IN_TAGS = 15
"""The first version that names the fetching replica only in a tag (KIP-903). A client, which is no broker, omits it."""

API_KEY = APIS["fetch"].key
UNKNOWN = -1
_PARTITION = struct.Struct(">iiqiqi")
_HEAD = struct.Struct(">iiibii")
_NUMBER = struct.Struct(">i")

READ_COMMITTED = {"read_uncommitted": 0, "read_committed": 1}
NOBODY = -1


class FetchedPartition(NamedTuple):
    """The answer for one partition.

    `code` is Kafka's, or DIVERGED.
    """

    tp: TopicPartition
    code: int
    high_watermark: int
    last_stable: int
    aborted: tuple[tuple[int, int], ...]
    records: bytes
    read_from: int = NOBODY
    """The broker that the leader names to read from instead (KIP-392). Then the answer has nothing else."""


def fetch_request(
    version: int,
    positions: Sequence[FetchPosition],
    settings: FetchSettings,
    *,
    isolation: str = "read_uncommitted",
    wait_ms: int | None = None,
    session: SessionRequest | None = None,
    rack: str = "",
    partition_bytes: int | None = None,
    max_bytes: int | None = None,
    by_id: bool = True,
) -> EncodedRequest:
    """Return a request that fetches these partitions from these offsets.

    Each partition goes with the leader epoch that we know, so that a broker of another epoch refuses it. It also goes
    with the epoch of the record before its first one, so that a log without that record shows it (KIP-320, KIP-595).
    That epoch is omitted if it is the leader's own. Versions before 9, 11 and 12 carry less. A truncation shows then
    when a partition resumes, as it does at each change of its leader.

    Args:
        version: The version of the request. It is lowered if `by_id` is false.
        positions: The partitions; in a session those that changed.
        settings: The settings of fetches.
        isolation: `read_uncommitted` or `read_committed`.
        wait_ms: How long the broker may wait for records. None is the value of the settings.
        session: The fetch session. None is a fetch without a session.
        rack: Our rack. With one, a leader may answer with a follower to read from, and no records.
        partition_bytes: The limit for each partition. None is the value of the settings.
        max_bytes: The limit for all partitions together. None is the value of the settings.
        by_id: True if the topics have ids. They have none while `inter.broker.protocol.version` is below 2.8.
    """
    version = version if by_id else min(version, BY_TOPIC_ID - 1)
    at_most = settings.max_partition_bytes if partition_bytes is None else partition_bytes
    max_bytes = settings.max_bytes if max_bytes is None else max_bytes
    wait_ms = settings.max_wait_ms if wait_ms is None else wait_ms
    session_id, epoch = (0, UNKNOWN) if session is None else (session.session_id, session.epoch)
    if version < OWN_ENCODING:
        m = load_message("fetch", version, "request")
        entity = make_entity(
            m.FetchRequest,
            max_wait=timedelta(milliseconds=wait_ms),
            min_bytes=settings.min_bytes,
            max_bytes=max_bytes,
            isolation_level=READ_COMMITTED[isolation],
            session_id=session_id,
            session_epoch=epoch,
            topics=_old_topics(m, positions, at_most),
            forgotten_topics_data=_old_forgotten(m, session),
            rack_id=rack,
        )
        return encode_entity(entity, max_bytes)
    named_by_id = version >= BY_TOPIC_ID
    topics: dict[UUID | str | None, list[Parts]] = {}
    for (topic, number), leader, offset, before in positions:
        entry = (_PARTITION.pack(number, leader.epoch, offset, before, UNKNOWN, at_most), NO_TAGS)
        topics.setdefault(leader.topic_id if named_by_id else topic, []).append(entry)
    forgotten: dict[UUID | str | None, list[Parts]] = {}
    for (topic, number), leader in session.forgotten if session is not None else ():
        forgotten.setdefault(leader.topic_id if named_by_id else topic, []).append((_NUMBER.pack(number),))
    head = _HEAD.pack(
        wait_ms,
        settings.min_bytes,
        max_bytes,
        READ_COMMITTED[isolation],
        session_id,
        epoch,
    )
    replica = b"" if version >= REPLICA_IN_TAGS else _NUMBER.pack(UNKNOWN)
    parts = [replica, head, *encode_topics(topics), *encode_topics(forgotten), encode_string(rack), NO_TAGS]
    return EncodedRequest(API_KEY, version, parts, max_bytes)


def _old_topics(m: Any, positions: Iterable[FetchPosition], at_most: int) -> tuple[Any, ...]:
    topics: dict[str, list[Any]] = {}
    for (topic, number), leader, offset, _ in positions:
        entry = make_entity(
            m.FetchPartition,
            partition=number,
            current_leader_epoch=leader.epoch,
            fetch_offset=offset,
            partition_max_bytes=at_most,
        )
        topics.setdefault(topic, []).append(entry)
    return tuple(m.FetchTopic(topic=topic, partitions=tuple(entries)) for topic, entries in topics.items())


def _old_forgotten(m: Any, session: SessionRequest | None) -> tuple[Any, ...]:
    topics: dict[str, list[int]] = {}
    for (topic, number), _ in session.forgotten if session is not None else ():
        topics.setdefault(topic, []).append(number)
    return tuple(m.ForgottenTopic(topic=topic, partitions=tuple(numbers)) for topic, numbers in topics.items())


def read_session_id(answer: Any) -> int:
    """Return the session id of an answer; 0 if it has no session, as before version 7."""
    return int(answer.session_id) if int(answer.__version__) >= WITH_SESSIONS else NO_SESSION


def read_error(answer: Any) -> int:
    """Return the error of the whole answer.

    Before version 7 it has none.
    """
    return int(answer.error_code) if int(answer.__version__) >= WITH_SESSIONS else int(KafkaErrorCode.NONE)


def topic_names(positions: Iterable[FetchPosition]) -> Mapping[Any, str]:
    """Return the names of these topics, by topic id and by name: an answer has one of the two."""
    names: dict[Any, str] = {}
    for (topic, _), leader, _, _ in positions:
        names[leader.topic_id] = names[topic] = topic
    return names


def read_response(
    partitions: Iterable[TopicPartition], answer: Any, names: Mapping[Any, str]
) -> Iterator[FetchedPartition]:
    """Yield the answer for each partition.

    An error of the whole answer is given to each partition that was asked for.

    Args:
        partitions: The partitions that were asked for.
        answer: kio's answer.
        names: The result of `topic_names` for the partitions that were asked for.
    """
    if (error := read_error(answer)) != KafkaErrorCode.NONE:
        for tp in partitions:
            yield FetchedPartition(tp, error, -1, -1, (), b"")
        return
    version = int(answer.__version__)
    by_id, names_epochs, names_replica = version >= BY_TOPIC_ID, version >= OWN_ENCODING, version >= WITH_RACK
    for topic in answer.responses:
        name = names.get(topic.topic_id if by_id else topic.topic)
        if name is None:
            continue
        for p in topic.partitions:
            diverges = names_epochs and p.diverging_epoch.end_offset != UNKNOWN
            yield FetchedPartition(
                (name, int(p.partition_index)),
                int(p.error_code) or (DIVERGED if diverges else KafkaErrorCode.NONE),
                int(p.high_watermark),
                int(p.last_stable_offset),
                tuple((int(a.producer_id), int(a.first_offset)) for a in p.aborted_transactions or ()),
                p.records or b"",
                int(p.preferred_read_replica) if names_replica else NOBODY,
            )
