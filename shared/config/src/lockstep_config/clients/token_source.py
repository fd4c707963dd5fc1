"""The edge of `oauth`: it asks for access tokens, and keeps each until `token_refresh` says that it is to be renewed.

One source serves every client of a process whose settings are equal, as one login does in Java. Threads of librdkafka
and our own connections ask it.
"""

import base64
import http.client
import json
import logging
import random
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from lockstep_config.clients.cloud_login import CloudLogin, cloud_token, missing_library
from lockstep_config.clients.oauth import TokenSettings
from lockstep_config.clients.tls import ssl_context
from lockstep_config.clients.token_refresh import (
    UNKNOWN_LIFE_S,
    AccessToken,
    expiry_to_report,
    jwt_expiry,
    jwt_subject,
    pause_after,
    refresh_at,
)
from lockstep_config.text.files import read_content
from lockstep_config.text.secrets import SecretMask

LONGEST_TOKEN_FILE = 65_536
"""The most bytes of a token file. A token with every role of a large directory has a tenth of it."""

ANSWER_BYTES = 1_000_000
"""The most bytes of an answer that are read, as in Java: a token is never larger."""

SHOWN = 200
"""The most characters of an answer that an error shows."""

ASKED_TOO_OFTEN = 429

log = logging.getLogger(__name__)


class TokenUnavailable(ConnectionError):
    """There is no access token to log in with. The text says who was asked, what came, and what to do."""


class _Refused(TokenUnavailable):
    """The endpoint answered, and would answer the same again."""


class TokenSource:
    """A source of access tokens that several threads may use: one asks, the others wait for its token.

    While a token that is still good cannot be renewed it is given out, under one warning. After a failure there is no
    request for a while (`pause_after`), so that not every connection asks a token server that is down.
    """

    def __init__(
        self,
        settings: TokenSettings,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._lock = threading.Lock()
        self._token: AccessToken | None = None
        self._due = 0.0
        self._failures = 0
        self._silent_until = 0.0
        self._trouble = ""
        self._refresh_token: str | None = None

    def token(self) -> AccessToken:
        """Return a token that is good now. It blocks while the token is asked for.

        Raises:
            TokenUnavailable: There is no token that is still good, and none could be had.
        """
        return self.token_and_end()[0]

    def token_and_end(self) -> tuple[AccessToken, float]:
        """Return a token that is good now, and the end to tell librdkafka (`expiry_to_report`).

        Raises:
            TokenUnavailable: There is no token that is still good, and none could be had.
        """
        with self._lock:
            token = self._good_now()
            return token, expiry_to_report(token, self._clock(), max(self._due, self._silent_until))

    def _good_now(self) -> AccessToken:
        now = self._clock()
        if self._token is not None and now < self._due:
            return self._token
        if now < self._silent_until:
            return self._still_good(now)
        try:
            token = self._new_token()
        except TokenUnavailable as exc:
            self._failures += 1
            self._silent_until = self._clock() + pause_after(self._failures)
            self._trouble = str(exc)
            good = self._still_good(self._clock())
            if self._failures == 1:
                log.warning("access token not renewed: %s; the present one is good until %.0f", exc, good.until)
            return good
        self._token = token
        # The file can be renewed at any time: it is read at each login.
        in_file = self._settings.token_file is not None
        self._due = 0.0 if in_file else refresh_at(token, self._settings.refresh, self._chance())
        self._failures, self._silent_until = 0, 0.0
        return token

    @property
    def extensions(self) -> dict[str, str]:
        """The SASL extensions that go with each token."""
        return dict(self._settings.extensions)

    @property
    def subject(self) -> str | None:
        """The principal in the newest token; None without a token, or if the token has none. It requests no token."""
        token = self._token
        return None if token is None else jwt_subject(token.text)

    def _still_good(self, now: float) -> AccessToken:
        if self._token is None or now >= self._token.until:
            raise TokenUnavailable(self._trouble)
        return self._token

    def _new_token(self) -> AccessToken:
        settings = self._settings
        if settings.token_file is not None:
            return self._as_token(_read(settings.token_file), f"the token in {settings.token_file}")
        if settings.token is not None:
            return self._as_token(settings.token, "the token in oauth.access.token")
        return self._asked_for()

    def _as_token(self, text: str, source: str) -> AccessToken:
        now = self._clock()
        until = jwt_expiry(text)
        if until is not None and until <= now:
            expiry_text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(until))
            raise TokenUnavailable(f"{source} expired at {expiry_text} UTC: put a new one there")
        return self._bounded(AccessToken(text, now, until or now + UNKNOWN_LIFE_S))

    def _bounded(self, token: AccessToken) -> AccessToken:
        longest = self._settings.longest_s
        return token if longest is None else replace(token, until=min(token.until, token.since + longest))

    def _asked_for(self) -> AccessToken:
        settings, began, pause, tried = self._settings, self._clock(), self._settings.retry_first_s, 0
        while True:
            try:
                return self._asked_once()
            except _Refused:
                raise
            except TokenUnavailable as exc:
                tried += 1
                late = settings.retry_for_s is not None and self._clock() + pause - began > settings.retry_for_s
                if late or (settings.retries is not None and tried > settings.retries):
                    raise TokenUnavailable(str(exc)) from exc
            longest = settings.retry_longest_s
            self._sleep(pause if longest is None else min(pause, longest))
            pause *= 2

    def _asked_once(self) -> AccessToken:
        settings = self._settings
        if settings.cloud is not None:
            return self._of_cloud(settings.cloud)
        form = [*settings.form, *((name, _read(file)) for name, file in settings.form_files)]
        renewing = ("grant_type", "refresh_token") in form
        if renewing and self._refresh_token is not None:
            # A server may give another refresh token with each answer, and then refuse the former one.
            form = [(name, self._refresh_token if name == "refresh_token" else value) for name, value in form]
        try:
            answer = self._posted(urlencode(form))
        except _Refused:
            self._refresh_token = None  # the configured refresh token is used again
            raise
        text = answer.get("access_token")
        if not isinstance(text, str) or not text:
            raise _Refused(f"{settings.endpoint} answered without an access_token: check that it is a token endpoint")
        if renewing and isinstance(answer.get("refresh_token"), str):
            self._refresh_token = answer["refresh_token"]
        now, expiry_text = self._clock(), answer.get("expires_in")
        life = float(expiry_text) if isinstance(expiry_text, int | float) else None
        # The broker takes the end from the claim. It is in whole seconds, up to one less than the server's.
        ends = [end for end in (None if life is None else now + life, jwt_expiry(text)) if end is not None]
        until = min(ends, default=now + UNKNOWN_LIFE_S)
        if until <= now:
            raise _Refused(f"{settings.endpoint} gave a token that has expired already: check the clocks of both hosts")
        return self._bounded(AccessToken(text, now, until))

    def _of_cloud(self, login: CloudLogin) -> AccessToken:
        if (missing := missing_library(login)) is not None:
            raise _Refused(missing)
        text, until = cloud_token(login)
        return self._bounded(AccessToken(text, self._clock(), until))

    def _posted(self, body: str) -> dict[str, Any]:
        endpoint = self._settings.endpoint or ""
        try:
            status, content = self._exchanged(body)
        except ssl.SSLCertVerificationError as exc:
            raise TokenUnavailable(
                f"{endpoint} shows a certificate that we do not trust ({exc.verify_message}): set the truststore "
                "of the token endpoint in sasl.jaas.config"
            ) from exc
        except TimeoutError as exc:
            raise TokenUnavailable(f"{endpoint} does not answer in time: check that the token endpoint is up") from exc
        except (OSError, http.client.HTTPException) as exc:
            reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
            raise TokenUnavailable(f"{endpoint} cannot be asked for a token: {reason}") from exc
        answer = _parsed(content)
        if status == http.client.OK and answer is not None:
            return answer
        if status == http.client.OK:  # the answer may be a token in a wrong form, so it is not shown
            raise _Refused(f"{endpoint} gave no token: its answer is no JSON object; check that it is a token endpoint")
        words = self._masked(_server_words(answer, content))
        sentence = f"{endpoint} gave no token: HTTP {status}{words and f' ({words})'}"
        if http.client.BAD_REQUEST <= status < http.client.INTERNAL_SERVER_ERROR and status != ASKED_TOO_OFTEN:
            client_text = f" of client {self._settings.client_id}" if self._settings.client_id else ""
            raise _Refused(f"{sentence}: check the id, the secret and the scope{client_text}")
        raise TokenUnavailable(sentence)

    def _exchanged(self, body: str) -> tuple[int, bytes]:
        settings = self._settings
        url = urlsplit(settings.endpoint or "")
        host, connect_s = url.hostname or "", settings.connect_timeout_s
        connection: http.client.HTTPConnection
        if url.scheme.lower() == "https":
            context = ssl_context(settings.tls)  # its files may have been replaced since the last time
            connection = http.client.HTTPSConnection(host, url.port, timeout=connect_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, url.port, timeout=connect_s)
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if settings.client_id is not None and settings.client_secret is not None:
            encoded = quote_plus if settings.encode_header else str
            pair = f"{encoded(settings.client_id)}:{encoded(settings.client_secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            connection.connect()
            connection.sock.settimeout(settings.read_timeout_s)
            connection.request("POST", path, body, headers)
            # A redirect is not followed: the secret is for this address alone.
            response = connection.getresponse()
            return response.status, response.read(ANSWER_BYTES)
        finally:
            connection.close()

    def _masked(self, text: str) -> str:
        """Return a server's words about the request, with the request's secrets masked."""
        secrets = [self._settings.client_secret, self._refresh_token, *(value for _, value in self._settings.form)]
        grants = ("client_credentials", "refresh_token", "password")
        return SecretMask(secret for secret in secrets if secret not in grants).mask(text)


class TokenCallback:
    """librdkafka's `oauth_cb`, which returns token, end, principal and extensions.

    A thread of librdkafka's own calls it, whether the client is polled or not. An exception becomes a failed login,
    which librdkafka tries again.
    """

    def __init__(self, source: TokenSource) -> None:
        self.source = source

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        token, end = self.source.token_and_end()
        return token.text, end, "", self.source.extensions


_sources: dict[TokenSettings, TokenSource] = {}
_making = threading.Lock()


def shared_token_source(settings: TokenSettings) -> TokenSource:
    """Return the one source of this process for these settings."""
    with _making:
        return _sources.setdefault(settings, TokenSource(settings))


def _read(file: str) -> str:
    try:
        text = read_content(Path(file), LONGEST_TOKEN_FILE).decode().strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is no text"
        raise TokenUnavailable(f"the token file {file} cannot be read: {reason}") from exc
    if not text:
        raise TokenUnavailable(f"the token file {file} is empty: put a token there")
    return text


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(content)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _server_words(answer: dict[str, Any] | None, content: bytes) -> str:
    """Return an OAuth server's own words, or the beginning of its answer."""
    if answer is None:
        return " ".join(content[:SHOWN].decode("utf-8", "replace").split())
    words = (answer.get("error"), answer.get("error_description"))
    return ": ".join(str(word) for word in words if word)[:SHOWN]
