"""The meaning of a broker's error code for a partition (`kafka-wire.md` §1), derived from Kafka's table.

It also has the errors after which a slot tries again.
"""

from lockstep_kafka.messages.fetch_codec import DIVERGED
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_errors import ErrorMeaning, codes_that_mean, error_meaning, error_sentence
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

_DIVERGED = "the log does not hold what was fetched before the position (diverging epoch)"

NO_TOPIC = frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID})
"""Codes of a fetch from a topic that does not exist."""

DENIED = codes_that_mean(ErrorMeaning.DENIED)
"""Codes for a missing permission: on the topic, the group, the cluster, or the transactional id."""

BACK_PRESSURE = frozenset({Code.POLICY_VIOLATION, Code.THROTTLING_QUOTA_EXCEEDED})
"""Codes of a produce with which services say that we are over a limit. The answer may have no throttle time."""

NOT_CARRIED_OUT = frozenset({Code.UNSUPPORTED_VERSION, Code.POLICY_VIOLATION})
"""Errors by which a broker says that no client gets the answer of a request that changes nothing."""

LED_ELSEWHERE = frozenset(
    {
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
    }
)
"""Codes of a broker that is not the partition's leader, or does not know it yet."""


def explain(code: int) -> tuple[ErrorMeaning, str]:
    """Return the meaning of an error code, and a sentence for people.

    All but REFUSED and TOO_LARGE pass. Trying again is always safe here: an append is a compare-and-swap, and a fetch
    changes nothing.
    """
    return error_meaning(code), _DIVERGED if code == DIVERGED else error_sentence(code)


RETRIABLE_ERRORS = (RetriableError, TimeoutError)
"""Lockstep's own category, and asyncio's error for a broker that does not answer."""
