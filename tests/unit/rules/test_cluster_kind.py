"""The guess of a cluster's kind by its ApiVersions, its cluster id and its host names."""

import pytest

from lockstep_rules.clusters.cluster_kind import ApiVersions, ClusterKind, guess_cluster_kind
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request

KAFKA_2_1: dict[Request, int] = {
    **{Request.PRODUCE: 7, Request.FETCH: 10, Request.LIST_OFFSETS: 4, Request.METADATA: 7},
    **{Request.FIND_COORDINATOR: 2, Request.INIT_PRODUCER_ID: 1, Request.OFFSET_FOR_LEADER_EPOCH: 2},
    **{Request.ADD_PARTITIONS_TO_TXN: 1, Request.END_TXN: 1, Request.DESCRIBE_ACLS: 1, Request.CREATE_ACLS: 1},
    **{Request.DESCRIBE_CONFIGS: 2, Request.ALTER_CONFIGS: 1, Request.DESCRIBE_LOG_DIRS: 1},
    **{Request.CREATE_PARTITIONS: 1, Request.CREATE_TOPICS: 3, Request.OFFSET_COMMIT: 6, Request.OFFSET_FETCH: 5},
    **{Request.LIST_GROUPS: 2, Request.DESCRIBE_GROUPS: 2, Request.JOIN_GROUP: 4},
}
KAFKA_2_4: dict[Request, int] = {
    **KAFKA_2_1,
    **{Request.PRODUCE: 8, Request.FETCH: 11, Request.METADATA: 9, Request.ELECT_LEADERS: 2},
    **{Request.INCREMENTAL_ALTER_CONFIGS: 1, Request.INIT_PRODUCER_ID: 2},
}
KAFKA_2_8: dict[Request, int] = {
    **KAFKA_2_4,
    **{Request.PRODUCE: 9, Request.FETCH: 12, Request.METADATA: 11, Request.INIT_PRODUCER_ID: 4},
    **{Request.DESCRIBE_CLIENT_QUOTAS: 1, Request.DESCRIBE_PRODUCERS: 0, Request.ADD_PARTITIONS_TO_TXN: 3},
}
KAFKA_3_9: dict[Request, int] = {
    **KAFKA_2_8,
    **{Request.PRODUCE: 11, Request.FETCH: 17, Request.METADATA: 12, Request.DESCRIBE_QUORUM: 2},
    **{Request.DESCRIBE_TRANSACTIONS: 0, Request.DESCRIBE_TOPIC_PARTITIONS: 0, Request.ADD_PARTITIONS_TO_TXN: 5},
}
KAFKA_4_0: dict[Request, int] = {**KAFKA_3_9, Request.PRODUCE: 12, Request.LIST_OFFSETS: 10}
KAFKA_4_1: dict[Request, int] = {**KAFKA_4_0, Request.PRODUCE: 13, Request.FETCH: 18}
KAFKA_4_3: dict[Request, int] = {**KAFKA_4_1, Request.LIST_OFFSETS: 11, Request.DESCRIBE_LOG_DIRS: 5}
KFAKE: dict[Request, int] = {key: version for key, version in KAFKA_4_3.items() if key != Request.DESCRIBE_QUORUM}
EVENT_HUBS: dict[Request, int] = {
    **{Request.PRODUCE: 7, Request.FETCH: 6, Request.METADATA: 5, Request.LIST_OFFSETS: 8, Request.OFFSET_COMMIT: 8},
    **{Request.FIND_COORDINATOR: 4, Request.JOIN_GROUP: 9, Request.CREATE_TOPICS: 4, Request.INIT_PRODUCER_ID: 1},
    **{Request.OFFSET_FOR_LEADER_EPOCH: 0, Request.DESCRIBE_CONFIGS: 2, Request.CREATE_PARTITIONS: 1},
    **{Request.OFFSET_FETCH: 8, Request.LIST_GROUPS: 0, Request.DESCRIBE_GROUPS: 1},
}
REDPANDA_25_2: dict[Request, int] = {
    **{Request.PRODUCE: 7, Request.FETCH: 11, Request.METADATA: 8, Request.LIST_OFFSETS: 4},
    **{Request.INIT_PRODUCER_ID: 3, Request.OFFSET_FOR_LEADER_EPOCH: 4, Request.ADD_PARTITIONS_TO_TXN: 3},
    **{Request.END_TXN: 3, Request.DESCRIBE_PRODUCERS: 0, Request.CREATE_TOPICS: 6, Request.DESCRIBE_ACLS: 1},
    **{Request.DESCRIBE_LOG_DIRS: 1, Request.ALTER_CONFIGS: 1, Request.INCREMENTAL_ALTER_CONFIGS: 0},
    **{Request.OFFSET_COMMIT: 8, Request.OFFSET_FETCH: 7, Request.LIST_GROUPS: 4, Request.DESCRIBE_GROUPS: 4},
    **{Request.DESCRIBE_CONFIGS: 4, Request.CREATE_PARTITIONS: 3, Request.JOIN_GROUP: 6},
}
WARPSTREAM: dict[Request, int] = {
    key: version
    for key, version in KAFKA_3_9.items()
    if key
    not in (
        *(Request.OFFSET_FOR_LEADER_EPOCH, Request.DESCRIBE_PRODUCERS, Request.INCREMENTAL_ALTER_CONFIGS),
        *(Request.DESCRIBE_LOG_DIRS, Request.DESCRIBE_QUORUM, Request.DESCRIBE_CLIENT_QUOTAS),
    )
}


def announced(newest: dict[Request, int]) -> ApiVersions:
    return {key: (0, version) for key, version in newest.items()}


@pytest.mark.parametrize(
    ("newest", "kind"),
    [
        (KAFKA_2_1, "Kafka 2.1"),
        (KAFKA_2_4, "Kafka 2.4"),
        (KAFKA_2_8, "Kafka 2.8"),
        (KAFKA_3_9, "Kafka 3.9"),
        (KAFKA_4_0, "Kafka 4.0"),
        (KAFKA_4_1, "Kafka 4.1"),
        ({**KAFKA_4_1, Request.LIST_OFFSETS: 11}, "Kafka 4.2"),
        (KAFKA_4_3, "Kafka 4.3"),
        ({**KAFKA_4_3, Request.API_VERSIONS: 5}, "Kafka 4.4"),
        (KFAKE, ClusterKind.UNKNOWN),
        (EVENT_HUBS, ClusterKind.EVENT_HUBS),
        (REDPANDA_25_2, ClusterKind.REDPANDA),
        ({**REDPANDA_25_2, Request.FETCH: 13, Request.METADATA: 12}, ClusterKind.REDPANDA),
        (WARPSTREAM, ClusterKind.WARPSTREAM),
        ({Request.PRODUCE: 9, Request.FETCH: 13}, ClusterKind.UNKNOWN),
        ({Request.PRODUCE: 9}, ClusterKind.UNKNOWN),
        ({}, ClusterKind.UNKNOWN),
    ],
)
def test_kind_is_guessed_by_what_brokers_announce(newest: dict[Request, int], kind: str) -> None:
    assert guess_cluster_kind(announced(newest)) == kind


def test_kind_without_old_versions_is_msk_serverless() -> None:
    versions = {**announced(KAFKA_2_8), Request.PRODUCE: (7, 9), Request.FETCH: (10, 12)}
    assert guess_cluster_kind(versions) == ClusterKind.MSK_SERVERLESS
    assert guess_cluster_kind({**versions, Request.FETCH: (4, 12)}) == "Kafka 2.8"


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("pkc-1.eu-west-1.aws.confluent.cloud", ClusterKind.CONFLUENT_CLOUD),
        ("NS.servicebus.windows.net", ClusterKind.EVENT_HUBS),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com", ClusterKind.MSK_SERVERLESS),
        ("seed-1.abc.fmc.prd.cloud.redpanda.com.", ClusterKind.REDPANDA),
        ("b-1.demo.c2.kafka.eu-west-1.amazonaws.com", "Kafka 3.9"),
        ("confluent.cloud.example.org", "Kafka 3.9"),
    ],
)
def test_host_of_a_service_decides(host: str, kind: str) -> None:
    assert guess_cluster_kind(announced(KAFKA_3_9), "MkU3OEVBNTcwNTJENDM2Qg", [host]) == kind


@pytest.mark.parametrize(
    ("cluster_id", "kind"),
    [
        ("lkc-8x", ClusterKind.CONFLUENT_CLOUD),
        ("redpanda.9b1d", ClusterKind.REDPANDA),
        ("vci_1", ClusterKind.WARPSTREAM),
    ],
)
def test_form_of_the_cluster_id_decides(cluster_id: str, kind: str) -> None:
    assert guess_cluster_kind(announced(KAFKA_3_9), cluster_id, ["10.0.0.1"]) == kind
