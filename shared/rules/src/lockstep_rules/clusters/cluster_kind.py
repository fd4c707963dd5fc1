"""A guess of what a cluster is: Apache Kafka of some version, or a service or broker that speaks its protocol. Pure.

A guess is for people. No decision uses it: what a cluster can do is decided by the requests that it knows.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from lockstep_state.kafka.kafka_requests import KafkaRequest as Request

ApiVersions = Mapping[int, tuple[int, int]]
"""(oldest, newest) version of each request that brokers announce, by its key."""


class ClusterKind(StrEnum):
    """The known kinds of clusters. Apache Kafka is shown with its version: `Kafka 3.9`."""

    KAFKA = "Kafka"
    REDPANDA = "Redpanda"
    CONFLUENT_CLOUD = "Confluent Cloud"
    MSK_SERVERLESS = "MSK Serverless"
    EVENT_HUBS = "Azure Event Hubs"
    WARPSTREAM = "WarpStream"
    UNKNOWN = "unknown"


_HOSTS: tuple[tuple[ClusterKind, tuple[str, ...]], ...] = (
    (
        ClusterKind.EVENT_HUBS,
        (".servicebus.windows.net", ".servicebus.usgovcloudapi.net", ".servicebus.chinacloudapi.cn"),
    ),
    (ClusterKind.CONFLUENT_CLOUD, (".confluent.cloud", ".cpdev.cloud")),
    (ClusterKind.REDPANDA, (".cloud.redpanda.com", ".fmc.cloud.redpanda.com")),
    (ClusterKind.WARPSTREAM, (".warpstream.com",)),
)
"""Suffixes of the names of their brokers."""

_CLUSTER_IDS = (
    ("lkc-", ClusterKind.CONFLUENT_CLOUD),
    ("redpanda.", ClusterKind.REDPANDA),
    ("vci_", ClusterKind.WARPSTREAM),
)
"""Prefixes of their cluster ids."""

_MSK_SERVERLESS, _AMAZON = ".kafka-serverless.", ".amazonaws.com"

_RELEASES: tuple[tuple[str, Request, int], ...] = (
    ("4.4", Request.API_VERSIONS, 5),
    ("4.3", Request.DESCRIBE_LOG_DIRS, 5),
    ("4.2", Request.LIST_OFFSETS, 11),
    ("4.1", Request.FETCH, 18),
    ("4.0", Request.PRODUCE, 12),
    ("3.9", Request.FETCH, 17),
    ("3.8", Request.DESCRIBE_TOPIC_PARTITIONS, 0),
    ("3.7", Request.PRODUCE, 10),
    ("3.6", Request.ADD_PARTITIONS_TO_TXN, 4),
    ("3.5", Request.FETCH, 14),
    ("3.3", Request.DESCRIBE_QUORUM, 1),
    ("3.1", Request.FETCH, 13),
    ("3.0", Request.DESCRIBE_TRANSACTIONS, 0),
    ("2.8", Request.DESCRIBE_PRODUCERS, 0),
    ("2.7", Request.FETCH, 12),
    ("2.6", Request.DESCRIBE_CLIENT_QUOTAS, 0),
    ("2.5", Request.INIT_PRODUCER_ID, 3),
    ("2.4", Request.PRODUCE, 8),
    ("2.3", Request.INCREMENTAL_ALTER_CONFIGS, 0),
    ("2.2", Request.ELECT_LEADERS, 0),
    ("2.1", Request.FETCH, 10),
)
"""Releases of Apache Kafka, each with a version of a request that is new in it, the newest first. A cluster of 3.3 or
3.4 with ZooKeeper looks like 3.1."""

_OF_EACH_KAFKA = (
    Request.OFFSET_FOR_LEADER_EPOCH,
    Request.DESCRIBE_ACLS,
    Request.DESCRIBE_LOG_DIRS,
    Request.ALTER_CONFIGS,
)
"""Requests that Apache Kafka has had since 1.0."""

_PRODUCE_OF_4_0 = 12
"""From this version on no Apache Kafka has ZooKeeper, so its brokers know DescribeQuorum."""


def guess_cluster_kind(versions: ApiVersions, cluster_id: str = "", hosts: Collection[str] = ()) -> str:
    """Return the kind as a word for people: a `ClusterKind`, for Apache Kafka with its version.

    Args:
        versions: Versions that the brokers announce; empty: unknown.
        cluster_id: The id that the cluster reports.
        hosts: Names of its brokers and of the bootstrap servers.
    """
    names = [host.lower().rstrip(".") for host in hosts]
    for kind, ends in _HOSTS:
        if any(name.endswith(ends) for name in names):
            return kind.value
    if any(_MSK_SERVERLESS in name and name.endswith(_AMAZON) for name in names):
        return ClusterKind.MSK_SERVERLESS.value
    for begin, kind in _CLUSTER_IDS:
        if cluster_id.startswith(begin):
            return kind.value
    return _guess_by_versions(versions)


def _guess_by_versions(versions: ApiVersions) -> str:
    def newest(request: Request) -> int:
        return versions.get(request, (0, -1))[1]

    if newest(Request.PRODUCE) < 0 or newest(Request.FETCH) < 0:
        return ClusterKind.UNKNOWN.value
    if versions[Request.PRODUCE] == (7, 9) and versions[Request.FETCH] == (10, 12):
        return ClusterKind.MSK_SERVERLESS.value  # a broker of Kafka knows older ones as well
    if newest(Request.FETCH) == 6 and newest(Request.PRODUCE) == 7:
        return ClusterKind.EVENT_HUBS.value
    if newest(Request.PRODUCE) == 7 and newest(Request.DESCRIBE_PRODUCERS) >= 0:
        return ClusterKind.REDPANDA.value  # Kafka has had Produce 9 before DescribeProducers
    lacks_both = max(newest(Request.OFFSET_FOR_LEADER_EPOCH), newest(Request.DESCRIBE_PRODUCERS)) < 0
    if lacks_both and newest(Request.END_TXN) >= 0 and newest(Request.INCREMENTAL_ALTER_CONFIGS) < 0:
        return ClusterKind.WARPSTREAM.value
    if any(newest(request) < 0 for request in _OF_EACH_KAFKA):
        return ClusterKind.UNKNOWN.value
    if newest(Request.PRODUCE) >= _PRODUCE_OF_4_0 and newest(Request.DESCRIBE_QUORUM) < 0:
        return ClusterKind.UNKNOWN.value
    release = next((name for name, request, version in _RELEASES if newest(request) >= version), "")
    return f"{ClusterKind.KAFKA.value} {release}" if release else ClusterKind.UNKNOWN.value
