"""What Kafka's error codes mean to the caller: a broker's by Kafka's table, librdkafka's own (negative) ones by the
sets below.

`KafkaError.retriable()` is False for every admin error: librdkafka sets the flag on transactional errors only.
"""

from __future__ import annotations

from confluent_kafka import KafkaError

from lockstep_protocol.kafka_errors import ErrorMeaning, error_meaning

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
