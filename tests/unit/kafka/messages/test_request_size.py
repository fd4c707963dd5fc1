"""Requests become small where large ones are never answered, and only there."""

from lockstep_kafka.messages.request_size import LARGE_BYTES, SMALL_BYTES, RequestSize

LARGE = LARGE_BYTES + 1


def test_request_size_after_two_closed_requests_is_small_and_news_once() -> None:
    size = RequestSize()
    size.closed(LARGE, size.closings)
    assert not size.is_small
    size.closed(LARGE, size.closings)
    assert size.is_small
    assert (size.take_notice(), size.take_notice()) == (True, False)


def test_request_size_with_answered_small_requests_between_is_small() -> None:
    size = RequestSize()
    size.closed(LARGE, size.closings)
    size.answered(SMALL_BYTES)
    size.closed(LARGE, size.closings)
    assert size.is_small


def test_request_size_with_answers_just_below_the_limit_is_small() -> None:
    """Event Hubs takes 1,046,528 bytes."""
    size = RequestSize()
    size.answered(1_046_000)
    size.closed(SMALL_BYTES + 50_000, size.closings)
    size.closed(SMALL_BYTES + 50_000, size.closings)
    assert size.is_small


def test_request_size_of_a_cluster_that_answers_large_ones_stays() -> None:
    """Its brokers are restarted now and then."""
    size = RequestSize()
    size.closed(LARGE, size.closings)
    size.answered(LARGE)
    for _ in range(10):
        size.closed(LARGE, size.closings)
    assert not size.is_small
    assert not size.take_notice()


def test_request_size_after_closed_small_requests_stays() -> None:
    size = RequestSize()
    for _ in range(10):
        size.closed(SMALL_BYTES, size.closings)
    assert not size.is_small


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
