"""That brokers slow us down is said when it begins, and again only after they have stopped for a while."""

from lockstep_kafka.wire.throttle_notice import QUIET_S, ThrottleNotice


def test_throttle_notice_without_throttling_is_silent() -> None:
    assert ThrottleNotice().take_notice() == 0


def test_the_beginning_is_news_once() -> None:
    quota = ThrottleNotice()
    quota.throttled(1.5, 100.0)
    quota.throttled(3.0, 102.0)
    assert quota.take_notice() == 1.5
    assert quota.take_notice() == 0
    quota.throttled(2.0, 106.0)
    assert quota.take_notice() == 0


def test_throttle_notice_repeats_after_a_quiet_time() -> None:
    quota = ThrottleNotice()
    quota.throttled(5.0, 100.0)
    quota.take_notice()
    quota.throttled(1.0, 105.0 + QUIET_S)
    assert quota.take_notice() == 0
    quota.throttled(2.0, 106.1 + 2 * QUIET_S)
    assert quota.take_notice() == 2.0


def test_a_long_stay_away_is_not_a_quiet_while() -> None:
    quota = ThrottleNotice()
    quota.throttled(10 * QUIET_S, 0.0)
    quota.take_notice()
    quota.throttled(1.0, 10.5 * QUIET_S)
    assert quota.take_notice() == 0
