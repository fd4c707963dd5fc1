"""After a coordinator's restart only a fence goes on: what it left out of the last transaction has to be examined."""

from datetime import timedelta
from typing import Any, cast

import pytest

from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError
from lockstep_kafka.wire.transaction_coordinator import Producer, ProducerFenced, TransactionCoordinators
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

NAME, TP = "lockstep-A-B-t-0", ("A.t", 0)
VERSIONS = {"find_coordinator": 4, "init_producer_id": 4, "add_partitions_to_txn": 3, "end_txn": 3}


class Coordinator:
    """A connection to a coordinator that answers with these codes, then without an error."""

    closed = False

    def __init__(self, *codes: Code) -> None:
        self.codes = list(codes)
        self.asked: list[str] = []

    def version(self, api: str) -> int:
        return VERSIONS[api]

    async def request(self, request: Any) -> Any:
        api = next(api for api in VERSIONS if type(request).__name__.lower().startswith(api.replace("_", "")))
        m, code = load_message(api, VERSIONS[api], "response"), Code.NONE
        if api == "find_coordinator":
            found = m.Coordinator(key=NAME, node_id=1, host="b", port=1, error_code=0, error_message=None)
            return m.FindCoordinatorResponse(throttle_time=timedelta(0), coordinators=(found,))
        self.asked.append(api)
        if self.closed:
            raise ConnectionClosedError("the broker has gone")
        if self.codes:
            code = self.codes.pop(0)
        if api == "init_producer_id":
            return m.InitProducerIdResponse(
                throttle_time=timedelta(0), error_code=code, producer_id=7, producer_epoch=3
            )
        if api == "end_txn":
            return m.EndTxnResponse(throttle_time=timedelta(0), error_code=code)
        part = m.AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topic = m.AddPartitionsToTxnTopicResult(name=TP[0], results_by_partition=(part,))
        return m.AddPartitionsToTxnResponse(throttle_time=timedelta(0), results_by_topic_v3_and_below=(topic,))


class Cluster:
    """A cluster with one coordinator, which may restart: the next connection is another one."""

    alias = "B"

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator

    async def connection(self, broker: int, purpose: str) -> Coordinator:
        return self.coordinator

    async def any_connection(self) -> Coordinator:
        return self.coordinator

    async def refresh(self, topics: object) -> None:
        return

    def restart(self, *codes: Code) -> None:
        self.coordinator.closed = True
        self.coordinator = Coordinator(*codes)


async def fenced(*codes: Code) -> tuple[Cluster, TransactionCoordinators, Producer]:
    cluster = Cluster(Coordinator(*codes))
    coordinators = TransactionCoordinators(cast(ClusterClient, cluster), timedelta(seconds=60))
    return cluster, coordinators, await coordinators.fence(NAME)


async def test_fence_goes_on_while_the_coordinator_moves() -> None:
    moving = Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NOT_COORDINATOR, Code.CONCURRENT_TRANSACTIONS
    cluster, coordinators, producer = await fenced(*moving)
    assert producer == (7, 3)
    assert cluster.coordinator.asked == ["init_producer_id"] * 4
    assert coordinators.is_connected(NAME)


@pytest.mark.parametrize("call", ["open", "end"])
async def test_transaction_does_not_go_on_at_a_coordinator_that_restarted(call: str) -> None:
    cluster, coordinators, producer = await fenced()
    cluster.restart()
    assert not coordinators.is_connected(NAME)
    with pytest.raises(BrokerUnreachable):
        await (
            coordinators.open(NAME, producer, [TP]) if call == "open" else coordinators.end(NAME, producer, commit=True)
        )
    assert cluster.coordinator.asked == []


@pytest.mark.parametrize("code", [Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NOT_COORDINATOR])
async def test_transaction_does_not_wait_for_a_coordinator_that_moves(code: Code) -> None:
    cluster, coordinators, producer = await fenced()
    cluster.coordinator.codes = [code]
    with pytest.raises(KafkaProtocolError) as raised:
        await coordinators.end(NAME, producer, commit=True)
    assert raised.value.code == code


async def test_transaction_waits_while_the_last_one_ends() -> None:
    cluster, coordinators, producer = await fenced()
    cluster.coordinator.codes = [Code.CONCURRENT_TRANSACTIONS, Code.COORDINATOR_NOT_AVAILABLE]
    await coordinators.open(NAME, producer, [TP])
    assert cluster.coordinator.asked == ["init_producer_id", *["add_partitions_to_txn"] * 3]


async def test_transaction_goes_on_once_it_is_connected_again() -> None:
    cluster, coordinators, producer = await fenced()
    cluster.restart(Code.NONE, Code.PRODUCER_FENCED)
    await coordinators.connect(NAME)
    assert coordinators.is_connected(NAME)
    await coordinators.open(NAME, producer, [TP])
    with pytest.raises(ProducerFenced):
        await coordinators.end(NAME, producer, commit=True)
