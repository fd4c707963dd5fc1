"""A member of a group that hears nothing of it, although its cluster answers, joins anew."""

from __future__ import annotations

import pytest

from lockstep_runtime.membership.group_watchdog import DEAF_AFTER, GroupWatchdog
from lockstep_runtime.util.suspend_detector import AWAY_S


def deaf_after(heard_until: float, *, unreachable_until: float = 0.0, frozen_from: float | None = None) -> float:
    """When it is found out, of looks every second."""
    hearing, now = GroupWatchdog(), 100.0
    while not hearing.lost(now < heard_until, now >= unreachable_until, now):
        now += 1.0
        if frozen_from is not None and now >= frozen_from:
            now, frozen_from = now + 10 * DEAF_AFTER, None
        assert now < 2_000
    return now


@pytest.mark.parametrize("heard_until", [0.0, 130.0, 400.0])
def test_it_is_deaf_that_long_after_the_last_answer(heard_until: float) -> None:
    assert deaf_after(heard_until) == max(100.0, heard_until - 1) + DEAF_AFTER + 1


def test_while_the_cluster_is_away_nobody_is_deaf() -> None:
    assert deaf_after(0.0, unreachable_until=900.0) == 899.0 + DEAF_AFTER + 1


def test_who_was_frozen_itself_listens_anew() -> None:
    assert deaf_after(0.0, frozen_from=120.0) == 120.0 + 10 * DEAF_AFTER + DEAF_AFTER + 1
    assert AWAY_S < 10 * DEAF_AFTER
