"""Describing every topic is dear where there are many, so it is done the less often the more it costs."""

import pytest

from lockstep_topic_sync.app import IDS_AT_LEAST_EVERY, IDS_EVERY, IDS_SHARE, ids_rest_s


def test_few_topics_are_looked_at_closely_every_ten_seconds() -> None:
    assert ids_rest_s(0.0) == ids_rest_s(IDS_SHARE * IDS_EVERY) == IDS_EVERY


@pytest.mark.parametrize("cost_s", [0.04, 0.1, 0.15])
def test_many_topics_as_seldom_as_keeps_the_share_of_a_core(cost_s: float) -> None:
    assert cost_s / ids_rest_s(cost_s) == pytest.approx(IDS_SHARE)


def test_but_all_at_least_every_minute() -> None:
    assert ids_rest_s(10.0) == IDS_AT_LEAST_EVERY
