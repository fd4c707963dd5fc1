"""What a connection asks for stays within what its slot may still hold, and counts until its partitions hold it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_config.flow.model import DataPlaneSettings
from lockstep_data_plane.core.events import Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetch_schedule import SMALL_BYTES
from lockstep_data_plane.fetch.fetcher import Delivery, FetchConnection, Fetcher, FetchResult
from lockstep_data_plane.fetch.memory_budget import MemoryBudget
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch_bytes, record
from tests.support.eventually import eventually
from tests.support.fetch_handler import FetchFunctions
from tests.support.kio_codec import read_back

MIB = 1 << 20
CAP = 8 * MIB
TOPIC_ID = UUID(int=7)

ELSEWHERE = PartitionState("elsewhere", 0, "a.elsewhere", 100)
"""A partition of another broker."""


class Asked(Connection):
    """A connection whose answers the test gives."""

    def __init__(self) -> None:
        self._versions = {APIS["fetch"].key: (0, 13)}
        self.requests: list[Any] = []

    @property
    def closed(self) -> bool:
        return False

    def send(self, entity: Any, seen: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        assert seen is not None
        self.requests.append(read_back(entity))
        self._seen, self._answer = seen, asyncio.get_running_loop().create_future()
        return self._answer

    @property
    def last(self) -> dict[int, int]:
        """Of which partitions the last request speaks, and how much each may bring."""
        return {p.partition: p.partition_max_bytes for topic in self.requests[-1].topics for p in topic.partitions}

    @property
    def forgets(self) -> set[int]:
        """Which partitions the last request takes out of the session."""
        return {number for topic in self.requests[-1].forgotten_topics_data for number in topic.partitions}

    def answers(self, **data: bytes) -> None:
        """With these batches, by partition (`p0`)."""
        m = load_message("fetch", 13, "response")
        parts = tuple(
            m.PartitionData(
                partition_index=int(name[1:]),
                error_code=0,
                high_watermark=100,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                records=records,
            )
            for name, records in data.items()
        )
        topics = (m.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=parts),) if parts else ()
        answer = m.FetchResponse(throttle_time=timedelta(0), error_code=0, session_id=7, responses=topics)
        self._seen(answer)
        self._answer.set_result(answer)

    def fails(self) -> None:
        self._answer.set_exception(BrokerUnreachable("broker:9092: gone"))


class Scene:
    """Some partitions of one broker over one connection, and what was delivered of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster, self.connection = ClusterClient("a", [("broker", 9092)], {}), Asked()
        self.delivered: list[Delivery] = []
        self.troubled: list[PartitionState] = []

        async def connect(broker: int, produce_connection: str) -> Connection:
            return self.connection

        monkeypatch.setattr(cluster, "connection", connect)
        self.handler = FetchFunctions(
            self.delivered.append, on_fetch_lost=lambda partition, why: self.troubled.append(partition)
        )
        self.fetcher = Fetcher(cluster, DataPlaneSettings(max_in_flight_bytes=CAP), self.handler)
        self.partitions = [self._partition(number) for number in range(8)]

    def _partition(self, number: int) -> PartitionState:
        self.fetcher.cluster._leaders["t", number] = PartitionLeader(1, 0, TOPIC_ID)
        partition = PartitionState("t", number, "a.t", 100)
        row = PartitionProgress(topic="t", partition=number, producer_id=4000, producer_epoch=1)
        partition.step(Resumed(row, LastAppend(-1, -1)))
        return partition

    def attach(self) -> None:
        for partition in self.partitions:
            self.fetcher.attach(partition)

    async def asked(self, count: int) -> None:
        """Until so many questions are out."""
        await eventually(lambda: len(self.connection.requests) == count, every=0.001, what=f"question {count}")

    @property
    def budget(self) -> MemoryBudget:
        return self.fetcher.budget

    @property
    def used(self) -> int:
        return self.budget._used

    @property
    def fetch_connection(self) -> FetchConnection:
        (fetch_connection,) = self.fetcher._connections.values()
        return fetch_connection


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    made = Scene(monkeypatch)
    yield made
    await made.fetcher.close()


async def test_requested_bytes_count_until_the_answer_gives_their_size(scene: Scene) -> None:
    scene.attach()
    await scene.asked(1)
    assert scene.connection.requests[0].max_bytes == CAP // 2 == scene.used
    assert scene.connection.last == dict.fromkeys(range(8), MIB)
    scene.connection.answers(p0=batch_bytes([record(0, bytes(100))]))
    await scene.asked(2)
    assert (len(scene.delivered), scene.used) == (1, CAP // 2), "handed over, and the next question is out"


async def test_undelivered_bytes_count_beside_the_next_fetch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.attach()
    await scene.asked(1)
    seen: list[int] = []
    deliver = scene.fetcher._deliver

    def noting(result: FetchResult) -> None:
        seen.append(scene.used)
        deliver(result)

    monkeypatch.setattr(scene.fetcher, "_deliver", noting)
    data = batch_bytes([record(0, bytes(SMALL_BYTES))])
    scene.connection.answers(p0=data)
    await scene.asked(2)
    assert seen == [CAP // 2 + len(data)], "the next request is out before it is handed over"
    assert scene.used == CAP // 2


async def test_fetch_max_bytes_is_at_most_the_remaining_room(scene: Scene) -> None:
    scene.fetcher.set_held(scene.partitions[0], 3 * MIB)
    scene.attach()
    await scene.asked(1)
    assert scene.connection.requests[0].max_bytes == 3 * MIB
    assert sorted(scene.connection.last) == list(range(1, 8)), "who holds as much as is left waits"


async def test_fetch_with_little_room_asks_only_for_partitions_that_hold_little(scene: Scene) -> None:
    own = CAP // (8 * 8)
    for partition in scene.partitions[:6]:
        scene.fetcher.set_held(partition, MIB)
    scene.attach()
    await scene.asked(1)
    assert scene.connection.last == {6: own, 7: own}
    assert scene.connection.requests[-1].max_bytes == 2 * own
    assert scene.used == 6 * MIB + 2 * own


async def test_fetch_session_names_a_partition_again_when_its_size_changes(scene: Scene) -> None:
    scene.attach()
    await scene.asked(1)
    scene.fetcher.set_held(scene.partitions[0], 6 * MIB)
    scene.connection.answers()
    await scene.asked(2)
    own = CAP // (8 * 8)
    assert scene.connection.last == dict.fromkeys(range(1, 8), own)
    assert scene.connection.forgets == {0}
    scene.fetcher.set_held(scene.partitions[0], 0)
    scene.connection.answers()
    await scene.asked(3)
    assert scene.connection.last == dict.fromkeys(range(8), MIB)
    scene.connection.answers()
    await scene.asked(4)
    assert scene.connection.last == {}, "as before"


async def test_fetch_without_room_resumes_when_another_partition_frees_some(scene: Scene) -> None:
    scene.fetcher.set_held(ELSEWHERE, CAP)
    scene.attach()
    await eventually(lambda: not scene.fetch_connection.wake.is_set(), what="it waits")
    scene.fetcher.set_held(ELSEWHERE, CAP - CAP // 64 + 1)
    assert not scene.fetch_connection.wake.is_set()
    scene.fetcher.set_held(ELSEWHERE, CAP - CAP // 64)
    await scene.asked(1)
    assert scene.used == CAP


async def test_a_question_that_waits_for_more_room_goes_out_as_soon_as_there_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_data_plane.fetch.fetcher.TIGHT_WAIT_S", 60)
    scene.fetcher.set_held(ELSEWHERE, 6 * MIB)
    scene.attach()
    await eventually(lambda: scene.budget._wakes_at > 0, what="it waits")
    await asyncio.sleep(0)
    assert scene.connection.requests == []
    scene.fetcher.set_held(ELSEWHERE, 5 * MIB)
    await scene.asked(1)
    assert scene.connection.last == dict.fromkeys(range(8), MIB)


async def test_requested_bytes_of_a_lost_connection_are_freed(scene: Scene) -> None:
    scene.attach()
    await scene.asked(1)
    scene.connection.fails()
    await eventually(lambda: len(scene.troubled) == 8)
    assert scene.used == 0


async def test_fetch_of_unmoved_partitions_visits_none(scene: Scene) -> None:
    scene.attach()
    await scene.asked(1)
    visited: list[PartitionState] = []

    def may_fetch(partition: PartitionState) -> bool:
        visited.append(partition)
        return True

    scene.handler.may_fetch = may_fetch
    for turn in range(2, 5):
        scene.connection.answers()
        await scene.asked(turn)
    assert visited == []
    scene.connection.answers(p3=batch_bytes([record(0, bytes(100))]))
    await scene.asked(5)
    assert [partition.number for partition in visited] == [3]


async def test_undelivered_bytes_of_a_partition_keep_it_out_of_the_next_request(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the partition says meanwhile how much it holds of what it got before."""
    scene.attach()
    await scene.asked(1)
    scene.fetcher.set_held(ELSEWHERE, 5 * MIB)
    data = batch_bytes([record(0, bytes(MIB // 2))])
    scene.connection.answers(p0=data)
    assert scene.budget.held_by(scene.partitions[0]) == len(data)
    scene.fetcher.set_held(scene.partitions[0], 100)
    assert scene.budget.held_by(scene.partitions[0]) == len(data) + 100
    await scene.asked(2)
    assert [delivery.partition.number for delivery in scene.delivered] == [0]
    scene.fetcher.set_held(scene.partitions[0], 100)
    assert scene.budget.held_by(scene.partitions[0]) == 100


async def test_large_answer_is_delivered_although_its_connection_is_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.attach()
    await scene.asked(1)

    def refuses(entity: object, seen: object = None) -> asyncio.Future[Any]:
        raise BrokerUnreachable("broker:9092: the connection is closed")

    monkeypatch.setattr(scene.connection, "send", refuses)
    scene.connection.answers(p0=batch_bytes([record(0, bytes(SMALL_BYTES))]))
    await eventually(lambda: len(scene.troubled) == 8)
    assert [delivery.partition.number for delivery in scene.delivered] == [0]
    scene.fetcher.set_held(scene.partitions[0], 0)
    assert scene.used == 0


async def test_fetch_without_room_keeps_its_session(scene: Scene) -> None:
    scene.attach()
    await scene.asked(1)
    scene.fetcher.set_held(ELSEWHERE, CAP)
    scene.connection.answers()
    await eventually(lambda: not scene.fetch_connection.wake.is_set(), what="it waits")
    scene.fetcher.set_held(ELSEWHERE, 0)
    await scene.asked(2)
    assert (scene.connection.requests[1].session_id, scene.connection.last) == (7, {})
