"""What an error code of a broker means for a partition (`kafka-wire.md` §1), derived from Kafka's table."""

from __future__ import annotations

from enum import Enum

from lockstep_protocol.kafka_errors import ErrorMeaning, codes_that_mean, meaning_of
from lockstep_protocol.kafka_errors import KafkaErrorCode as Code

__all__ = [
    "DENIED",
    "DIVERGED",
    "LED_ELSEWHERE",
    "NO_TOPIC",
    "Retry",
    "retry_for",
]


class Retry(Enum):
    """PASSING: look again, the log will tell. REFUSED: this data, or this position, will never do. TOO_LARGE: smaller
    may do."""

    PASSING = "passing"
    REFUSED = "refused"
    TOO_LARGE = "too large"


DIVERGED = -2
"""Not a code of Kafka's: an answer without an error that names a diverging epoch."""

SENTENCES: dict[int, str] = {
    # Of the first two: resuming looks how far the log goes, and names the gap.
    DIVERGED: "the log does not hold what was fetched before the position (diverging epoch)",
    Code.OFFSET_OUT_OF_RANGE: "the position is outside the log (OFFSET_OUT_OF_RANGE)",
    Code.CORRUPT_MESSAGE: "the batch is corrupt, or a key is missing for a compacted topic (CORRUPT_MESSAGE)",
    Code.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition is not there (UNKNOWN_TOPIC_OR_PARTITION)",
    Code.LEADER_NOT_AVAILABLE: "no leader (LEADER_NOT_AVAILABLE)",
    Code.NOT_LEADER_OR_FOLLOWER: "the leader moved (NOT_LEADER_OR_FOLLOWER)",
    Code.REQUEST_TIMED_OUT: "the replicas did not answer in time (REQUEST_TIMED_OUT)",
    Code.MESSAGE_TOO_LARGE: "the batch is too large (MESSAGE_TOO_LARGE)",
    Code.INVALID_TOPIC_EXCEPTION: "the topic takes no records of ours (INVALID_TOPIC_EXCEPTION)",
    Code.RECORD_LIST_TOO_LARGE: "the batch is larger than a segment (RECORD_LIST_TOO_LARGE)",
    Code.NOT_ENOUGH_REPLICAS: "too few replicas in sync (NOT_ENOUGH_REPLICAS)",
    Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "too few replicas in sync after the append "
    "(NOT_ENOUGH_REPLICAS_AFTER_APPEND)",
    Code.TOPIC_AUTHORIZATION_FAILED: "not permitted (TOPIC_AUTHORIZATION_FAILED)",
    Code.CLUSTER_AUTHORIZATION_FAILED: "not permitted: IDEMPOTENT_WRITE on the cluster is needed "
    "(CLUSTER_AUTHORIZATION_FAILED)",
    Code.INVALID_TIMESTAMP: "a timestamp the target refuses (INVALID_TIMESTAMP)",
    Code.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the target's message format is too old (UNSUPPORTED_FOR_MESSAGE_FORMAT)",
    Code.OUT_OF_ORDER_SEQUENCE_NUMBER: "something else was appended meanwhile (OUT_OF_ORDER_SEQUENCE)",
    Code.DUPLICATE_SEQUENCE_NUMBER: "it was appended before (DUPLICATE_SEQUENCE)",
    Code.INVALID_PRODUCER_EPOCH: "a later epoch of ours has written (INVALID_PRODUCER_EPOCH)",
    Code.KAFKA_STORAGE_ERROR: "the broker's disk fails (KAFKA_STORAGE_ERROR)",
    Code.UNKNOWN_PRODUCER_ID: "the broker has forgotten our producer (UNKNOWN_PRODUCER_ID)",
    Code.FENCED_LEADER_EPOCH: "the leader changed (FENCED_LEADER_EPOCH)",
    Code.UNKNOWN_LEADER_EPOCH: "the broker does not know the leader epoch yet (UNKNOWN_LEADER_EPOCH)",
    Code.UNSUPPORTED_COMPRESSION_TYPE: "the broker does not know the codec (UNSUPPORTED_COMPRESSION_TYPE)",
    Code.OFFSET_NOT_AVAILABLE: "the offset is not available yet (OFFSET_NOT_AVAILABLE)",
    Code.INVALID_RECORD: "the target refuses records in it (INVALID_RECORD)",
    Code.UNKNOWN_TOPIC_ID: "the topic was re-created or is gone (UNKNOWN_TOPIC_ID)",
    Code.INCONSISTENT_TOPIC_ID: "the topic was re-created (INCONSISTENT_TOPIC_ID)",
}
"""For people: what a fetch or an append of a partition ran into."""

RETRIES = {ErrorMeaning.REFUSED: Retry.REFUSED, ErrorMeaning.TOO_LARGE: Retry.TOO_LARGE}

NO_TOPIC = frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID})
"""Of a fetch."""

DENIED = codes_that_mean(ErrorMeaning.DENIED)
"""A permission is missing: on the topic, the group, the cluster, the transactional id."""

LED_ELSEWHERE = frozenset(
    {
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
    }
)
"""The broker is not the leader of the partition, or does not know it yet."""


def retry_for(code: int) -> tuple[Retry, str]:
    """What to make of an error code, and a sentence for people. Codes not listed pass: asking again is always safe
    here, for an append is a compare-and-swap and a fetch changes nothing."""
    return RETRIES.get(meaning_of(code), Retry.PASSING), SENTENCES.get(code, f"error {code}")
