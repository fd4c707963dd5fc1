"""A produce request is ours to write, and to the byte what kio writes of the same."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.layout import stamp
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.messages.produce_codec import OWN_ENCODING, PRODUCE_BY_TOPIC_ID, produce_request
from lockstep_state.kafka.kafka_apis import APIS
from tests.support.batch_bytes import batch_bytes, records
from tests.support.kio_codec import written

VERSIONS = range(OWN_ENCODING, APIS["produce"].newest + 1)
TOPICS = [
    ("orders", UUID(int=7)),
    ("caf\u00e9", UUID(int=2**127 + 1)),
    ("x" * 249, UUID(int=3)),
    ("without an id", None),
]
SIZES = st.one_of(st.integers(0, 200), st.sampled_from([126, 127, 128, 16_382, 16_383, 16_384, 2_097_151, 2_097_152]))
BATCHES = st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 2**31 - 1), SIZES), max_size=6)


def by_kio(version: int, batches: list[tuple[tuple[str, UUID | None], int, bytes]], name: str | None, ms: int) -> bytes:
    m = load_message("produce", version, "request")
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
    appends = [(topic, number, bytes(size)) for topic, number, size in batches]
    ours = produce_request(
        version,
        [((topic, number), PartitionLeader(1, 0, topic_id), data) for (topic, topic_id), number, data in appends],
        timedelta(milliseconds=ms),
        name,
    )
    has_ids = all(topic_id is not None for (_, topic_id), _, _ in batches)
    assert ours.version == (version if has_ids else min(version, PRODUCE_BY_TOPIC_ID - 1))
    assert b"".join(ours.parts) == by_kio(ours.version, appends, name, ms)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stamped_batch_is_in_it_as_header_and_records_where_they_lie(version: int) -> None:
    batch = memoryview(batch_bytes(records(0, 3)))
    stamped = stamp(batch, 4000, 1, 17)
    request = produce_request(version, [(("t", 3), PartitionLeader(1, 0, UUID(int=7)), stamped)], timedelta(seconds=30))
    assert b"".join(request.parts) == by_kio(version, [(("t", UUID(int=7)), 3, bytes(stamped))], None, 30_000)
    assert any(part is stamped.parts[1] for part in request.parts), "nothing of it is copied"
