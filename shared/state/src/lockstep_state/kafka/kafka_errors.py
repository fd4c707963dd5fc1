"""The error codes of Kafka's protocol that Lockstep handles, with the meaning of each for the client.

Names and numbers are Kafka's (`org.apache.kafka.common.protocol.Errors`). The services and the data plane derive their
own classifications from this table (`error_verdicts.py`, `wire/error_codes.py`).
"""

from enum import Enum, IntEnum
from typing import Self

from lockstep_state.kafka.kafka_error_names import error_name


class ErrorMeaning(Enum):
    """The meaning of an error code for the request."""

    RETRIABLE = "retriable"
    """The cluster is between two states. The same request passes soon."""
    UNREACHABLE = "unreachable"
    """The broker does not serve the connection."""
    DENIED = "denied"
    """A permission is missing."""
    STALE = "stale"
    """The client's knowledge of the log, its leader or its producer is out of date. It has to read that again first."""
    TOO_LARGE = "too large"
    """A smaller batch may pass."""
    REFUSED = "refused"
    """The broker never accepts this data."""
    OTHER = "other"
    """The meaning depends on the request. A code that is not in the table counts as this, too."""


class KafkaErrorCode(IntEnum):
    """Kafka's name, its number, its meaning, and a sentence if a request about a partition can get it."""

    meaning: ErrorMeaning
    sentence: str

    def __new__(cls, number: int, meaning: ErrorMeaning, sentence: str = "") -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        code.sentence = sentence
        return code

    NONE = 0, ErrorMeaning.OTHER
    OFFSET_OUT_OF_RANGE = 1, ErrorMeaning.STALE, "the position is outside the log"
    CORRUPT_MESSAGE = 2, ErrorMeaning.REFUSED, "the batch is corrupt, or a key is missing for a compacted topic"
    UNKNOWN_TOPIC_OR_PARTITION = 3, ErrorMeaning.RETRIABLE, "the topic or partition is not there"
    LEADER_NOT_AVAILABLE = 5, ErrorMeaning.RETRIABLE, "no leader"
    NOT_LEADER_OR_FOLLOWER = 6, ErrorMeaning.RETRIABLE, "the leader moved"
    REQUEST_TIMED_OUT = 7, ErrorMeaning.RETRIABLE, "the replicas did not answer in time"
    BROKER_NOT_AVAILABLE = 8, ErrorMeaning.RETRIABLE
    REPLICA_NOT_AVAILABLE = 9, ErrorMeaning.RETRIABLE
    MESSAGE_TOO_LARGE = 10, ErrorMeaning.TOO_LARGE, "the batch is too large"
    NETWORK_EXCEPTION = 13, ErrorMeaning.UNREACHABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, ErrorMeaning.RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, ErrorMeaning.RETRIABLE
    NOT_COORDINATOR = 16, ErrorMeaning.RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, ErrorMeaning.REFUSED, "the topic takes no records of ours"
    RECORD_LIST_TOO_LARGE = 18, ErrorMeaning.TOO_LARGE, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, ErrorMeaning.RETRIABLE, "too few replicas in sync"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, ErrorMeaning.RETRIABLE, "too few replicas in sync after the append"
    REBALANCE_IN_PROGRESS = 27, ErrorMeaning.RETRIABLE
    TOPIC_AUTHORIZATION_FAILED = 29, ErrorMeaning.DENIED, "not permitted"
    GROUP_AUTHORIZATION_FAILED = 30, ErrorMeaning.DENIED
    CLUSTER_AUTHORIZATION_FAILED = 31, ErrorMeaning.DENIED, "not permitted: IDEMPOTENT_WRITE on the cluster is needed"
    INVALID_TIMESTAMP = 32, ErrorMeaning.REFUSED, "a timestamp the target refuses"
    UNSUPPORTED_SASL_MECHANISM = 33, ErrorMeaning.OTHER
    ILLEGAL_SASL_STATE = 34, ErrorMeaning.OTHER
    UNSUPPORTED_VERSION = 35, ErrorMeaning.OTHER, "the broker does not support the request"
    TOPIC_ALREADY_EXISTS = 36, ErrorMeaning.OTHER
    INVALID_REPLICATION_FACTOR = 38, ErrorMeaning.OTHER
    INVALID_CONFIG = 40, ErrorMeaning.OTHER
    NOT_CONTROLLER = 41, ErrorMeaning.RETRIABLE
    INVALID_REQUEST = 42, ErrorMeaning.OTHER
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        43,
        ErrorMeaning.REFUSED,
        "the codec or the message format is not taken",
    )
    POLICY_VIOLATION = 44, ErrorMeaning.OTHER
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, ErrorMeaning.STALE, "something else was appended meanwhile"
    DUPLICATE_SEQUENCE_NUMBER = 46, ErrorMeaning.STALE, "it was appended before"
    INVALID_PRODUCER_EPOCH = 47, ErrorMeaning.STALE, "a later epoch of ours has written"
    CONCURRENT_TRANSACTIONS = 51, ErrorMeaning.OTHER
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, ErrorMeaning.DENIED
    OPERATION_NOT_ATTEMPTED = 55, ErrorMeaning.OTHER
    KAFKA_STORAGE_ERROR = 56, ErrorMeaning.RETRIABLE, "the broker's disk fails"
    SASL_AUTHENTICATION_FAILED = 58, ErrorMeaning.UNREACHABLE
    UNKNOWN_PRODUCER_ID = 59, ErrorMeaning.STALE, "the broker has forgotten our producer"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, ErrorMeaning.DENIED
    FETCH_SESSION_ID_NOT_FOUND = 70, ErrorMeaning.STALE
    INVALID_FETCH_SESSION_EPOCH = 71, ErrorMeaning.STALE
    FENCED_LEADER_EPOCH = 74, ErrorMeaning.STALE, "the leader changed"
    UNKNOWN_LEADER_EPOCH = 75, ErrorMeaning.STALE, "the broker does not know the leader epoch yet"
    UNSUPPORTED_COMPRESSION_TYPE = 76, ErrorMeaning.REFUSED, "the broker does not know the codec"
    OFFSET_NOT_AVAILABLE = 78, ErrorMeaning.STALE, "the offset is not available yet"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, ErrorMeaning.RETRIABLE
    FENCED_INSTANCE_ID = 82, ErrorMeaning.OTHER
    INVALID_RECORD = 87, ErrorMeaning.REFUSED, "the target refuses records in it"
    THROTTLING_QUOTA_EXCEEDED = 89, ErrorMeaning.RETRIABLE
    PRODUCER_FENCED = 90, ErrorMeaning.STALE
    UNKNOWN_TOPIC_ID = 100, ErrorMeaning.RETRIABLE, "the topic was re-created or is gone"
    INCONSISTENT_TOPIC_ID = 103, ErrorMeaning.STALE, "the topic was re-created"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, ErrorMeaning.STALE


_CODES = {int(code): code for code in KafkaErrorCode}


def error_meaning(code: int) -> ErrorMeaning:
    """Return the meaning of a number that a broker sent."""
    entry = _CODES.get(code)
    return ErrorMeaning.OTHER if entry is None else entry.meaning


def error_sentence(code: int) -> str:
    """Return the sentence for a number that a broker sent, with Kafka's name."""
    entry = _CODES.get(code)
    return f"{entry.sentence} ({entry.name})" if entry is not None and entry.sentence else error_name(code)


def codes_that_mean(meaning: ErrorMeaning) -> frozenset[int]:
    """Return every code of the table with this meaning."""
    return frozenset(code for code, entry in _CODES.items() if entry.meaning is meaning)
