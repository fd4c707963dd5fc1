"""Decisions when an access token is renewed, and how long it lives. They are pure; times are Unix seconds."""

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

from lockstep_config.clients.oauth import RefreshRule

UNKNOWN_LIFE_S = 3600.0
"""The life that is taken for a token that does not say how long it lives."""

LONGEST_PAUSE_S = 10.0
"""The longest pause after failed logins. Java tries a failed login again after ten seconds."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token that came at `since`; the broker refuses it from `until` on."""

    text: str = field(repr=False)
    since: float
    until: float


def refresh_at(token: AccessToken, rule: RefreshRule, chance: float) -> float:
    """Return the moment from which on a new token is asked for.

    This is Java's rule (`ExpiringCredentialRefreshingLogin.refreshMs`). The time is after a part of the token's life,
    not within `min_period_s` of its beginning nor of `buffer_s` before its end. If it lives too short for both, both
    are ignored. They are also ignored if they leave only its first moment: a token would be asked for without end.

    Args:
        token: The token to be renewed.
        rule: The rule of `sasl.login.refresh.*`.
        chance: A random number from 0 to 1.
    """
    part = rule.window_factor + rule.window_jitter * chance
    renewal = token.since + (token.until - token.since) * part
    if token.since + rule.min_period_s + rule.buffer_s > token.until:
        return min(renewal, token.until)
    within = max(min(renewal, token.until - rule.buffer_s), token.since + rule.min_period_s)
    return within if within > token.since else renewal


LIBRDKAFKA_ASKS_AFTER = 0.8
"""The part of a token's remaining life after which librdkafka asks for another."""


def expiry_to_report(token: AccessToken, now: float, due: float) -> float:
    """Return the end of a token to tell librdkafka, which decides by it alone when it asks for another token.

    It is set so that librdkafka asks from `due` on, when there is a new token. Before `due` librdkafka would get the
    same token again, and come back when a twenty-fifth of its life is left. Sessions as short as that can hardly be
    renewed in time.
    """
    return token.until if due <= now else now + (due - now) / LIBRDKAFKA_ASKS_AFTER


def jwt_expiry(text: str) -> float | None:
    """Return the claim `exp` of a JWT; None if the text is no JWT or has no such claim.

    The broker checks its signature.
    """
    try:
        return float(_claims(text)["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def jwt_subject(text: str) -> str | None:
    """Return the claim `sub` of a JWT, the bearer's principal; None if the text is no JWT or has no such claim."""
    subject = _claims(text).get("sub")
    return subject if isinstance(subject, str) else None


def _claims(text: str) -> dict[str, Any]:
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def pause_after(failures: int) -> float:
    """Return the seconds without a request after this number of failures in a row."""
    return min(LONGEST_PAUSE_S, 0.5 * 2.0 ** min(failures - 1, 10)) if failures > 0 else 0.0
