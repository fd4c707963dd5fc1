"""When a token is renewed: Java's rule."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.clients.oauth import RefreshRule
from lockstep_config.clients.token_refresh import (
    AccessToken,
    expiry_to_report,
    jwt_expiry,
    jwt_subject,
    pause_after,
    refresh_at,
)

RULE = RefreshRule()


@pytest.mark.parametrize(
    ("life", "chance", "renewal"),
    [
        (3600, 0.0, 2880),  # 0.8 of its life
        (3600, 1.0, 3060),  # and the jitter
        (1000, 1.0, 700),  # not within the last 300 s
        (362, 0.0, 62),  # nor within the first 60 s
        (300, 0.0, 240),  # too short for both: they are ignored
        (10, 1.0, 8.5),
    ],
)
def test_a_token_is_renewed_after_a_part_of_its_life(life: float, chance: float, renewal: float) -> None:
    assert refresh_at(AccessToken("t", 1000.0, 1000.0 + life), RULE, chance) == pytest.approx(1000.0 + renewal)


def test_a_token_with_its_end_buffer_for_a_life_is_not_renewed_at_once() -> None:
    rule = RefreshRule(window_factor=0.8, window_jitter=0.0, min_period_s=0.0, buffer_s=300.0)
    assert refresh_at(AccessToken("t", 1000.0, 1300.0), rule, 0.0) == 1240.0


@given(st.floats(1, 1e6), st.floats(0, 1), st.floats(0.5, 0.9), st.floats(0, 0.1), st.floats(0, 900), st.floats(0, 900))
def test_a_token_is_renewed_while_it_is_good(
    life: float, chance: float, factor: float, jitter: float, least: float, buffer: float
) -> None:
    rule = RefreshRule(window_factor=factor, window_jitter=jitter, min_period_s=least, buffer_s=buffer)
    assert 0 < refresh_at(AccessToken("t", 0.0, life), rule, chance) <= life


@given(st.floats(1, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_librdkafka_asks_when_another_token_is_to_be_had(life: float, asked: float, chance: float) -> None:
    token = AccessToken("t", 0.0, life)
    now, due = asked * life, refresh_at(token, RULE, chance)
    reported = expiry_to_report(token, now, due)
    asks = now + 0.8 * (reported - now)
    if due > now:
        assert asks == pytest.approx(due)
    else:
        assert reported == life  # as it is, where nobody knows when there is another: a file, that is read each time


def jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"h.{body}.s"


def test_jwt_claims_are_read_or_absent() -> None:
    assert jwt_expiry(jwt({"exp": 17, "sub": "mirror"})) == 17.0
    assert jwt_subject(jwt({"exp": 17, "sub": "mirror"})) == "mirror"
    for text in ("", "opaque", "a.b.c", "a.e30.c", "a.W10.c", "é.é.é", jwt({"exp": None, "sub": 7}), jwt("sub")):
        assert jwt_expiry(text) is None
        assert jwt_subject(text) is None


def test_pauses_grow_up_to_javas_ten_seconds() -> None:
    assert [pause_after(n) for n in (0, 1, 2, 3, 20, 10_000)] == [0.0, 0.5, 1.0, 2.0, 10.0, 10.0]
