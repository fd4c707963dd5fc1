"""What an error code of a broker means for a partition (`kafka-wire.md` §1), derived from Kafka's table; which
exceptions pass while a slot tries again.
"""

from lockstep_kafka.messages.fetch_codec import DIVERGED
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_errors import ErrorMeaning, codes_that_mean, error_meaning, error_sentence
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

_DIVERGED = "the log does not hold what was fetched before the position (diverging epoch)"

NO_TOPIC = frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID})
"""Of a fetch."""

DENIED = codes_that_mean(ErrorMeaning.DENIED)
"""A permission is missing: on the topic, the group, the cluster, the transactional id."""

BACK_PRESSURE = frozenset({Code.POLICY_VIOLATION, Code.THROTTLING_QUOTA_EXCEEDED})
"""Of a produce: services answer so that we are over a limit of theirs, also without a time to stay away."""

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


def explain(code: int) -> tuple[ErrorMeaning, str]:
    """What an error code means, and a sentence for people. All but REFUSED and TOO_LARGE pass: asking again is always
    safe here, for an append is a compare-and-swap and a fetch changes nothing.
    """
    return error_meaning(code), _DIVERGED if code == DIVERGED else error_sentence(code)


RETRIABLE_ERRORS = (RetriableError, TimeoutError)
"""Lockstep's own category, and what asyncio raises when a broker does not answer."""
