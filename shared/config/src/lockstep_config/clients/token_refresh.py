"""When an access token is asked for anew, and how long it lives. Plain decisions: times are Unix seconds."""

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

from lockstep_config.clients.oauth import RefreshRule

UNKNOWN_LIFE_S = 3600.0
"""For a token that does not say how long it lives: it is checked again after so long at most."""

LONGEST_PAUSE_S = 10.0
"""As Java: a login that failed is tried again after ten seconds."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as it came at `since`; the broker refuses it from `until` on."""

    text: str = field(repr=False)
    since: float
    until: float


def refresh_at(token: AccessToken, rule: RefreshRule, chance: float) -> float:
    """The moment from which on a new token is to be asked for; `chance` is a random number from 0 to 1.

    Java's rule (`ExpiringCredentialRefreshingLogin.refreshMs`). The time is after a part of its life, not within
    `min_period_s` of its beginning nor of `buffer_s` before its end. If it lives too short for both, these are ignored.
    So they are where they leave its first moment only: a token would be asked for without end.
    """
    part = rule.window_factor + rule.window_jitter * chance
    at = token.since + (token.until - token.since) * part
    if token.since + rule.min_period_s + rule.buffer_s > token.until:
        return min(at, token.until)
    within = max(min(at, token.until - rule.buffer_s), token.since + rule.min_period_s)
    return within if within > token.since else at


LIBRDKAFKA_ASKS_AFTER = 0.8
"""Of what is left of a token's life."""


def expiry_to_report(token: AccessToken, now: float, due: float) -> float:
    """The end of a token for librdkafka, which asks for another by it and by nothing else. It is set so that librdkafka
    asks when there is one, from `due` on. Before that it would get the same token again, and come back when
    that has a twenty-fifth of its life left. Sessions as short as that can hardly be renewed in time.
    """
    return token.until if due <= now else now + (due - now) / LIBRDKAFKA_ASKS_AFTER


def jwt_expiry(text: str) -> float | None:
    """The claim `exp` of a JWT; None where the token is none, or has none. Its signature is the broker's to check."""
    try:
        return float(_claims(text)["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def jwt_subject(text: str) -> str | None:
    """The claim `sub` of a JWT, by which brokers call its bearer; None as for `jwt_expiry`."""
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
    """Seconds without another request after so many failures in a row."""
    return min(LONGEST_PAUSE_S, 0.5 * 2.0 ** min(failures - 1, 10)) if failures > 0 else 0.0
