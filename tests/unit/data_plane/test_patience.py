"""When a silent broker's connection is given up."""

from __future__ import annotations

import pytest

from lockstep_data_plane.patience import PATIENCE_S, silent_too_long

ASKED_AT = 1000.0


@pytest.mark.parametrize("kept_s", [0.01, 0.5, 60.0, 300.0])
def test_a_fetch_is_given_up_once_the_broker_was_silent_beyond_what_it_was_asked_to_wait(kept_s: float) -> None:
    assert not silent_too_long(ASKED_AT, ASKED_AT + kept_s + PATIENCE_S, kept_s)
    assert silent_too_long(ASKED_AT, ASKED_AT + kept_s + PATIENCE_S + 1, kept_s)


def test_where_nothing_is_asked_nothing_is_given_up() -> None:
    assert not silent_too_long(0.0, ASKED_AT, 0.5)
