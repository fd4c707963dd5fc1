"""Which errors pass, and how long we wait."""

import pytest
from confluent_kafka import KafkaError

from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_state.kafka.kafka_errors import ErrorMeaning


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (KafkaError._TRANSPORT, ErrorMeaning.UNREACHABLE),
        (KafkaError._TIMED_OUT, ErrorMeaning.UNREACHABLE),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ErrorMeaning.UNREACHABLE),
        (KafkaError.NOT_CONTROLLER, ErrorMeaning.RETRIABLE),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ErrorMeaning.RETRIABLE),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ErrorMeaning.DENIED),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, ErrorMeaning.DENIED),
        (KafkaError.INVALID_CONFIG, ErrorMeaning.OTHER),
        (KafkaError.TOPIC_ALREADY_EXISTS, ErrorMeaning.OTHER),
        (31_999, ErrorMeaning.OTHER),
    ],
)
def test_errors_are_classified_by_their_code(code: int, verdict: ErrorMeaning) -> None:
    assert error_verdict(code) is verdict


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
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.NETWORK_EXCEPTION,
}
RETRIABLE = {
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
DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def test_each_code_has_one_verdict() -> None:
    verdicts = {code: error_verdict(code) for code in range(-250, 250)}
    assert {code for code, verdict in verdicts.items() if verdict is ErrorMeaning.UNREACHABLE} == UNREACHABLE
    assert {code for code, verdict in verdicts.items() if verdict is ErrorMeaning.RETRIABLE} == RETRIABLE
    assert {code for code, verdict in verdicts.items() if verdict is ErrorMeaning.DENIED} == DENIED


def test_waits_double_up_to_their_limit_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(first=0.5, limit=3.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert backoff.next() == 0.5
    backoff.failures = 10_000
    assert backoff.next() == 3.0


def test_a_cluster_that_is_away_is_asked_again_soon() -> None:
    backoff = Backoff(first=4.0, limit=30.0)
    away = ClusterUnreachable("B", "b:9092", "refused")
    assert [backoff.next_after(away) for _ in range(3)] == [4.0, 5.0, 5.0]
    assert backoff.next_after(ClusterError("B", "whatever")) == 4.0
    assert backoff.next_after(None) == 8.0


def test_backoff_begins_lower_after_a_time_of_success() -> None:
    backoff = Backoff(first=0.5, limit=30.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1, 2, 4, 8]
    backoff.forget_failures(9.9)
    assert backoff.next() == 16
    backoff.forget_failures(40.0)
    assert backoff.next() == 2
    backoff.forget_failures(1e6)
    assert backoff.next() == 0.5
