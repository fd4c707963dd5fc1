"""What Kafka's error codes mean to the caller: a broker's by Kafka's table, librdkafka's own (negative) ones by the
sets below. Also the operation of Kafka's ACLs that a denied request lacked.

`KafkaError.retriable()` is False for every admin error: librdkafka sets the flag on transactional errors only.
"""

from confluent_kafka import KafkaError

from lockstep_state.kafka.kafka_errors import ErrorMeaning, error_meaning

UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._RESOLVE,
    KafkaError._SSL,
    KafkaError._AUTHENTICATION,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._DESTROY,
}
"""Failed authentication counts here: the broker does not talk to us, and a rotated secret cures it without a restart
of ours.
"""

RETRIABLE = {KafkaError._WAIT_COORD, KafkaError._WAIT_CACHE, KafkaError._IN_PROGRESS}


def error_verdict(code: int) -> ErrorMeaning:
    """The meaning of a Kafka error code, librdkafka's own (negative) ones included."""
    if code in UNREACHABLE:
        return ErrorMeaning.UNREACHABLE
    return ErrorMeaning.RETRIABLE if code in RETRIABLE else error_meaning(code)


OPERATIONS = {
    "add partitions to": "Alter",
    "alter configs of": "AlterConfigs",
    "alter offsets of": "Read",
    "create": "Create",
    "create an ACL for": "Alter",
    "delete": "Delete",
    "delete an ACL of": "Alter",
    "describe configs of": "DescribeConfigs",
}
"""By what was asked; for everything else Describe does."""

KINDS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


def words(asked: str) -> str:
    """What was asked, as it reads before "on topic orders"."""
    return f"to {asked}".removesuffix(" of").removesuffix(" to").removesuffix(" for")


def missing_operation(code: int, asked: str, resource: str) -> tuple[str, str, str]:
    """Kind of the resource, its name, and the operation, in the words of `lockstep_config.credentials.permissions`.
    `asked` and `resource` are those of the request: "create", "topic orders".
    """
    kind = KINDS.get(code, "")
    name = resource.removeprefix(f"{kind} ") if kind != "cluster" else ""
    return kind, name, OPERATIONS.get(asked, "Describe")
