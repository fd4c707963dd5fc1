"""How long is waited before something is tried again."""

import pytest

from lockstep_kafka.common.backoff import AWAY_AT_MOST_S, Backoff
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable


def waits(backoff: Backoff, times: int) -> list[float]:
    return [backoff.next() for _ in range(times)]


def test_waits_double_from_the_first_up_to_the_limit() -> None:
    assert waits(Backoff(first=0.5, limit=3.0), 5) == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert waits(Backoff(failures=10_000), 1) == [30.0]


@pytest.mark.parametrize("at_once", [1, 2])
def test_failures_that_are_retried_at_once_come_before_the_waits(at_once: int) -> None:
    backoff = Backoff(limit=2.0, at_once=at_once)
    assert waits(backoff, at_once + 4) == [0.0] * at_once + [0.5, 1.0, 2.0, 2.0]
    backoff.reset()
    assert waits(backoff, at_once + 1) == [0.0] * at_once + [0.5]


def test_ten_seconds_of_work_take_back_one_failure() -> None:
    backoff = Backoff(at_once=1)
    waits(backoff, 3)
    backoff.forget_failures(19.9)
    assert backoff.next() == 1.0
    backoff.forget_failures(60.0)
    assert backoff.next() == 0.0


def test_cluster_that_does_not_answer_is_asked_again_soon() -> None:
    backoff = Backoff(failures=8)
    assert backoff.next_after(ClusterUnreachable("A", "a:9092", "gone")) == AWAY_AT_MOST_S


def test_cluster_that_answers_again_with_an_error_is_asked_again_soon() -> None:
    """And so each time that it was away; an error that stays is asked about less and less often."""
    away, error = ClusterUnreachable("A", "a:9092", "gone"), ClusterError("A", "no leader")
    backoff = Backoff()
    for _ in range(2):
        for _ in range(9):
            backoff.next_after(away)
        assert [backoff.next_after(error) for _ in range(7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
