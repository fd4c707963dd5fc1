"""Where a partition is fetched from: its leader, or the replica that the leader named, and back (KIP-392)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_config.flow.model import DataPlaneSettings, FetchSettings
from lockstep_data_plane.core.events import AllAnswered, Failed, Received, Resumed
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.fetch.fetch_connection import FetchConnection
from lockstep_data_plane.fetch.fetch_request import Delivery, FetchRequest
from lockstep_data_plane.fetch.fetch_timing import SMALL_BYTES
from lockstep_data_plane.fetch.fetcher import Fetcher
from lockstep_data_plane.fetch.request_sizing import MUCH_BYTES, MUCH_LASTS_S
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


def fetcher_with(settings: FetchSettings) -> Fetcher:
    """Fetches of partition 0 of topic t, and drops what comes."""
    cluster = ClusterClient("a", [("broker", 9092)], {})
    cluster._leaders["t", 0] = PartitionLeader(LEADER, 0, TOPIC_ID)
    return Fetcher(
        cluster,
        DataPlaneSettings(fetch=settings),
        is_held_back=lambda partition: False,
        on_fetched=lambda delivery: None,
        on_delivered=lambda: None,
        on_trouble=lambda partition, why: None,
    )


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    """With a rack."""
    made = fetcher_with(FetchSettings(rack="here"))
    yield made
    await made.close()


@pytest.fixture
async def rackless() -> AsyncIterator[Fetcher]:
    made = fetcher_with(FetchSettings())
    yield made
    await made.close()


def shard_of(fetcher: Fetcher, partition: PartitionMachine) -> FetchConnection:
    (found,) = [
        fetch_connection
        for fetch_connection in fetcher._connections.values()
        if partition in fetch_connection.partitions
    ]
    assert fetcher._fetched_by[partition] is found
    return found


def ask(fetcher: Fetcher, fetch_connection: FetchConnection, connection: Connection) -> asyncio.Future[Any] | None:
    """Its next request, within the limits of now."""
    fetch_connection._connection = connection
    limits = fetcher._limits(fetch_connection)
    assert limits is not None
    return fetcher._ask(fetch_connection, limits)


def connection() -> Connection:
    made = Connection("broker", 9092, client_id="test")
    made._versions = {APIS["fetch"].key: (0, 13)}
    return made


def noted(made: Connection, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked on a connection from now on; nobody answers."""
    asked: list[Any] = []

    def ask(entity: Any, seen: Callable[[Any], None]) -> asyncio.Future[Any]:
        asked.append(read_back(entity))
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(made, "ask", ask)
    return asked


def question(partition: PartitionMachine) -> FetchRequest:
    """What asks for this partition alone."""
    asked = {partition.tp: (partition, partition.incarnation)}
    return FetchRequest(asked, {TOPIC_ID: partition.topic}, by_id=True, is_repeatable=False, each=0)


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
    return [
        batch for delivery in deliveries_of(fetch_connection, partition, answer(**said)) for batch in delivery.batches
    ]


def deliveries_of(fetch_connection: FetchConnection, partition: PartitionMachine, said: Any) -> Sequence[Delivery]:
    """The same of any answer."""
    fetch_connection._on_answer(fetch_connection._last or question(partition), said)
    return fetch_connection.result.deliveries


async def test_a_replica_that_the_leader_names_is_fetched_from(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher._rack([partition]) == "here"
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
    assert fetcher._rack([partition]) == ""


async def test_fetch_refused_by_a_leader_is_delivered(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)
    m = message("fetch", 13, "response")
    refused = m.FetchResponse(throttle_time=timedelta(0), error_code=OUT_OF_RANGE, session_id=0, responses=())
    (delivery,) = deliveries_of(fetch_connection, partition, refused)
    assert delivery.fetched.code == OUT_OF_RANGE
    assert shard_of(fetcher, partition) is fetch_connection


async def test_fetch_has_the_leader_epoch_of_the_last_batch(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher.cluster._leaders["t", 0] = PartitionLeader(LEADER, 5, TOPIC_ID)
    partition, made = copying(), connection()
    asked = noted(made, monkeypatch)
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)

    def said() -> tuple[int, int, int]:
        ask(fetcher, fetch_connection, made)
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
    (delivery,) = deliveries_of(fetch_connection, partition, answer(**said))
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
    (delivery,) = deliveries_of(near, partition, answer(code=KafkaErrorCode.FENCED_LEADER_EPOCH))
    assert delivery.fetched.code == KafkaErrorCode.FENCED_LEADER_EPOCH
    assert fetcher._rack([partition]) == "here"


async def test_fetch_from_a_diverged_replica_goes_back_to_the_leader(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    assert deliveries_of(near, partition, answer(parted=7)) == []
    assert shard_of(fetcher, partition).broker == LEADER


async def test_a_partition_that_counts_is_read_from_its_leader(fetcher: Fetcher) -> None:
    partition = copying(behind=9)
    assert partition.records_to_skip == 10
    fetcher.attach(partition)
    assert fetcher._rack([partition]) == ""


async def test_a_partition_that_resumes_begins_at_its_leader(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    fetcher.attach(partition)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher._rack([partition]) == "here"


async def test_fetch_asks_the_leader_again_at_the_end_of_a_replica_lease(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    near = shard_of(fetcher, partition)
    fetcher._end_replica_leases(near)
    assert shard_of(fetcher, partition) is near
    fetcher._replicas.reset(("t", 0))
    fetcher._end_replica_leases(near)
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
    (fetched,) = read_answer([("t", 0)], said, topic_names(wanted))
    assert (fetched.tp, fetched.high_watermark) == (("t", 0), 9)


async def test_fetch_of_unchanged_partitions_does_not_visit_each(
    rackless: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what an empty answer leaves as it was: who comes, or has moved on, is named in the next question."""
    fetcher = rackless
    fetcher.cluster._leaders["t", 1] = PartitionLeader(LEADER, 0, TOPIC_ID)
    visited: list[PartitionMachine] = []

    def is_held_back(partition: PartitionMachine) -> bool:
        visited.append(partition)
        return False

    monkeypatch.setattr(fetcher, "_is_held_back", is_held_back)
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
    fetcher._sizing.on_fetched(fetch_connection.key, size, now)
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
    monkeypatch.setattr(rackless, "_on_fetched", lambda delivery: happened.append("delivered"))
    rackless.attach(partition)
    await asyncio.sleep(0.01)
    await made.answers(answer(data=batch_bytes([record(0, bytes(size))])))
    assert happened == expected
    assert partition.fetch_from == 1
