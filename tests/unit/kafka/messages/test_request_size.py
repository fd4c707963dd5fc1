"""Requests become small where large ones are never answered, and only there."""

import pytest

from lockstep_kafka.messages.request_size import LARGE_BYTES, SMALL_BYTES, RequestSize

LARGE = LARGE_BYTES + 1


def test_request_size_after_two_closed_requests_is_small_and_news_once() -> None:
    size = RequestSize()
    size.closed(LARGE, size.closings)
    assert not size.is_small
    size.closed(LARGE, size.closings)
    assert size.is_small
    assert (size.take_notice(), size.take_notice()) == (True, False)


@pytest.mark.parametrize(
    ("closed", "answered_first", "answered_between", "closings", "is_small"),
    [
        pytest.param(LARGE, 0, SMALL_BYTES, 1, True, id="answered small ones between"),
        pytest.param(SMALL_BYTES + 50_000, 1_046_000, 0, 1, True, id="Event Hubs, which takes 1,046,528 bytes"),
        pytest.param(LARGE, 0, LARGE, 10, False, id="answers large ones, and its brokers are restarted now and then"),
        pytest.param(SMALL_BYTES, 0, 0, 9, False, id="closed small ones"),
    ],
)
def test_request_size_is_small_after_large_requests_that_are_closed_alone(
    closed: int, answered_first: int, answered_between: int, closings: int, is_small: bool
) -> None:
    size = RequestSize()
    size.answered(answered_first)
    size.closed(closed, size.closings)
    size.answered(answered_between)
    for _ in range(closings):
        size.closed(closed, size.closings)
    assert size.is_small is is_small
    assert size.take_notice() is is_small


def test_request_size_refuses_large_batches_only_once_it_is_small() -> None:
    size = RequestSize()
    assert not size.refuses(LARGE)
    size.closed(LARGE, size.closings)
    size.closed(LARGE, size.closings)
    assert size.refuses(LARGE)
    assert not size.refuses(SMALL_BYTES)


def test_request_size_after_one_broker_that_stops_stays() -> None:
    """It ends all of its connections at once."""
    size = RequestSize()
    for _ in range(4):
        size.closed(LARGE, opened_after=0)
    assert not size.is_small
    size.closed(LARGE, opened_after=1)
    assert size.is_small
