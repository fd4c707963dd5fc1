"""What a connection asks for, in which order, and which partitions it has (`FetchConnection`)."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.events import Received
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.fetch.fetch_schedule import SMALL_BYTES
from lockstep_data_plane.fetch.fetch_sizes import MUCH_BYTES, MUCH_LASTS_S
from lockstep_data_plane.fetch.fetcher import FetchConnection, Fetcher
from lockstep_kafka.messages.fetch_codec import fetch_request, read_response, topic_names
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.connection import Connection
from lockstep_state.kafka.kafka_apis import APIS
from tests.support.batch_bytes import batch_bytes, record, records
from tests.support.kio_codec import read_back
from tests.unit.data_plane.fetch_scene import (
    LEADER,
    TOPIC_ID,
    answer,
    answered,
    ask,
    connection,
    copying,
    deliveries_of,
    noted,
    shard_of,
)


async def test_fetch_request_has_the_given_rack_and_size() -> None:
    wanted = [(("t", 0), PartitionLeader(LEADER, 0, TOPIC_ID), 5, -1)]
    plain = read_back(fetch_request(13, wanted, FetchSettings(max_partition_bytes=70)))
    assert (plain.rack_id, plain.topics[0].partitions[0].partition_max_bytes) == ("", 70)
    more = read_back(fetch_request(13, wanted, FetchSettings(), rack="here", partition_bytes=99))
    assert (more.rack_id, more.topics[0].partitions[0].partition_max_bytes) == ("here", 99)


async def test_topics_without_ids_are_fetched_by_name_whatever_the_broker_speaks() -> None:
    wanted = [(("t", 0), PartitionLeader(LEADER, 0, None), 5, -1)]
    request = read_back(fetch_request(13, wanted, FetchSettings(), by_id=False))
    assert (int(request.__version__), request.topics[0].topic) == (12, "t")
    m = load_message("fetch", 12, "response")
    part = m.PartitionData(partition_index=0, error_code=0, high_watermark=9, aborted_transactions=None, records=b"")
    topics = (m.FetchableTopicResponse(topic="t", partitions=(part,)),)
    said = m.FetchResponse(throttle_time=timedelta(0), error_code=0, session_id=0, responses=topics)
    (fetched,) = read_response([("t", 0)], said, topic_names(wanted))
    assert (fetched.tp, fetched.high_watermark) == (("t", 0), 9)


async def test_fetch_of_unchanged_partitions_does_not_visit_each(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what an empty answer leaves as it was: who comes, or has moved on, is named in the next question."""
    fetcher = rackless
    fetcher.cluster._leaders["t", 1] = PartitionLeader(LEADER, 0, TOPIC_ID)
    visited: list[PartitionState] = []

    def may_fetch(partition: PartitionState) -> bool:
        visited.append(partition)
        return True

    monkeypatch.setattr(fetcher._handler, "may_fetch", may_fetch)
    first, second, made = copying(), copying(number=1), connection()
    asked = noted(made, monkeypatch)
    fetcher.attach(first)
    fetch_connection = shard_of(fetcher, first)

    def named() -> dict[int, int]:
        """What the next question says: the partitions that it names, and their offsets."""
        visited.clear()
        ask(fetcher, fetch_connection, made)
        return {part.partition: part.fetch_offset for topic in asked[-1].topics for part in topic.partitions}

    assert named() == {0: 0}
    answered(fetch_connection, first, session=77, silent=True)
    assert (named(), visited, asked[-1].session_id, asked[-1].session_epoch) == ({}, [], 77, 1)
    answered(fetch_connection, first, session=77, silent=True)
    fetcher.attach(second)
    assert (named(), visited) == ({1: 0}, [first, second])
    answered(fetch_connection, first, session=77, data=batch_bytes(records(0, 3)))
    assert (named(), visited) == ({0: 3}, [first]), "only what moved is visited"
    answered(fetch_connection, first, session=77)
    assert (named(), visited) == ({}, []), "an answer without records moves nobody"
    fetcher.detach(second)
    answered(fetch_connection, first, session=77, silent=True)
    assert named() == {}
    assert [list(topic.partitions) for topic in asked[-1].forgotten_topics_data] == [[1]]
    answered(fetch_connection, first, session=0, silent=True)
    assert named() == {0: 3}, "a broker that keeps no session is told everything"


@pytest.mark.parametrize(("topic_id", "version"), [(TOPIC_ID, 13), (None, 12)])
async def test_a_shard_asks_by_id_where_its_topics_have_ids(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, topic_id: UUID | None, version: int
) -> None:
    fetcher.cluster._leaders["t", 0] = PartitionLeader(LEADER, 0, topic_id)
    partition = copying()
    fetcher.attach(partition)
    made = connection()
    asked = noted(made, monkeypatch)
    ask(fetcher, shard_of(fetcher, partition), made)
    assert [int(request.__version__) for request in asked] == [version]


def attached(fetcher: Fetcher, count: int) -> FetchConnection:
    """The connection that fetches so many partitions of the leader; it has not begun to connect yet."""
    for number in range(count):
        fetcher.cluster._leaders["t", number] = PartitionLeader(LEADER, 0, TOPIC_ID)
        fetcher.attach(copying(number=number))
    (first,) = fetcher._connections.values()
    return first


def brings(fetcher: Fetcher, fetch_connection: FetchConnection, size: int, now: float) -> None:
    """An answer brings so many bytes, and the next request is about to go out."""
    fetcher._sizes.on_fetched(fetch_connection.key, size, now)
    fetcher._share_partitions(fetch_connection, now)


def numbers(fetcher: Fetcher) -> list[list[int]]:
    """The partitions of each connection."""
    return [sorted(p.number for p in each.partitions) for each in fetcher._connections.values()]


async def test_one_connection_fetches_all_partitions_while_little_comes(rackless: Fetcher) -> None:
    first = attached(rackless, 6)
    for turn in range(100):
        brings(rackless, first, MUCH_BYTES // 2, turn)
    assert numbers(rackless) == [[0, 1, 2, 3, 4, 5]]


async def test_second_connection_gets_half_while_much_comes(rackless: Fetcher) -> None:
    first = attached(rackless, 6)
    brings(rackless, first, MUCH_BYTES, 1.0)
    assert numbers(rackless) == [[3, 4, 5], [0, 1, 2]]
    assert rackless._connections[LEADER, 1].wake.is_set()
    brings(rackless, first, 0, 1.1)
    assert numbers(rackless) == [[3, 4, 5], [0, 1, 2]]
    rackless.cluster._leaders["t", 6] = rackless.cluster._leaders["t", 7] = PartitionLeader(LEADER, 0, TOPIC_ID)
    for number in (6, 7):
        rackless.attach(copying(number=number))
    brings(rackless, first, 0, 1.2)
    assert list(map(len, numbers(rackless))) == [4, 4], "who comes is shared as well"


async def test_second_connection_is_given_up_when_neither_brings_much(rackless: Fetcher) -> None:
    first = attached(rackless, 6)
    brings(rackless, first, MUCH_BYTES, 1.0)
    second = rackless._connections[LEADER, 1]
    brings(rackless, second, MUCH_BYTES, 5.0)
    brings(rackless, first, 0, 1.0 + MUCH_LASTS_S)
    brings(rackless, second, 0, 4.9 + MUCH_LASTS_S)
    assert list(map(len, numbers(rackless))) == [3, 3], "the second brought much"
    brings(rackless, first, MUCH_BYTES, 5.0 + MUCH_LASTS_S)
    brings(rackless, second, 0, 5.0 + MUCH_LASTS_S)
    assert list(map(len, numbers(rackless))) == [3, 3], "the first does"
    brings(rackless, first, 0, 5.0 + 2 * MUCH_LASTS_S)
    assert list(map(len, numbers(rackless))) == [3, 3], "only the second gives"
    brings(rackless, second, 0, 5.0 + 2 * MUCH_LASTS_S)
    assert numbers(rackless) == [[0, 1, 2, 3, 4, 5], []]


async def test_lone_partition_stays_on_its_connection_however_much_comes(rackless: Fetcher) -> None:
    brings(rackless, attached(rackless, 1), 100 * MUCH_BYTES, 1.0)
    assert numbers(rackless) == [[0]]


async def test_partition_keeps_its_position_on_another_connection(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = attached(rackless, 6)
    made = connection()
    asked = noted(made, monkeypatch)
    ask(rackless, first, made)
    (partition,) = (p for p in first.partitions if p.number == 1)
    partition.step(Received(42, 0))
    brings(rackless, first, MUCH_BYTES, 1.0)
    ask(rackless, first, made)
    ask(rackless, rackless._connections[LEADER, 1], made)
    offsets = [
        {part.partition: part.fetch_offset for topic in each.topics for part in topic.partitions} for each in asked
    ]
    assert offsets[1:] == [dict.fromkeys((3, 4, 5), 0), {0: 0, 1: 42, 2: 0}]


class Asked(Connection):
    """A connection whose answers the test gives: what was asked of it, and who is to see what comes."""

    def __init__(self, happened: list[str]) -> None:
        self._versions = {APIS["fetch"].key: (0, 13)}
        self._happened = happened

    @property
    def closed(self) -> bool:
        return False

    def send(self, entity: Any, seen: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        assert seen is not None
        self._happened.append("asked")
        self._seen, self._answer = seen, asyncio.get_running_loop().create_future()
        return self._answer

    async def answers(self, answer: Any) -> None:
        """As `Connection` does it: who is to see it first, and then who waits."""
        self._seen(answer)
        self._happened.append("answered")
        self._answer.set_result(answer)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(100, ["asked", "delivered", "answered", "asked"]), (SMALL_BYTES, ["asked", "answered", "asked", "delivered"])],
)
async def test_fetch_delivers_a_small_answer_at_once_and_a_large_one_later(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch, size: int, expected: list[str]
) -> None:
    happened: list[str] = []
    made, partition = Asked(happened), copying()

    async def connection(broker: int, produce_connection: str) -> Connection:
        return made

    monkeypatch.setattr(rackless.cluster, "connection", connection)
    monkeypatch.setattr(rackless._handler, "on_fetched", lambda delivery: happened.append("delivered"))
    rackless.attach(partition)
    await asyncio.sleep(0.01)
    await made.answers(answer(data=batch_bytes([record(0, bytes(size))])))
    assert happened == expected
    assert partition.fetch_from == 1


async def test_partition_at_its_limit_is_left_out_until_the_limit_changes(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher, made = rackless, connection()
    fetcher.cluster._leaders["t", 1] = PartitionLeader(LEADER, 0, TOPIC_ID)
    ended, free = copying(), copying(number=1)
    asked = noted(made, monkeypatch)
    for partition in (ended, free):
        fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, ended)
    fetcher.limits.set_ends({("t", 0): 5})
    ask(fetcher, fetch_connection, made)
    log = b"".join(batch_bytes(records(first, 3)) for first in (0, 3, 6))
    assert [batch.last_offset for batch in answered(fetch_connection, ended, data=log)] == [2], "the next one ends at 5"
    assert ended.fetch_from == 3

    def named() -> list[int]:
        assert ask(fetcher, fetch_connection, made) is not None
        return [part.partition for topic in asked[-1].topics for part in topic.partitions]

    assert named() == [1], "nothing more of it is whole before its limit"
    fetcher.limits.set_ends({("t", 0): 6})
    assert sorted(named()) == [0, 1]
    fetcher.limits.set_ends({})
    assert answered(fetch_connection, ended, data=log[len(log) // 3 :])[-1].last_offset == 8


async def test_answer_that_is_all_beyond_the_limit_is_delivered_without_records(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher, made, partition = rackless, connection(), copying()
    noted(made, monkeypatch)
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)
    fetcher.limits.set_ends({("t", 0): 2})
    ask(fetcher, fetch_connection, made)
    (delivery,) = deliveries_of(fetch_connection, partition, answer(data=batch_bytes(records(0, 3))))
    assert (delivery.batches, delivery.fetched.records, delivery.fetched.high_watermark) == ((), b"", 100)
    assert ask(fetcher, fetch_connection, made) is None, "it is not asked for again and again"
    assert fetcher.limits.has_reached(partition, 2)
