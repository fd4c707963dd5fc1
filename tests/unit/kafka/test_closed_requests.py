"""When a closed connection shows that brokers do not know a request."""

from math import inf

from lockstep_kafka.common.closed_requests import AGAIN_WITHIN_S, ClosedRequests

CREATE, ALTER = "create", "alter"


def test_first_close_shows_nothing_and_the_second_does() -> None:
    closes = ClosedRequests()
    assert [closes.closes_again(CREATE, began, began + 0.1) for began in (1.0, 2.0, 3.0)] == [False, True, True]
    assert closes.count == 3


def test_all_subjects_of_a_request_get_its_answer() -> None:
    closes = ClosedRequests()
    assert [closes.closes_again(CREATE, 1.0, 1.1 + n) for n in range(3)] == [False] * 3
    assert [closes.closes_again(CREATE, 5.0, 5.1 + n) for n in range(3)] == [True] * 3
    assert closes.count == 2


def test_request_that_was_under_way_at_the_former_close_proves_nothing() -> None:
    closes = ClosedRequests()
    assert not closes.closes_again(CREATE, 1.0, 2.0)
    assert not closes.closes_again(CREATE, 1.5, 2.1)
    assert closes.closes_again(CREATE, 3.0, 3.1)


def test_closes_of_other_kinds_and_of_long_ago_do_not_count() -> None:
    closes = ClosedRequests()
    assert not closes.closes_again(CREATE, 1.0, 1.1)
    assert not closes.closes_again(ALTER, 2.0, 2.1)
    assert not closes.closes_again(CREATE, 70.0, 1.2 + AGAIN_WITHIN_S)


def test_requests_without_a_time_come_one_after_the_other() -> None:
    closes = ClosedRequests()
    assert [closes.closes_again(CREATE, inf, now) for now in (1.0, 2.0)] == [False, True]
