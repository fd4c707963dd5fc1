"""A fetch is ours to write, and to the byte what kio writes of the same."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.wire.cluster import PartitionLeader
from lockstep_data_plane.wire.connection import _PendingRequest
from lockstep_data_plane.wire.fetch_codec import (
    BY_TOPIC_ID,
    NOBODY,
    READ_COMMITTED,
    FetchedPartition,
    fetch_request,
    read_answer,
    session_answer,
    topic_names,
)
from lockstep_data_plane.wire.fetch_session import SessionRequest
from lockstep_data_plane.wire.kio_messages import message, message_version
from lockstep_protocol.kafka_apis import APIS
from lockstep_protocol.offsets import TopicPartition
from tests.support.kio_codec import written

VERSIONS = range(APIS["fetch"].oldest, APIS["fetch"].newest + 1)
IDS = {"orders": UUID(int=7), "café": UUID(int=2**127 + 1), "x" * 249: UUID(int=3), "no id": None}
PLACES = st.tuples(st.sampled_from(sorted(IDS)), st.integers(0, 2**31 - 1))
SIZES = st.integers(0, 2**31 - 1)
EPOCHS = st.integers(-1, 2**31 - 1)


class Asked(NamedTuple):
    """What a fetch is to say."""

    version: int
    wanted: list[tuple[TopicPartition, int, int, int]]
    """Each partition with the epoch of its leader, the offset, and the epoch of the record before."""
    forgotten: list[TopicPartition]
    session: tuple[int, int] | None
    settings: FetchSettings
    isolation: str
    rack: str


def by_kio(asked: Asked) -> bytes:
    version, wanted, forgotten, session, settings, isolation, rack = asked
    m = message("fetch", version, "request")

    def named(kind: Any, parts: dict[str, list[Any]]) -> tuple[Any, ...]:
        by_id = version >= BY_TOPIC_ID
        return tuple(
            kind(partitions=tuple(of_topic), **({"topic_id": IDS[topic]} if by_id else {"topic": topic}))
            for topic, of_topic in parts.items()
        )

    topics: dict[str, list[Any]] = {}
    for (topic, number), led, offset, before in wanted:
        part = m.FetchPartition(
            partition=number,
            fetch_offset=offset,
            partition_max_bytes=settings.max_partition_bytes,
            **({"current_leader_epoch": led} if version >= 9 else {}),
            **({"last_fetched_epoch": before} if version >= 12 else {}),
        )
        topics.setdefault(topic, []).append(part)
    gone: dict[str, list[int]] = {}
    for topic, number in () if session is None else forgotten:
        gone.setdefault(topic, []).append(number)
    return written(
        m.FetchRequest(
            max_wait=timedelta(milliseconds=settings.max_wait_ms),
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=READ_COMMITTED[isolation],
            topics=named(m.FetchTopic, topics),
            **({"forgotten_topics_data": named(m.ForgottenTopic, gone)} if version >= 7 else {}),
            **({"session_id": session[0], "session_epoch": session[1]} if session and version >= 7 else {}),
            **({"rack_id": rack} if version >= 11 else {}),
        )
    )


@given(
    st.builds(
        Asked,
        version=st.sampled_from(VERSIONS),
        wanted=st.lists(st.tuples(PLACES, EPOCHS, st.integers(0, 2**63 - 1), EPOCHS), max_size=150),
        forgotten=st.lists(PLACES, max_size=6),
        session=st.none() | st.tuples(SIZES, SIZES),
        settings=st.builds(
            FetchSettings, max_wait_ms=SIZES, min_bytes=SIZES, max_bytes=SIZES, max_partition_bytes=SIZES
        ),
        isolation=st.sampled_from(sorted(READ_COMMITTED)),
        rack=st.text(max_size=200),
    )
)
def test_fetch_request_equals_that_of_kio(asked: Asked) -> None:
    every = [(tp, PartitionLeader(1, led, IDS[tp[0]]), offset, before) for tp, led, offset, before in asked.wanted]
    left = [(tp, PartitionLeader(1, 0, IDS[tp[0]])) for tp in asked.forgotten]
    plan = None if asked.session is None else SessionRequest(*asked.session, every, left)
    request = fetch_request(
        asked.version, every, asked.settings, isolation=asked.isolation, session=plan, rack=asked.rack
    )
    assert (request.version, b"".join(request.parts)) == (asked.version, by_kio(asked))


GOLDEN_4 = "ffffffff000001f40000000100001000010000000100017400000001"
GOLDEN_4 += "00000003000000000000001100000400"
"""Fetch 4 by Kafka's schema: replica, wait, least, most, isolation, topics, name, partitions, number, offset, most."""


def test_a_fetch_of_version_4_has_these_bytes() -> None:
    settings = FetchSettings(max_wait_ms=500, min_bytes=1, max_bytes=4096, max_partition_bytes=1024)
    request = fetch_request(4, [(("t", 3), PartitionLeader(1, -1, None), 17, 5)], settings, isolation="read_committed")
    assert (b"".join(request.parts).hex(), request.asked_bytes) == (GOLDEN_4, 4096)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_of_every_version_is_read(version: int) -> None:
    m = message("fetch", version, "response")
    part = m.PartitionData(
        partition_index=3,
        error_code=ErrorCode.none,
        high_watermark=20,
        last_stable_offset=19,
        aborted_transactions=(m.AbortedTransaction(producer_id=7, first_offset=11),),
        records=b"abc",
        **({"preferred_read_replica": 2} if version >= 11 else {}),
    )
    named = {"topic_id": UUID(int=7)} if version >= BY_TOPIC_ID else {"topic": "orders"}
    topic = m.FetchableTopicResponse(partitions=(part,), **named)
    session = {"error_code": ErrorCode.none, "session_id": 9} if version >= 7 else {}
    body = written(m.FetchResponse(throttle_time=timedelta(0), responses=(topic,), **session))
    frame = bytes(4) + (b"\0" if version >= 12 else b"") + body
    answer = _PendingRequest(message_version(1, version), 0.0, None, 0).read(memoryview(frame), 0)
    names = topic_names([(("orders", 3), PartitionLeader(1, 0, UUID(int=7)), 0, -1)])
    (fetched,) = read_answer([("orders", 3)], answer, names)
    expected = FetchedPartition(("orders", 3), 0, 20, 19, ((7, 11),), b"abc", 2 if version >= 11 else NOBODY)
    assert fetched == expected
    assert session_answer(answer) == (0, 9 if version >= 7 else 0)


@pytest.mark.parametrize(("version", "code"), [(4, 0), (7, 70), (12, 70), (17, 70)])
def test_an_error_of_the_whole_answer_is_of_each_partition(version: int, code: int) -> None:
    m = message("fetch", version, "response")
    session = {"error_code": ErrorCode.fetch_session_id_not_found, "session_id": 0} if version >= 7 else {}
    answer = m.FetchResponse(throttle_time=timedelta(0), responses=(), **session)
    assert [fetched.code for fetched in read_answer([("orders", 3)], answer, {})] == ([code] if code else [])
