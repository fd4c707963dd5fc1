"""Where a partition is fetched from: its leader, or the replica that the leader named, and back (KIP-392)."""

from datetime import timedelta
from typing import Any

import pytest

from lockstep_data_plane.core.events import AllAnswered, Failed, Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetcher import FetchConnection, Fetcher
from lockstep_kafka.messages.fetch_codec import DIVERGED
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.error_codes import explain
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch_bytes, records
from tests.unit.data_plane.fetch_scene import (
    LEADER,
    NEAR,
    OUT_OF_RANGE,
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


def copying_from_replica(fetcher: Fetcher) -> tuple[PartitionState, FetchConnection]:
    """A partition whose leader has named a replica, and the connection to that."""
    partition = copying()
    fetcher.attach(partition)
    answered(shard_of(fetcher, partition), partition, near=NEAR)
    return partition, shard_of(fetcher, partition)


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
    partition, near = copying_from_replica(fetcher)
    answered(near, partition, code=OUT_OF_RANGE)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher._rack([partition]) == ""


async def test_fetch_refused_by_a_leader_is_delivered(fetcher: Fetcher) -> None:
    partition = copying()
    fetcher.attach(partition)
    fetch_connection = shard_of(fetcher, partition)
    m = load_message("fetch", 13, "response")
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
    answered(fetch_connection, partition, data=batch_bytes(records(0, 3), leader_epoch=4))
    assert said() == (5, 3, 4)
    answered(fetch_connection, partition, data=batch_bytes(records(3, 1), leader_epoch=5))
    assert said() == (5, 4, -1), "this leader has appended that record itself"
    fetcher.cluster._leaders["t", 0] = PartitionLeader(LEADER, 6, TOPIC_ID)
    fetcher.detach(partition)
    fetcher.attach(partition)
    assert said() == (6, 4, 5), "it leads anew, perhaps without that record"
    partition.step(Failed())
    partition.step(AllAnswered())
    partition.step(Resumed(PartitionProgress(topic="t", partition=0, producer_id=4000, upstream=3), LastAppend(-1, -1)))
    fetcher.attach(partition)
    assert said() == (6, 4, -1), "resuming has looked for itself whether the log still holds what was copied"


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


async def test_fetch_from_a_replica_with_a_later_leader_makes_it_resume(fetcher: Fetcher) -> None:
    partition, near = copying_from_replica(fetcher)
    (delivery,) = deliveries_of(near, partition, answer(code=KafkaErrorCode.FENCED_LEADER_EPOCH))
    assert delivery.fetched.code == KafkaErrorCode.FENCED_LEADER_EPOCH
    assert fetcher._rack([partition]) == "here"


async def test_fetch_from_a_diverged_replica_goes_back_to_the_leader(fetcher: Fetcher) -> None:
    partition, near = copying_from_replica(fetcher)
    assert deliveries_of(near, partition, answer(parted=7)) == []
    assert shard_of(fetcher, partition).broker == LEADER


async def test_a_partition_that_counts_is_read_from_its_leader(fetcher: Fetcher) -> None:
    partition = copying(behind=9)
    assert partition.records_to_skip == 10
    fetcher.attach(partition)
    assert fetcher._rack([partition]) == ""


async def test_a_partition_that_resumes_begins_at_its_leader(fetcher: Fetcher) -> None:
    partition, _ = copying_from_replica(fetcher)
    fetcher.attach(partition)
    assert shard_of(fetcher, partition).broker == LEADER
    assert fetcher._rack([partition]) == "here"


async def test_fetch_asks_the_leader_again_at_the_end_of_a_replica_lease(fetcher: Fetcher) -> None:
    partition, near = copying_from_replica(fetcher)
    fetcher._end_replica_leases(near)
    assert shard_of(fetcher, partition) is near
    fetcher._replicas.reset(("t", 0))
    fetcher._end_replica_leases(near)
    assert shard_of(fetcher, partition).broker == LEADER
