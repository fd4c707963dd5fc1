"""Who may read the console, and who may act. Pure, but for the file of the token.

A browser keeps the token itself and sends it as a header. There are no cookies, so another site's page cannot use a
session of the console.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_runtime.http.access import AccessPolicy, bearer_token

REQUEST_HEADER = "X-Lockstep-Request"
"""The header of every request that acts. Another site's page cannot set it without being asked first."""

JSON_TYPE = "application/json"

LONGEST_USER = 200
"""Most characters of a user's name from a trusted header."""

ANONYMOUS, BY_TOKEN = "anonymous", "token"
"""Names of users that no proxy has named: without a token, and with it."""

READ_ONLY = "The console was started without --token-file and --trust-header, so it is read-only."
NOT_SIGNED_IN = "Sign in with the token of the console. A program sends it as a bearer token."
NOT_ADMITTED = "The console does not accept this token: it is a wrong one."
NOT_NAMED = "The request has not come through the proxy that names the user in {header}."
NO_NAME = (
    "The header {header} names no user: it is there more than once, or is longer than {longest} characters, "
    "or has some that cannot be shown."
)


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks, and what they may do. `why_read_only` is a sentence, or "" for those who may act."""

    user: str
    may_read: bool
    may_act: bool
    why_read_only: str = ""
    has_token: bool = field(default=False, repr=False)
    """The request has the token itself."""


@dataclass(frozen=True, slots=True)
class ConsoleAccess:
    """The rule by which requests may read and act.

    Without a token and without a trusted header everybody who reaches the port may read, and nobody may act.
    """

    policy: AccessPolicy
    trusted_header: str = ""
    """The header in which a proxy names the user; "" if there is no such proxy."""
    anonymous_read: bool = False

    def session(self, headers: Mapping[str, str]) -> Session:
        """Return the session of a request with these headers."""
        has_token = self.policy.guarded and self.policy.admits(_request_token(headers))
        if user := self._named_user(headers):
            return Session(user, may_read=True, may_act=True, has_token=has_token)
        if has_token:
            return Session(BY_TOKEN, may_read=True, may_act=True, has_token=True)
        if not self.policy.guarded and not self.trusted_header:
            return Session(ANONYMOUS, may_read=True, may_act=False, why_read_only=READ_ONLY)
        return Session(ANONYMOUS, may_read=self.anonymous_read, may_act=False, why_read_only=self._why_nobody(headers))

    def _named_user(self, headers: Mapping[str, str]) -> str:
        """Return the user that the proxy names, or "" if none is named.

        A header that is there twice names nobody: one of the two is not the proxy's.
        """
        names = _values(headers, self.trusted_header) if self.trusted_header else []
        name = names[0].strip() if len(names) == 1 else ""
        return name if len(name) <= LONGEST_USER and name.isprintable() else ""

    def _why_nobody(self, headers: Mapping[str, str]) -> str:
        if self.trusted_header and any(name.strip() for name in _values(headers, self.trusted_header)):
            return NO_NAME.format(header=self.trusted_header, longest=LONGEST_USER)
        if not self.policy.guarded:
            return NOT_NAMED.format(header=self.trusted_header)
        return NOT_ADMITTED if _request_token(headers) else NOT_SIGNED_IN

    def warnings(self) -> tuple[str, ...]:
        """Return what an operator should know of this access."""
        if self.trusted_header and self.policy.is_reachable:
            return (
                f"whoever reaches the port can act as any user with the header {self.trusted_header}: "
                "only the proxy may reach it",
            )
        return ()


def _values(headers: Mapping[str, str], name: str) -> list[str]:
    """Return every value of a header. A mapping of headers yields one that is there twice as often."""
    return [value for present, value in headers.items() if present.lower() == name.lower()]


def _request_token(headers: Mapping[str, str]) -> str:
    """Return the token of a request, or "" if it has none.

    Clients of Kafka Connect that know no tokens send it as the password of a user of any name.
    """
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return bearer_token(headers)


def forgery_refusal(headers: Mapping[str, str]) -> str:
    """Return why a request that acts may be another site's (CSRF), or "" if it cannot be.

    Args:
        headers: The headers of a request with a method other than GET and HEAD. Names are in any case.
    """
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        return f"A request that acts has the header Content-Type: {JSON_TYPE}."
    if headers.get(REQUEST_HEADER, "") != "1":
        return f"A request that acts has the header {REQUEST_HEADER}: 1."
    return foreign_site(headers)


def foreign_site(headers: Mapping[str, str]) -> str:
    """Return why a request comes from another site's page, as the browser says, or "" if it does not."""
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        return "The request comes from a page of another site."
    origin, host = headers.get("Origin"), headers.get("Host", "")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        return f"The request comes from a page of {origin[:100]}, and the console is {host[:100]}."
    return ""
