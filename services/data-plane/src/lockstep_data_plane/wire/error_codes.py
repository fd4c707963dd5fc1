"""What an error code of a broker means for a partition (`kafka-wire.md` §1; numbers are Kafka's)."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "DENIED",
    "DIVERGED",
    "FENCED_LEADER_EPOCH",
    "LED_ELSEWHERE",
    "NOT_ON_TOPIC",
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

FENCED_LEADER_EPOCH = 74

MEANING: dict[int, tuple[Retry, str]] = {
    DIVERGED: (
        Retry.PASSING,
        "the log does not hold what was fetched before the position (diverging epoch)",
    ),  # resuming looks how far it does, and names the gap
    1: (
        Retry.PASSING,
        "the position is outside the log (OFFSET_OUT_OF_RANGE)",
    ),  # resuming looks which side, and names the gap
    2: (Retry.REFUSED, "the batch is corrupt, or a key is missing for a compacted topic (CORRUPT_MESSAGE)"),
    3: (Retry.PASSING, "the topic or partition is not there (UNKNOWN_TOPIC_OR_PARTITION)"),
    5: (Retry.PASSING, "no leader (LEADER_NOT_AVAILABLE)"),
    6: (Retry.PASSING, "the leader moved (NOT_LEADER_OR_FOLLOWER)"),
    7: (Retry.PASSING, "the replicas did not answer in time (REQUEST_TIMED_OUT)"),
    10: (Retry.TOO_LARGE, "the batch is too large (MESSAGE_TOO_LARGE)"),
    17: (Retry.REFUSED, "the topic takes no records of ours (INVALID_TOPIC_EXCEPTION)"),
    18: (Retry.TOO_LARGE, "the batch is larger than a segment (RECORD_LIST_TOO_LARGE)"),
    19: (Retry.PASSING, "too few replicas in sync (NOT_ENOUGH_REPLICAS)"),
    20: (Retry.PASSING, "too few replicas in sync after the append (NOT_ENOUGH_REPLICAS_AFTER_APPEND)"),
    29: (Retry.PASSING, "not permitted (TOPIC_AUTHORIZATION_FAILED)"),
    31: (Retry.PASSING, "not permitted: IDEMPOTENT_WRITE on the cluster is needed (CLUSTER_AUTHORIZATION_FAILED)"),
    32: (Retry.REFUSED, "a timestamp the target refuses (INVALID_TIMESTAMP)"),
    43: (Retry.REFUSED, "the target's message format is too old (UNSUPPORTED_FOR_MESSAGE_FORMAT)"),
    45: (Retry.PASSING, "something else was appended meanwhile (OUT_OF_ORDER_SEQUENCE)"),
    46: (Retry.PASSING, "it was appended before (DUPLICATE_SEQUENCE)"),
    47: (Retry.PASSING, "a later epoch of ours has written (INVALID_PRODUCER_EPOCH)"),
    56: (Retry.PASSING, "the broker's disk fails (KAFKA_STORAGE_ERROR)"),
    59: (Retry.PASSING, "the broker has forgotten our producer (UNKNOWN_PRODUCER_ID)"),
    FENCED_LEADER_EPOCH: (Retry.PASSING, "the leader changed (FENCED_LEADER_EPOCH)"),
    75: (Retry.PASSING, "the broker does not know the leader epoch yet (UNKNOWN_LEADER_EPOCH)"),
    76: (Retry.REFUSED, "the broker does not know the codec (UNSUPPORTED_COMPRESSION_TYPE)"),
    78: (Retry.PASSING, "the offset is not available yet (OFFSET_NOT_AVAILABLE)"),
    87: (Retry.REFUSED, "the target refuses records in it (INVALID_RECORD)"),
    100: (Retry.PASSING, "the topic was re-created or is gone (UNKNOWN_TOPIC_ID)"),
    103: (Retry.PASSING, "the topic was re-created (INCONSISTENT_TOPIC_ID)"),
}


NO_TOPIC = frozenset({3, 100})
"""Of a fetch: UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID."""

NOT_ON_TOPIC = 29
DENIED = frozenset({NOT_ON_TOPIC, 30, 31, 53})
"""A permission is missing: on the topic, the group, the cluster, the transactional id."""

LED_ELSEWHERE = frozenset({3, 5, 6, FENCED_LEADER_EPOCH, 75})
"""Who leads the partition is not who we took for it, or does not know it yet."""


def retry_for(code: int) -> tuple[Retry, str]:
    """What to make of an error code, and a sentence for people. Codes not listed pass: asking again is always safe
    here, for an append is a compare-and-swap and a fetch changes nothing."""
    return MEANING.get(code, (Retry.PASSING, f"error {code}"))
