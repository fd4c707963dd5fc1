"""A fetcher of partition 0 of topic t whose connections lead nowhere, and answers that a broker could give it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_config.flow.model import DataPlaneSettings, FetchSettings
from lockstep_data_plane.core.events import Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetcher import Delivery, FetchConnection, Fetcher, FetchRequest
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.fetch_handler import FetchFunctions
from tests.support.kio_codec import read_back

LEADER, NEAR = 1, 2
TOPIC_ID = UUID(int=7)
OUT_OF_RANGE = 1


def copying(*, behind: int = -1, number: int = 0) -> PartitionState:
    """A partition of topic t, whose target holds records beyond what was written down up to `behind`."""
    partition = PartitionState("t", number, "a.t", 100)
    row = PartitionProgress(topic="t", partition=number, producer_id=4000, producer_epoch=1)
    partition.step(Resumed(row, LastAppend(behind, behind)))
    return partition


def fetcher_with(settings: FetchSettings) -> Fetcher:
    """Fetches of partition 0 of topic t, and drops what comes."""
    cluster = ClusterClient("a", [("broker", 9092)], {})
    cluster._leaders["t", 0] = PartitionLeader(LEADER, 0, TOPIC_ID)
    return Fetcher(cluster, DataPlaneSettings(fetch=settings), FetchFunctions())


def shard_of(fetcher: Fetcher, partition: PartitionState) -> FetchConnection:
    (connection,) = (each for each in fetcher._connections.values() if partition in each.partitions)
    assert fetcher._fetched_by[partition] is connection
    return connection


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

    def send(entity: Any, seen: Callable[[Any], None]) -> asyncio.Future[Any]:
        asked.append(read_back(entity))
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(made, "send", send)
    return asked


def question(partition: PartitionState) -> FetchRequest:
    """What asks for this partition alone."""
    asked = {partition.tp: (partition, partition.incarnation)}
    return FetchRequest(asked, {TOPIC_ID: partition.topic}, by_id=True, is_repeatable=False, max_partition_bytes=0)


def answer(
    *, code: int = 0, near: int = -1, data: bytes = b"", session: int = 0, silent: bool = False, parted: int = -1
) -> Any:
    """An answer for partition 0 of topic t, or one that says nothing of any. `parted`: where its log parts from what
    was fetched."""
    m = load_message("fetch", 13, "response")
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


def answered(fetch_connection: FetchConnection, partition: PartitionState, **said: Any) -> list[Batch]:
    """Hand a shard an `answer` for the partition; the batches that it delivers."""
    return [
        batch for delivery in deliveries_of(fetch_connection, partition, answer(**said)) for batch in delivery.batches
    ]


def deliveries_of(fetch_connection: FetchConnection, partition: PartitionState, said: Any) -> Sequence[Delivery]:
    """The same of any answer."""
    fetch_connection._on_answer(fetch_connection._last_request or question(partition), said)
    return fetch_connection.result.deliveries
