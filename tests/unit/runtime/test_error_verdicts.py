"""Which errors pass, and how long we wait."""

import pytest
from confluent_kafka import KafkaError

from lockstep_runtime.kafka.error_verdicts import Verdict, classify
from lockstep_runtime.util.backoff import Backoff
from lockstep_runtime.util.errors import ClusterTrouble, ClusterUnreachable


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (KafkaError._TRANSPORT, Verdict.UNREACHABLE),
        (KafkaError._TIMED_OUT, Verdict.UNREACHABLE),
        (KafkaError.SASL_AUTHENTICATION_FAILED, Verdict.UNREACHABLE),
        (KafkaError.NOT_CONTROLLER, Verdict.RETRIABLE),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, Verdict.RETRIABLE),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Verdict.DENIED),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, Verdict.DENIED),
        (KafkaError.INVALID_CONFIG, Verdict.FATAL),
        (KafkaError.TOPIC_ALREADY_EXISTS, Verdict.FATAL),
        (31_999, Verdict.FATAL),
    ],
)
def test_errors_are_classified_by_their_code(code: int, verdict: Verdict) -> None:
    assert classify(code) is verdict


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
    assert [backoff.after(away) for _ in range(3)] == [4.0, 5.0, 5.0]
    assert backoff.after(ClusterTrouble("B", "whatever")) == 30.0
    assert backoff.after(None) == 30.0


def test_what_went_well_for_a_while_is_tried_again_sooner() -> None:
    backoff = Backoff(first=0.5, limit=30.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1, 2, 4, 8]
    backoff.worked(9.9)
    assert backoff.next() == 16
    backoff.worked(40.0)
    assert backoff.next() == 2
    backoff.worked(1e6)
    assert backoff.next() == 0.5
