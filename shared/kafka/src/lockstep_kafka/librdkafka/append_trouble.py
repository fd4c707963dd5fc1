"""The error for a record of a control topic that was not appended (no I/O).

It follows from librdkafka's errors for the record and for its producer.
"""

from confluent_kafka import KafkaError

from lockstep_config.credentials.permissions import Access
from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import ClusterError, NotAppended, NotPermitted
from lockstep_kafka.librdkafka.producer_id_support import NO_IDS, WITHOUT_IDS
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode
from lockstep_state.kafka.librdkafka_errors import error_text

OF_ITS_TIME = frozenset({KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD})
"""Codes for a record whose timestamp is refused.

A broker returns the first code for some records of a request, and the second for others.
"""

CLOCK_OFF = (
    "the broker does not accept a record (INVALID_TIMESTAMP or INVALID_RECORD). Most likely this machine's clock "
    "is further from the broker's than the topic allows (message.timestamp.after.max.ms): set the clock"
)

OF_THE_END = frozenset({KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Codes of librdkafka for records whose producer has ended. The producer itself has the cause."""

ENDED = "its producer has ended, and librdkafka does not say why"


def append_trouble(
    alias: str, topic: str, error: KafkaError, end_cause: KafkaError | None, access: Access
) -> ClusterError:
    """Return NotPermitted or NotAppended for a record.

    Args:
        alias: The alias of the cluster.
        topic: The topic of the record.
        error: librdkafka's error for the record.
        end_cause: The error that ended the producer. None means that it has not ended, or that the error is not known.
        access: The rights that we need on the cluster.
    """
    if error.code() in OF_THE_END and end_cause is not None:
        error = end_cause
        if error.code() in WITHOUT_IDS:
            return NotAppended(alias, topic, NO_IDS)
    if error.code() == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED:  # InitProducerId names no topic
        remedy = access.remedy("cluster", "", "IdempotentWrite")
        return NotPermitted(alias, "IDEMPOTENT_WRITE", "the cluster (InitProducerId)", remedy)
    if error_verdict(error.code()) is ErrorMeaning.DENIED:
        return NotPermitted(alias, "WRITE", f"topic {topic}", access.remedy("topic", topic, "Write"))
    if error.code() in OF_ITS_TIME:
        return NotAppended(alias, topic, CLOCK_OFF)
    return NotAppended(alias, topic, ENDED if error.code() == KafkaError._FATAL else error_text(error))
