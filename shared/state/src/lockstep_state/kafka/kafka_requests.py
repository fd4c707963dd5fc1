"""The keys of Kafka's requests that Lockstep or its libraries send, or by which releases differ."""

from enum import IntEnum


class KafkaRequest(IntEnum):
    """Kafka's key of a request (`org.apache.kafka.common.protocol.ApiKeys`)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    DESCRIBE_CLIENT_QUOTAS = 48
    DESCRIBE_QUORUM = 55
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    DESCRIBE_TOPIC_PARTITIONS = 75

    @property
    def kafka_name(self) -> str:
        """Kafka's spelling, such as `DescribeAcls`."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def api_name(self) -> str:
        """The name in `kafka_apis.APIS`, such as `describe_acls`."""
        return self.name.lower()
