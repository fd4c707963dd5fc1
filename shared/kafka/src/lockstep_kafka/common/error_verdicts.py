"""The meaning of Kafka's error codes to the caller, and the ACL operation that a denied request lacked.

A broker's code is looked up in Kafka's table, librdkafka's own (negative) ones in the sets below.
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
"""Codes of librdkafka for a cluster that does not answer.

Failed authentication counts here: the broker does not talk to us, and a rotated secret repairs it without a restart of
our process.
"""

RETRIABLE = {KafkaError._WAIT_COORD, KafkaError._WAIT_CACHE, KafkaError._IN_PROGRESS}


def error_verdict(code: int) -> ErrorMeaning:
    """Return the meaning of a Kafka error code, librdkafka's own (negative) ones included."""
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
"""The ACL operation that a request needs, by the request's operation. All other requests need Describe."""

KINDS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


def operation_words(operation: str) -> str:
    """Return the operation of a request as it reads before "on topic orders"."""
    return f"to {operation}".removesuffix(" of").removesuffix(" to").removesuffix(" for")


def missing_operation(code: int, operation: str, resource: str) -> tuple[str, str, str]:
    """Return what a denied request lacked: the resource's kind, its name, and the operation.

    The words are those of `lockstep_config.credentials.permissions`.

    Args:
        code: The error code of the denial.
        operation: The operation of the request, such as "create".
        resource: The resource of the request, such as "topic orders".
    """
    kind = KINDS.get(code, "")
    name = resource.removeprefix(f"{kind} ") if kind != "cluster" else ""
    return kind, name, OPERATIONS.get(operation, "Describe")
