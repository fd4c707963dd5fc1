"""Which Kafka errors pass by themselves.

`KafkaError.retriable()` is False for every admin error (librdkafka sets the flag on transactional errors only), so the
codes are classified here: a broker's by Kafka's table, librdkafka's own (negative) ones by the sets below.
"""

from __future__ import annotations

from enum import Enum

from confluent_kafka import KafkaError

from lockstep_protocol.kafka_errors import ErrorMeaning, codes_that_mean

__all__ = ["ErrorVerdict", "error_verdict"]


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


UNREACHABLE = codes_that_mean(ErrorMeaning.UNREACHABLE) | {
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

RETRIABLE = codes_that_mean(ErrorMeaning.RETRIABLE) | {
    KafkaError._WAIT_COORD,
    KafkaError._WAIT_CACHE,
    KafkaError._IN_PROGRESS,
}

DENIED = codes_that_mean(ErrorMeaning.DENIED)


def error_verdict(code: int) -> ErrorVerdict:
    """The verdict on a Kafka error code, librdkafka's own (negative) ones included. Unknown codes are FATAL."""
    if code in UNREACHABLE:
        return ErrorVerdict.UNREACHABLE
    if code in RETRIABLE:
        return ErrorVerdict.RETRIABLE
    if code in DENIED:
        return ErrorVerdict.DENIED
    return ErrorVerdict.FATAL
