"""The edge of `google`: it asks Google's library for an access token, and wraps it in the form that brokers take.

It is the only module that loads Google's packages. It is imported when the first token is made.
"""

import base64
import functools
import json
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import google.auth
from google.auth import jwt
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import Request

from lockstep_config.clients.google import GoogleSettings
from lockstep_config.clients.token_refresh import UNKNOWN_LIFE_S
from lockstep_config.clients.token_source import TokenUnavailable

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
HEADER = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
"""The header by which Google's brokers know the token. It has no signature: its third part is the access token."""
WITHIN_S = 10.0


def google_token(_settings: GoogleSettings) -> tuple[str, float]:
    """Return a token of the application default credentials, and its end in Unix seconds.

    Raises:
        TokenUnavailable: There are no such credentials, or Google gave no token for them.
    """
    try:
        credentials: Any = google.auth.default(scopes=[SCOPE])[0]
        credentials.refresh(functools.partial(Request(), timeout=WITHIN_S))
    except DefaultCredentialsError as exc:
        raise TokenUnavailable(
            f"there are no application default credentials of Google ({_line(exc)}): name a key file in "
            "GOOGLE_APPLICATION_CREDENTIALS, or give the pod or the instance a service account"
        ) from exc
    except (GoogleAuthError, OSError, ValueError) as exc:
        raise TokenUnavailable(f"Google gave no token for the application default credentials: {_line(exc)}") from exc
    expiry = credentials.expiry
    until = time.time() + UNKNOWN_LIFE_S if expiry is None else expiry.replace(tzinfo=UTC).timestamp()
    claims = {"exp": int(until), "iat": int(time.time()), "scope": "kafka", "sub": _account(credentials)}
    return ".".join(_encoded(part) for part in (json.dumps(HEADER), json.dumps(claims), credentials.token)), until


def _account(credentials: Any) -> str:
    """Return the e-mail address that Google's ACLs name. For a person only the ID token has it."""
    account = getattr(credentials, "service_account_email", None) or getattr(credentials, "account", None)
    if not account and (id_token := getattr(credentials, "id_token", None)):
        claims: Mapping[str, Any] = jwt.decode(id_token, verify=False)
        account = claims.get("email")
    if not account:
        raise TokenUnavailable(
            "the application default credentials of Google name no account, which the brokers ask for: "
            "use a service account, or link the identity to one"
        )
    return str(account)


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _line(exc: Exception) -> str:
    return " ".join(str(exc.args[0] if exc.args else exc).split())
