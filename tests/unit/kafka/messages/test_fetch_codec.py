"""A fetch is ours to write, and to the byte what kio writes of the same."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.model import FetchSettings
from lockstep_kafka.messages.fetch_codec import BY_TOPIC_ID, OWN_ENCODING, READ_COMMITTED, fetch_request
from lockstep_kafka.messages.fetch_session import SessionRequest
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.offsets import TopicPartition
from tests.support.kio_codec import written

VERSIONS = range(OWN_ENCODING, APIS["fetch"].newest + 1)
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
    m = load_message("fetch", version, "request")

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
            current_leader_epoch=led,
            fetch_offset=offset,
            last_fetched_epoch=before,
            partition_max_bytes=settings.max_partition_bytes,
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
            forgotten_topics_data=named(m.ForgottenTopic, gone),
            **({} if session is None else {"session_id": session[0], "session_epoch": session[1]}),
            rack_id=rack,
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
    forgotten = [(tp, PartitionLeader(1, 0, IDS[tp[0]])) for tp in asked.forgotten]
    plan = None if asked.session is None else SessionRequest(*asked.session, every, forgotten)
    request = fetch_request(
        asked.version, every, asked.settings, isolation=asked.isolation, session=plan, rack=asked.rack
    )
    assert (request.version, b"".join(request.parts)) == (asked.version, by_kio(asked))
