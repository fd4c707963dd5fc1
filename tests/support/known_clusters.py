"""Clusters that are no plain Apache Kafka of today, each as a profile with the documents that it was read from.

A profile is not the service. What no document says and is assumed is listed in `guesses`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kio.schema.errors import ErrorCode

from tests.support.cluster_profile import ClusterProfile, ConfigRules, ReplicationRule

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
OF_ACLS = frozenset({"describe_acls", "create_acls", "delete_acls"})
OF_NEW_GROUPS = frozenset({"consumer_group_heartbeat", "consumer_group_describe"})
OF_QUOTAS = frozenset({"describe_client_quotas", "alter_client_quotas"})
OF_TRANSACTIONS = frozenset(
    {"add_partitions_to_txn", "add_offsets_to_txn", "end_txn", "txn_offset_commit", "write_txn_markers"}
)


@dataclass(frozen=True, slots=True)
class Document:
    """Where something was read. `read`: the year and month of the document, or of the copy that was read."""

    address: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """A service or a version, as the page of clusters names it."""

    title: str
    profile: ClusterProfile
    documents: tuple[Document, ...] = ()
    guesses: tuple[str, ...] = ()


CONFLUENT_CLOUD = KnownCluster(
    title="Confluent Cloud",
    profile=ClusterProfile(
        configs=ConfigRules(
            settable=frozenset(
                {
                    "cleanup.policy",
                    "delete.retention.ms",
                    "max.compaction.lag.ms",
                    "max.message.bytes",
                    "message.timestamp.after.max.ms",
                    "message.timestamp.before.max.ms",
                    "message.timestamp.difference.max.ms",
                    "message.timestamp.type",
                    "min.compaction.lag.ms",
                    "min.insync.replicas",
                    "retention.bytes",
                    "retention.ms",
                    "segment.bytes",
                    "segment.ms",
                }
            ),
            smallest={"segment.bytes": 52_428_800},
            largest={"delete.retention.ms": 60_566_400_000},
        ),
        replication=ReplicationRule(factor=3),
        hides_authorized_operations=True,
    ),
    documents=(
        Document("https://docs.confluent.io/cloud/current/topics/manage.html", "2026-11"),
        Document("https://github.com/thingsboard/thingsboard/issues/8861", "2026-11"),
        Document("https://github.com/HermesGermany/galapagos/issues/289", "2026-11"),
    ),
    guesses=(
        "configs that cannot be edited cannot be set at creation either",
        "a replication factor of 2 is refused like one of 1",
        "the cluster does not say what a service account may do",
    ),
)

MSK_SERVERLESS = KnownCluster(
    title="Amazon MSK Serverless",
    profile=ClusterProfile(
        versions={
            "produce": (7, 9),
            "fetch": (10, 12),
            "list_offsets": (5, 6),
            "metadata": (7, 11),
            "find_coordinator": (2, 3),
            "create_topics": (3, 7),
            "init_producer_id": (1, 4),
            "offset_for_leader_epoch": (2, 4),
            "add_partitions_to_txn": (1, 3),
        },
        absent=OF_ACLS | OF_NEW_GROUPS | {"delete_records", "describe_log_dirs", "alter_partition_reassignments"},
        configs=ConfigRules(
            settable=frozenset(
                {
                    "cleanup.policy",
                    "compression.type",
                    "max.message.bytes",
                    "message.timestamp.difference.max.ms",
                    "message.timestamp.type",
                    "retention.bytes",
                    "retention.ms",
                }
            ),
            largest={"max.message.bytes": 8 * 1024 * 1024},
            only_at_creation=frozenset({"cleanup.policy"}),
        ),
    ),
    documents=(
        Document("https://docs.aws.amazon.com/msk/latest/developerguide/serverless-config.html", "2026-11"),
        Document("https://github.com/tchiotludo/akhq/issues/1113", "2022-07"),
        Document("https://github.com/segmentio/topicctl/issues/69", "2022-06"),
        Document("https://github.com/provectus/kafka-ui/issues/3331", "2023-02"),
    ),
    guesses=(
        "a config that cannot be set is answered by POLICY_VIOLATION",
        "DescribeProducers is known",
        "where access is by IAM only, requests for ACLs are not known",
    ),
)

REDPANDA_25_2 = KnownCluster(
    title="Redpanda up to 25.2",
    profile=ClusterProfile(
        versions={
            "produce": (0, 7),
            "fetch": (4, 11),
            "metadata": (0, 8),
            "list_offsets": (0, 4),
            "find_coordinator": (0, 3),
            "init_producer_id": (0, 3),
            "offset_for_leader_epoch": (0, 4),
            "add_partitions_to_txn": (0, 3),
            "end_txn": (0, 3),
            "create_topics": (0, 6),
            "join_group": (0, 6),
        },
        absent=OF_NEW_GROUPS | {"describe_cluster", "describe_quorum"},
    ),
    documents=(
        Document("https://github.com/redpanda-data/redpanda/tree/1c6cff34/src/v/kafka/server/handlers", "2024-12"),
        Document("https://github.com/redpanda-data/redpanda/issues/17622", "2026-11"),
    ),
    guesses=("DescribeQuorum and the groups of KIP-848 are not known",),
)

REDPANDA_25_3 = KnownCluster(
    title="Redpanda 25.3 and newer",
    profile=ClusterProfile(
        versions={**REDPANDA_25_2.profile.versions, "metadata": (0, 12), "fetch": (4, 13), "create_topics": (0, 7)},
        absent=OF_NEW_GROUPS | {"describe_quorum"},
    ),
    documents=(
        Document("https://github.com/redpanda-data/redpanda/pull/26968", "2025-09"),
        Document("https://github.com/redpanda-data/redpanda/pull/31246", "2026-07"),
    ),
    guesses=("DescribeQuorum and the groups of KIP-848 are not known",),
)

WARPSTREAM = KnownCluster(
    title="WarpStream",
    profile=ClusterProfile(
        absent=OF_QUOTAS
        | {
            "describe_producers",
            "offset_for_leader_epoch",
            "incremental_alter_configs",
            "describe_quorum",
            "describe_log_dirs",
        }
    ),
    documents=(
        Document("https://docs.warpstream.com/warpstream/kafka/reference/protocol-and-feature-support", "2026-11"),
    ),
    guesses=("the versions of requests, which are not published, are those of Kafka",),
)

URSA = KnownCluster(
    title="StreamNative Ursa",
    profile=ClusterProfile(
        absent=OF_TRANSACTIONS
        | {
            "describe_producers",
            "offset_for_leader_epoch",
            "incremental_alter_configs",
            "describe_transactions",
            "list_transactions",
        }
    ),
    documents=(Document("https://docs.streamnative.io", "2026-11"),),
    guesses=("the versions of requests, which are not published, are those of Kafka",),
)

EVENT_HUBS = KnownCluster(
    title="Azure Event Hubs, Standard tier",
    profile=ClusterProfile(
        names_all=True,
        versions={
            "produce": (0, 7),
            "fetch": (4, 6),
            "list_offsets": (0, 8),
            "metadata": (0, 5),
            "offset_commit": (0, 8),
            "offset_fetch": (0, 8),
            "find_coordinator": (0, 4),
            "join_group": (0, 9),
            "heartbeat": (0, 4),
            "leave_group": (0, 5),
            "sync_group": (0, 5),
            "describe_groups": (0, 1),
            "list_groups": (0, 2),
            "delete_groups": (0, 0),
            "sasl_handshake": (0, 1),
            "sasl_authenticate": (0, 1),
            "api_versions": (0, 3),
            "create_topics": (0, 4),
            "delete_topics": (0, 3),
            "create_partitions": (0, 1),
            "describe_configs": (0, 2),
            "init_producer_id": (0, 1),
            "offset_for_leader_epoch": (0, 0),
        },
        resets_newer_api_versions=True,
        largest_request=1_046_528,
        idle_s=240.0,
        configs=ConfigRules(settable=frozenset({"cleanup.policy", "retention.ms"})),
        refused_codecs=dict.fromkeys((GZIP, SNAPPY, LZ4, ZSTD), ErrorCode.unsupported_for_message_format),
        hides_authorized_operations=True,
    ),
    documents=(
        Document("https://github.com/oliveigah/klife/issues/13", "2024-11"),
        Document("https://github.com/IBM/sarama/issues/2470", "2023-08"),
        Document("https://github.com/Azure/azure-event-hubs-for-kafka/issues/209", "2022-09"),
        Document("https://github.com/twmb/franz-go/pull/1022", "2026-11"),
        Document("https://learn.microsoft.com/azure/event-hubs/azure-event-hubs-apache-kafka-overview", "2026-02"),
        Document("https://learn.microsoft.com/azure/event-hubs/apache-kafka-troubleshooting-guide", "2026-11"),
    ),
    guesses=(
        "a new topic may set cleanup.policy and retention.ms, and another config is answered by POLICY_VIOLATION",
        "versions of Heartbeat, LeaveGroup, SyncGroup, ListGroups, SaslAuthenticate and DeleteTopics",
    ),
)

NO_PRODUCER_IDS = KnownCluster(
    title="A target that stores batches without producer id and sequence",
    profile=ClusterProfile(forgets_producers=True),
)

NO_PRODUCER_ID_GIVEN = KnownCluster(
    title="A target that gives no producer ids",
    profile=ClusterProfile(absent=OF_TRANSACTIONS | {"init_producer_id"}),
    documents=(
        Document("https://github.com/apache/iggy/issues/3545", "2026-09"),
        Document("https://github.com/KafScale/platform/issues/28", "2025-12"),
    ),
    guesses=("all else is as in Kafka, and topics may be compacted",),
)

LYING_EPOCHS = KnownCluster(
    title="Alibaba ApsaraMQ for Kafka",
    profile=ClusterProfile(says_epochs_end_at_zero=True),
    documents=(
        Document("https://github.com/twmb/franz-go/issues/699", "2026-11"),
        Document("https://github.com/twmb/kcl/issues/41", "2026-11"),
    ),
    guesses=("all else is as in Kafka",),
)

KAFKA_2_1 = KnownCluster(
    title="Apache Kafka 2.1",
    profile=ClusterProfile(
        names_all=True,
        versions={
            "produce": (0, 7),
            "fetch": (0, 10),
            "list_offsets": (0, 4),
            "metadata": (0, 7),
            "offset_commit": (0, 6),
            "offset_fetch": (0, 5),
            "find_coordinator": (0, 2),
            "join_group": (0, 3),
            "heartbeat": (0, 2),
            "leave_group": (0, 2),
            "sync_group": (0, 2),
            "describe_groups": (0, 2),
            "list_groups": (0, 2),
            "sasl_handshake": (0, 1),
            "api_versions": (0, 2),
            "create_topics": (0, 3),
            "delete_topics": (0, 3),
            "delete_records": (0, 1),
            "init_producer_id": (0, 1),
            "offset_for_leader_epoch": (0, 2),
            "add_partitions_to_txn": (0, 1),
            "add_offsets_to_txn": (0, 1),
            "end_txn": (0, 1),
            "write_txn_markers": (0, 0),
            "txn_offset_commit": (0, 2),
            "describe_acls": (0, 1),
            "create_acls": (0, 1),
            "delete_acls": (0, 1),
            "describe_configs": (0, 2),
            "alter_configs": (0, 1),
            "alter_replica_log_dirs": (0, 1),
            "describe_log_dirs": (0, 1),
            "sasl_authenticate": (0, 0),
            "create_partitions": (0, 1),
            "delete_groups": (0, 1),
        },
    ),
    documents=(
        Document(
            "https://github.com/apache/kafka/tree/2.1/clients/src/main/java/org/apache/kafka/common/requests", "2018-11"
        ),
        Document("https://cwiki.apache.org/confluence/display/KAFKA/KIP-896", "2024-12"),
    ),
)

KNOWN_CLUSTERS: Mapping[str, KnownCluster] = MappingProxyType(
    {
        "confluent-cloud": CONFLUENT_CLOUD,
        "msk-serverless": MSK_SERVERLESS,
        "redpanda-25.2": REDPANDA_25_2,
        "redpanda-25.3": REDPANDA_25_3,
        "warpstream": WARPSTREAM,
        "ursa": URSA,
        "event-hubs": EVENT_HUBS,
        "no-producer-ids": NO_PRODUCER_IDS,
        "no-producer-id-given": NO_PRODUCER_ID_GIVEN,
        "lying-epochs": LYING_EPOCHS,
        "kafka-2.1": KAFKA_2_1,
    }
)
