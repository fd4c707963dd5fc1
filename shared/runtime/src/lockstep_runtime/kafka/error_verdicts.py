"""Which Kafka errors pass by themselves.

`KafkaError.retriable()` is False for every admin error (librdkafka sets the flag on transactional errors only), so
the codes are
classified here.
"""

from __future__ import annotations

from enum import Enum

from confluent_kafka import KafkaError

__all__ = ["ErrorVerdict", "classify"]


class ErrorVerdict(Enum):
    """What an error code means to whoever called."""

    UNREACHABLE = "unreachable"
    """No usable broker answered; nothing is known about the request."""
    RETRIABLE = "retriable"
    """The cluster is in between two states (elections, metadata on its way); the same request will pass soon."""
    DENIED = "denied"
    """A permission is missing."""
    FATAL = "fatal"
    """The same request will be refused again."""


UNREACHABLE = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._DESTROY,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.NETWORK_EXCEPTION,
    }
)
"""Failed authentication counts here: the broker does not talk to us, and a rotated secret cures it without a restart
of ours.
"""

RETRIABLE = frozenset(
    {
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError._WAIT_COORD,
        KafkaError._WAIT_CACHE,
        KafkaError._IN_PROGRESS,
    }
)

DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


def classify(code: int) -> ErrorVerdict:
    """The verdict on a Kafka error code, librdkafka's own (negative) ones included. Unknown codes are FATAL."""
    if code in UNREACHABLE:
        return ErrorVerdict.UNREACHABLE
    if code in RETRIABLE:
        return ErrorVerdict.RETRIABLE
    if code in DENIED:
        return ErrorVerdict.DENIED
    return ErrorVerdict.FATAL
