"""A produce request is ours to write, and to the byte what kio writes of the same."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from lockstep_data_plane.record_batch.outgoing_batch import stamp
from lockstep_data_plane.wire.cluster import PartitionLeader
from lockstep_data_plane.wire.kio_messages import message
from lockstep_data_plane.wire.produce_codec import (
    FLEXIBLE,
    PRODUCE_BY_TOPIC_ID,
    ProduceAnswer,
    produce_answer,
    produce_request,
)
from lockstep_protocol.kafka_apis import APIS
from tests.support.batch_bytes import batch_bytes, records
from tests.support.kio_codec import read_back, written

VERSIONS = range(APIS["produce"].oldest, APIS["produce"].newest + 1)
TOPICS = [
    ("orders", UUID(int=7)),
    ("caf\u00e9", UUID(int=2**127 + 1)),
    ("x" * 249, UUID(int=3)),
    ("without an id", None),
]
SIZES = st.one_of(st.integers(0, 200), st.sampled_from([126, 127, 128, 16_382, 16_383, 16_384, 2_097_151, 2_097_152]))
BATCHES = st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 2**31 - 1), SIZES), max_size=6)


def by_kio(version: int, batches: list[tuple[tuple[str, UUID | None], int, bytes]], name: str | None, ms: int) -> bytes:
    m = message("produce", version, "request")
    topics: dict[tuple[str, UUID | None], list[object]] = {}
    for topic, number, data in batches:
        topics.setdefault(topic, []).append(m.PartitionProduceData(index=number, records=data))
    by_id = version >= PRODUCE_BY_TOPIC_ID
    return written(
        m.ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout=timedelta(milliseconds=ms),
            topic_data=tuple(
                m.TopicProduceData(partition_data=tuple(parts), **({"topic_id": id_} if by_id else {"name": topic}))
                for (topic, id_), parts in topics.items()
            ),
        )
    )


@given(
    version=st.sampled_from(VERSIONS),
    batches=BATCHES,
    name=st.none() | st.text(max_size=300),
    ms=st.integers(0, 2**31 - 1),
)
def test_produce_request_equals_that_of_kio(
    version: int, batches: list[tuple[tuple[str, UUID | None], int, int]], name: str | None, ms: int
) -> None:
    known = [(topic, number, bytes(size)) for topic, number, size in batches]
    ours = produce_request(
        version,
        [((topic, number), PartitionLeader(1, 0, topic_id), data) for (topic, topic_id), number, data in known],
        timedelta(milliseconds=ms),
        name,
    )
    assert b"".join(ours.parts) == by_kio(version, known, name, ms)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_every_version_is_read_back_by_kio(version: int) -> None:
    batch = batch_bytes(records(0, 3))
    batches = [(("orders", n), PartitionLeader(1, 0, UUID(int=7)), batch) for n in range(2)]
    request = produce_request(version, batches, timedelta(seconds=30), "tx")
    read = read_back(request)
    assert (request.version, read.__version__, read.acks, read.transactional_id) == (version, version, -1, "tx")
    (topic,) = read.topic_data
    assert [(p.index, p.records) for p in topic.partition_data] == [(0, batch), (1, batch)]


GOLDEN_3 = "00027478ffff0000753000000001000174000000010000000300000003616263"
"""Produce 3 by Kafka's schema: transactional id, acks, timeout, topics, name, partitions, index, records."""


def test_a_request_of_version_3_has_these_bytes() -> None:
    batches = [(("t", 3), PartitionLeader(1, -1, None), b"abc")]
    assert b"".join(produce_request(3, batches, timedelta(seconds=30), "tx").parts).hex() == GOLDEN_3


@pytest.mark.parametrize("version", range(VERSIONS.start, FLEXIBLE))
def test_an_answer_of_an_old_version_says_what_it_can(version: int) -> None:
    m = message("produce", version, "response")
    more: dict[str, object] = {} if version < 8 else {"record_errors": (), "error_message": "no"}
    found = m.PartitionProduceResponse(index=0, error_code=ErrorCode.invalid_record, base_offset=-1, **more)
    assert produce_answer(found) == ProduceAnswer(87, -1, "no" if version >= 8 else "")


@pytest.mark.parametrize("version", range(FLEXIBLE, VERSIONS.stop))
def test_a_stamped_batch_is_in_it_as_header_and_records_where_they_lie(version: int) -> None:
    batch = memoryview(batch_bytes(records(0, 3)))
    stamped = stamp(batch, 4000, 1, 17)
    request = produce_request(version, [(("t", 3), PartitionLeader(1, 0, UUID(int=7)), stamped)], timedelta(seconds=30))
    assert b"".join(request.parts) == by_kio(version, [(("t", UUID(int=7)), 3, bytes(stamped))], None, 30_000)
    assert any(part is stamped.parts[1] for part in request.parts), "nothing of it is copied"
