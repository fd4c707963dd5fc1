"""Where a partition is fetched from: its leader, or the replica that the leader named, and back (KIP-392)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.events import AllAnswered, Failed, Received, Resumed
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.fetch.fetch_connection import FetchConnection
from lockstep_data_plane.fetch.fetch_request import FetchRequest
from lockstep_data_plane.fetch.fetcher import Fetcher
from lockstep_data_plane.fetch.memory_budget import MemoryBudget
from lockstep_data_plane.fetch.small_batch_pacer import FEW_BYTES, MUCH_BYTES, QUIET_S, SMALL_BATCH_CHECK_S
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.wire.cluster import ClusterClient, PartitionLeader
from lockstep_data_plane.wire.connection import APIS, Connection, message
from lockstep_data_plane.wire.error_codes import DIVERGED, explain
from lockstep_data_plane.wire.fetch_codec import fetch_request, read_answer, topic_names
from lockstep_protocol.kafka_errors import ErrorMeaning, KafkaErrorCode
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch_bytes, record, records
from tests.support.kio_codec import read_back

LEADER, NEAR = 1, 2
TOPIC_ID = UUID(int=7)
OUT_OF_RANGE = 1


def copying(*, behind: int = -1, number: int = 0) -> PartitionMachine:
    """A partition of topic t, whose target holds records beyond what was written down up to `behind`."""
    partition = PartitionMachine("t", number, "a.t", 100)
    row = PartitionProgress(topic="t", partition=number, producer_id=4000, producer_epoch=1)
    partition.step(Resumed(row, LastAppend(behind, behind)))
    return partition


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    cluster = ClusterClient("a", [("broker", 9092)], {})
    cluster._leaders["t", 0] = PartitionLeader(LEADER, 0, TOPIC_ID)
    made = Fetcher(
        cluster,
        FetchSettings(rack="here"),
        "read_uncommitted",
        in_flight=MemoryBudget(64 << 20),
        has_room=lambda partition: True,
        on_fetched=lambda delivery: None,
        on_delivered=lambda: None,
        on_trouble=lambda partition, why: None,
    )
    yield made
    await made.close()


def shard_of(fetcher: Fetcher, partition: PartitionMachine) -> FetchConnection:
    (found,) = [
        fetch_connection
        for fetch_connection, _ in fetcher._fetch_connections.values()
        if partition in fetch_connection.partitions
    ]
    return found


def ask(fetch_connection: FetchConnection, connection: Connection) -> asyncio.Future[Any] | None:
    """Its next question, on the terms of now."""
    terms = fetch_connection._terms()
    assert terms is not None
    return fetch_connection._ask(connection, terms)


def connection() -> Connection:
    made = Connection("broker", 9092, client_id="test")
    made._versions = {APIS["fetch"].key: (0, 13)}
    return made


def question(partition: PartitionMachine) -> FetchRequest:
    """What asks for this partition alone."""
    leader = PartitionLeader(LEADER, 0, TOPIC_ID)
    wanted = (partition.tp, leader, partition.fetch_from, partition.fetched_epoch)
    asked = {partition.tp: (partition, partition.incarnation, wanted)}
    return FetchRequest(asked, {TOPIC_ID: partition.topic}, by_id=True, lasts=False, each=0)


def answer(
    *, code: int = 0, near: int = -1, data: bytes = b"", session: int = 0, silent: bool = False, parted: int = -1
) -> Any:
    """An answer for partition 0 of topic t, or one that says nothing of any. `parted`: where its log parts from what
    was fetched."""
    m = message("fetch", 13, "response")
    part = m.PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=-1 if near >= 0 else 100,
        diverging_epoch=m.EpochEndOffset(epoch=2 if parted >= 0 else -1, end_offset=parted),
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        preferred_read_replica=near,
        records=data,
    )
    topic = m.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(part,))
    topics = () if silent else (topic,)
    return m.FetchResponse(throttle_time=timedelta(0), error_code=0, session_id=session, responses=topics)


def answered(fetch_connection: FetchConnection, partition: PartitionMachine, **said: Any) -> list[Batch]:
    """Hand a shard an `answer` for the partition; the batches that it delivers."""
    deliveries = fetch_connection._parse_answer(fetch_connection._last or question(partition), answer(**said))
    return [batch for delivery in deliveries for batch in delivery.batches]


async def test_a_replica_that_the_leader_names_is_fetched_from(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher.rack([partition]) == "here"
    assert answered(shard_of(fetcher, partition), partition, near=NEAR) == []
    assert shard_of(fetcher, partition).broker == NEAR
    (batch,) = answered(shard_of(fetcher, partition), partition, data=batch_bytes(records(0, 3)))
    assert batch.last_offset == 2
    assert partition.fetch_from == 3


async def test_fetch_refused_by_a_replica_goes_to_the_leader(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    answered(near, partition, code=OUT_OF_RANGE)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher.rack([partition]) == ""


async def test_fetch_refused_by_a_leader_is_delivered(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)
    m = message("fetch", 13, "response")
    refused = m.FetchResponse(throttle_time=timedelta(0), error_code=OUT_OF_RANGE, session_id=0, responses=())
    (delivery,) = fetch_connection._parse_answer(question(partition), refused)
    assert delivery.fetched.code == OUT_OF_RANGE
    assert shard_of(fetcher, partition) is fetch_connection


async def test_fetch_has_the_leader_epoch_of_the_last_batch(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher.cluster._leaders["t", 0] = PartitionLeader(LEADER, 5, TOPIC_ID)
    partition, made = copying(), connection()
    asked: list[Any] = []
    monkeypatch.setattr(made, "ask", lambda request, seen: asked.append(read_back(request)))
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)

    def said() -> tuple[int, int, int]:
        ask(fetch_connection, made)
        (part,) = asked[-1].topics[0].partitions
        return part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch

    assert said() == (5, 0, -1)
    fetched = batch_bytes(records(0, 3), leader_epoch=4) + batch_bytes(records(3, 1), leader_epoch=5)
    answered(fetch_connection, partition, data=fetched)
    assert said() == (5, 4, 5)
    partition.step(Failed())
    partition.step(AllAnswered())
    partition.step(Resumed(PartitionProgress(topic="t", partition=0, producer_id=4000, upstream=3), LastAppend(-1, -1)))
    fetcher.attach(partition)
    assert said() == (5, 4, -1), "resuming has looked for itself whether the log still holds what was copied"


@pytest.mark.parametrize("said", [{"code": KafkaErrorCode.FENCED_LEADER_EPOCH}, {"code": 75}, {"parted": 7}])
async def test_fetch_with_another_epoch_or_diverged_log_resumes_the_partition(
    fetcher: Fetcher, said: dict[str, Any]
) -> None:
    partition = copying()
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)
    (delivery,) = fetch_connection._parse_answer(question(partition), answer(**said))
    assert delivery.fetched.code == said.get("code", DIVERGED)
    assert explain(delivery.fetched.code)[0] is not ErrorMeaning.REFUSED
    assert delivery.batches == ()


async def test_fetch_from_a_replica_with_a_later_leader_makes_it_resume(
    fetcher: Fetcher,
) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    (delivery,) = near._parse_answer(question(partition), answer(code=KafkaErrorCode.FENCED_LEADER_EPOCH))
    assert delivery.fetched.code == KafkaErrorCode.FENCED_LEADER_EPOCH
    assert fetcher.rack([partition]) == "here"


async def test_fetch_from_a_diverged_replica_goes_back_to_the_leader(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    assert list(near._parse_answer(question(partition), answer(parted=7))) == []
    assert shard_of(fetcher, partition).broker == LEADER


async def test_a_partition_that_counts_is_read_from_its_leader(fetcher: Fetcher) -> None:
    partition = copying(behind=9)
    assert partition.records_to_skip == 10
    fetcher.attach(partition)
    assert fetcher.rack([partition]) == ""


async def test_a_partition_that_resumes_begins_at_its_leader(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    fetcher.attach(partition)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher.rack([partition]) == "here"


async def test_fetch_asks_the_leader_again_at_the_end_of_a_replica_lease(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    fetcher.send_back(near, near.partitions)
    assert shard_of(fetcher, partition) is near
    fetcher._replicas.reset(("t", 0))
    fetcher.send_back(near, near.partitions)
    assert shard_of(fetcher, partition).broker == LEADER


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
    m = message("fetch", 12, "response")
    part = m.PartitionData(partition_index=0, error_code=0, high_watermark=9, aborted_transactions=None, records=b"")
    topics = (m.FetchableTopicResponse(topic="t", partitions=(part,)),)
    said = m.FetchResponse(throttle_time=timedelta(0), error_code=0, session_id=0, responses=topics)
    (fetched,) = read_answer(wanted, said, topic_names(wanted))
    assert (fetched.tp, fetched.high_watermark) == (("t", 0), 9)


async def test_fetch_of_unchanged_partitions_does_not_visit_each(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what an empty answer leaves as it was: who comes, or has moved on, is named in the next question."""
    fetcher.settings, fetcher.questions_last = FetchSettings(), True
    fetcher.cluster._leaders["t", 1] = PartitionLeader(LEADER, 0, TOPIC_ID)
    looked_at: list[PartitionMachine] = []

    def has_room(partition: PartitionMachine) -> bool:
        looked_at.append(partition)
        return True

    monkeypatch.setattr(fetcher, "has_room", has_room)
    monkeypatch.setattr("lockstep_data_plane.fetch.fetcher.SHARDS", 1)
    first, second, made = copying(), copying(number=1), connection()
    asked: list[Any] = []
    monkeypatch.setattr(made, "ask", lambda request, seen: asked.append(read_back(request)))
    fetcher.attach(first)
    fetch_connection = shard_of(fetcher, first)

    def named() -> dict[int, int]:
        """What the next question says: the partitions that it names, and their offsets."""
        looked_at.clear()
        ask(fetch_connection, made)
        return {part.partition: part.fetch_offset for topic in asked[-1].topics for part in topic.partitions}

    assert named() == {0: 0}
    answered(fetch_connection, first, session=77, silent=True)
    assert (named(), looked_at, asked[-1].session_id, asked[-1].session_epoch) == ({}, [], 77, 1)
    answered(fetch_connection, first, session=77, silent=True)
    fetcher.attach(second)
    assert (named(), looked_at) == ({1: 0}, [first, second])
    answered(fetch_connection, first, session=77, data=batch_bytes(records(0, 3)))
    assert (named(), looked_at) == ({0: 3}, [first]), "only what moved is looked at"
    answered(fetch_connection, first, session=77, silent=True)
    assert (named(), looked_at) == ({}, [first]), "and once more, for what was fetched may have come later"
    answered(fetch_connection, first, session=77)
    assert (named(), looked_at) == ({}, []), "an answer without records moves nobody"
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
    asked: list[Any] = []
    made = connection()
    monkeypatch.setattr(made, "ask", lambda request, seen: asked.append(read_back(request)))
    ask(shard_of(fetcher, partition), made)
    assert [int(request.__version__) for request in asked] == [version]


def two_shards(fetcher: Fetcher) -> tuple[FetchConnection, FetchConnection]:
    """Of the leader, with three partitions each; they have not begun to connect yet."""
    for number in range(6):
        fetcher.cluster._leaders["t", number] = PartitionLeader(LEADER, 0, TOPIC_ID)
        fetcher.attach(copying(number=number))
    first, second = (fetch_connection for fetch_connection, _ in fetcher._fetch_connections.values())
    assert (len(first.partitions), len(second.partitions)) == (3, 3)
    return first, second


def brings(*fetch_connections: FetchConnection, size: int = 500, until: float) -> None:
    """Each of them brings a thousand answers a second, of two batches in so many bytes, from 0 until then."""
    for number in range(round(until * 1000)):
        for fetch_connection in fetch_connections:
            fetch_connection.pacer.paced(2, size, number / 1000)


def numbers(fetch_connection: FetchConnection) -> list[int]:
    return sorted(partition.number for partition in fetch_connection.partitions)


async def test_fetch_moves_single_records_of_two_connections_to_one(fetcher: Fetcher) -> None:
    first, second = two_shards(fetcher)
    brings(first, second, until=1.0)
    fetcher.share_out(second, 1.0)
    assert len(second.partitions) == 3  # it has not lasted yet
    brings(first, second, until=2.0)
    fetcher.share_out(first, 2.0)
    assert len(first.partitions) == 3
    fetcher.share_out(second, 2.0)
    assert (numbers(first), numbers(second)) == ([0, 1, 2, 3, 4, 5], [])
    assert set(fetcher._connections.values()) == {first}


async def test_fetch_keeps_single_records_from_a_busy_or_idle_connection(fetcher: Fetcher) -> None:
    first, second = two_shards(fetcher)
    brings(second, until=2.0)
    fetcher.share_out(second, 2.0)
    brings(first, size=50_000, until=2.0)
    fetcher.share_out(second, 2.0)
    fetcher.share_out(first, 2.0)
    assert (len(first.partitions), len(second.partitions)) == (3, 3)


async def test_fetch_shares_a_busy_connection_between_two(fetcher: Fetcher) -> None:
    first, second = two_shards(fetcher)
    brings(first, second, until=2.0)
    fetcher.share_out(second, 2.0)
    second.wake.clear()
    brings(first, size=50_000, until=3.0)
    fetcher.share_out(first, 3.0)
    assert (len(first.partitions), len(second.partitions)) == (3, 3)
    assert second.wake.is_set()
    assert all(
        fetcher._connections[p] is fetch_connection
        for fetch_connection in (first, second)
        for p in fetch_connection.partitions
    )
    fetcher.share_out(first, 3.0)
    assert (len(first.partitions), len(second.partitions)) == (3, 3)


def is_silent(fetch_connection: FetchConnection, *, since: float, until: float) -> None:
    """Something came, and since then nothing."""
    fetch_connection.pacer.paced(1, 500, since)
    fetch_connection.pacer.paced(0, 0, until)


async def test_fetch_waits_for_idle_partitions_on_one_connection(fetcher: Fetcher) -> None:
    first, second = two_shards(fetcher)
    is_silent(second, since=0.0, until=QUIET_S - 0.1)
    fetcher.share_out(second, QUIET_S - 0.1)
    assert len(second.partitions) == 3
    is_silent(first, since=0.0, until=QUIET_S)
    fetcher.share_out(first, QUIET_S)
    assert len(first.partitions) == 3, "the second gives, not both"
    fetcher.share_out(second, QUIET_S)
    assert (numbers(first), numbers(second)) == ([0, 1, 2, 3, 4, 5], [])
    fetcher.share_out(first, 2 * QUIET_S)
    assert len(first.partitions) == 6, "nobody has less to do where nobody is"


async def test_fetch_moves_quiet_partitions_to_a_busy_connection_within_bounds(fetcher: Fetcher) -> None:
    first, second = two_shards(fetcher)
    is_silent(first, since=0.0, until=QUIET_S)
    second.pacer.paced(1, MUCH_BYTES, QUIET_S)
    fetcher.share_out(first, QUIET_S)
    assert (len(first.partitions), len(second.partitions)) == (3, 3)
    second.pacer.paced(1, 500, QUIET_S + SMALL_BATCH_CHECK_S)
    second.pacer.paced(1, 500, QUIET_S + 2 * SMALL_BATCH_CHECK_S)
    fetcher.share_out(first, QUIET_S + 2 * SMALL_BATCH_CHECK_S)
    assert (numbers(first), numbers(second)) == ([], [0, 1, 2, 3, 4, 5])


async def test_a_partition_goes_with_its_position_and_is_in_the_next_question(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_shards(fetcher)
    (partition,) = (p for p in second.partitions if p.number == 1)
    partition.step(Received(42, 0))
    first._last = second._last = question(partition)
    brings(first, second, until=2.0)
    fetcher.share_out(second, 2.0)
    assert partition.fetch_from == 42
    assert first._last is None
    assert ask(second, connection()) is None
    made = connection()
    asked: list[Any] = []
    monkeypatch.setattr(made, "ask", lambda request, seen: asked.append(read_back(request)))
    ask(first, made)
    offsets = {part.partition: part.fetch_offset for topic in asked[0].topics for part in topic.partitions}
    assert offsets == {number: 42 if number == 1 else 0 for number in range(6)}


class Asked(Connection):
    """A connection whose answers the test gives: what was asked of it, and who is to see what comes."""

    def __init__(self, happened: list[str]) -> None:
        self._versions = {APIS["fetch"].key: (0, 13)}
        self._happened = happened

    def ask(self, entity: Any, seen: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
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
    [(100, ["asked", "delivered", "answered", "asked"]), (FEW_BYTES, ["asked", "answered", "asked", "delivered"])],
)
async def test_fetch_delivers_a_small_answer_at_once_and_a_large_one_later(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, size: int, expected: list[str]
) -> None:
    happened: list[str] = []
    made, partition = Asked(happened), copying()

    async def connection(broker: int, produce_connection: str) -> Connection:
        return made

    monkeypatch.setattr(fetcher.cluster, "connection", connection)
    monkeypatch.setattr(fetcher, "_on_fetched", lambda delivery: happened.append("delivered"))
    fetcher.attach(partition)
    await asyncio.sleep(0.01)
    await made.answers(answer(data=batch_bytes([record(0, bytes(size))])))
    assert happened == expected
    assert partition.fetch_from == 1
