"""A request that a cluster does not support is noted with how that showed, and reported once."""

from lockstep_kafka.wire.unsupported_requests import UnsupportedCase, UnsupportedRequests


def test_unsupported_requests_are_news_once() -> None:
    unsupported = UnsupportedRequests()
    assert "fetch" not in unsupported
    unsupported.add_case("fetch", UnsupportedCase.ABSENT)
    unsupported.add_case("fetch", UnsupportedCase.REFUSED)
    assert "fetch" in unsupported
    assert unsupported.take_cases() == [("fetch", UnsupportedCase.ABSENT)]
    assert unsupported.take_cases() == []
