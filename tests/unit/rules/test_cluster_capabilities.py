"""The functions that a flow lacks on a cluster without some of Kafka's requests."""

import pytest

from lockstep_rules.clusters.cluster_capabilities import (
    CAPABILITIES,
    Capability,
    Cost,
    Role,
    known_versions,
    missing_capabilities,
    needed_apis,
    shared_versions,
)
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from tests.unit.rules.test_cluster_kind import EVENT_HUBS, KAFKA_2_1, KAFKA_2_8, KAFKA_3_9, WARPSTREAM, announced

BOTH = (Role.SOURCE, Role.TARGET)


def lacks(newest: dict[Request, int], *roles: Role, cost: Cost | None = None) -> set[str]:
    missing = missing_capabilities(announced(newest), roles)
    return {capability.name for capability in missing if cost in (None, capability.cost)}


def test_kafka_lacks_nothing_and_an_old_one_its_quorum() -> None:
    assert lacks(KAFKA_3_9, *BOTH) == set()
    assert lacks(KAFKA_2_8, *BOTH) == {"DescribeQuorum 1"}
    assert lacks(KAFKA_2_8, *BOTH, cost=Cost.WORK) == set()


def test_old_kafka_lacks_what_came_later_and_copies_all_the_same() -> None:
    assert lacks(KAFKA_2_1, Role.SOURCE, cost=Cost.WORK) == {"Fetch 12", "Metadata 9", "Metadata 10"}
    assert lacks(KAFKA_2_1, Role.TARGET, cost=Cost.WORK) == {
        *("DescribeProducers", "IncrementalAlterConfigs", "Metadata 10", "Produce 8")
    }


def test_service_of_old_versions_lacks_zstd_sessions_and_transactions() -> None:
    source, target = lacks(EVENT_HUBS, Role.SOURCE), lacks(EVENT_HUBS, Role.TARGET)
    assert {"Fetch 7", "Fetch 10", "Fetch 12", "OffsetForLeaderEpoch 2"} <= source
    assert {"AddPartitionsToTxn", "Produce 8"} <= target
    assert "Produce 7" not in target
    assert "Produce 7" in lacks({**EVENT_HUBS, Request.PRODUCE: 6}, Role.TARGET)


def test_cluster_without_group_requests_is_named_by_its_role() -> None:
    without = {Request.LIST_GROUPS, Request.DESCRIBE_GROUPS}
    nothing: dict[Request, int] = {key: newest for key, newest in KAFKA_3_9.items() if key not in without}
    assert lacks(nothing, Role.SOURCE) == {"ListGroups"}
    assert lacks(nothing, Role.TARGET) == {"DescribeGroups"}


def test_missing_requests_differ_by_the_role() -> None:
    assert "DescribeProducers" in lacks(WARPSTREAM, Role.TARGET)
    assert "DescribeProducers" not in lacks(WARPSTREAM, Role.SOURCE)
    assert "OffsetForLeaderEpoch 2" in lacks(WARPSTREAM, Role.SOURCE)
    assert "OffsetForLeaderEpoch 2" not in lacks(WARPSTREAM, Role.TARGET)


def test_older_version_than_is_needed_is_missing() -> None:
    assert {"OffsetForLeaderEpoch 2", "Metadata 8", "Metadata 10", "DescribeAcls"} <= lacks(EVENT_HUBS, Role.SOURCE)


def test_request_that_is_announced_and_refused_is_missing() -> None:
    versions = announced(KAFKA_3_9)
    missing = missing_capabilities(known_versions(versions, [Request.DESCRIBE_CONFIGS]), BOTH)
    assert [capability.request for capability in missing] == [Request.DESCRIBE_CONFIGS]


def test_versions_of_a_cluster_are_those_of_all_its_brokers() -> None:
    assert shared_versions([{0: (0, 9), 1: (4, 12), 2: (1, 3)}, {0: (3, 8), 1: (13, 17)}]) == {0: (3, 8)}
    assert shared_versions([]) == {}


@pytest.mark.parametrize("transactions", [False, True])
def test_source_needs_no_request_of_a_producer(*, transactions: bool) -> None:
    source, target = (needed_apis(role, transactions=transactions, keeps_names=False) for role in BOTH)
    assert source == {"fetch", "list_offsets", "metadata"}
    assert source < target <= APIS.keys()
    assert ("end_txn" in target) is ("init_producer_id" in target) is transactions
    assert not {"describe_producers", "offset_for_leader_epoch"} & (source | target), "there is a way without them"


def test_target_needs_producer_ids_where_topics_keep_their_names() -> None:
    renamed, same = (needed_apis(Role.TARGET, transactions=False, keeps_names=keeps) for keeps in (False, True))
    assert same - renamed == {"init_producer_id"}


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.name)
def test_capability_has_a_sentence_of_what_is_so_without(capability: Capability) -> None:
    assert capability.roles
    assert capability.without[0].islower() or capability.without.startswith("ACLs")
    assert not capability.without.endswith(".")
