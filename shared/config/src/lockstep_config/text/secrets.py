"""The keys that hold secrets, and the masking of secrets in what is shown.

A secret comes back in many forms in a text that somebody else wrote, as the answer of a server or the output of a
command: as it is, in a URL, in JSON and in base64. In base64 it may begin in the middle of three bytes, as
`Authorization: Basic` has the user before the password. This module is pure.
"""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "********"
"""The text that is shown in place of a secret."""

_SECRET = re.compile(
    r"password|passphrase|secret|token|jaas|credential|private|basic\.auth|(?:^|[._-])key$|key\.?material"
    r"|switch\.hook\.(?:before|fence|redirect|after)$",
    re.IGNORECASE,
)
_PUBLIC = re.compile(r"token\.endpoint\.url$|(?:location|enabled|class|retry\.backoff(?:\.max)?\.ms)$", re.IGNORECASE)

_TRANSFORM = re.compile(r"(?:^|\.)lockstep\.transform\.[^.]+\.(?P<key>.*)", re.DOTALL)
_PUBLIC_OF_TRANSFORMS = frozenset(
    {"topics", "sql", "sql.file", "mask", "python", "tombstones", "filtered", "on.error"}  # all but salt and secret.*
)

SHORTEST = 4
"""The fewest characters of a secret that is looked for: shorter texts are in every text."""

_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'&;,]+)"
_CREDENTIALS = (
    re.compile(rf"(?i)\b(?:bearer|basic|negotiate|digest|apikey)\s+({_VALUE})"),
    re.compile(r"://[^\s/:@]*:([^\s/@]+)@"),
    re.compile(
        r"(?i)[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|credential|authorization|cookie)[\w.-]*"
        rf"[\"']?\s*[=:]\s*(?!\s*(?:bearer|basic|negotiate|digest|apikey)\b)({_VALUE})"
    ),
    re.compile(rf"(?:^|\s)--?(?:password|pass|passwd|token|secret|api-key|apikey)(?:\s+|=)({_VALUE})", re.IGNORECASE),
    re.compile(rf"(?:^|\s)(?:-u|--user|--proxy-user)(?:\s+|=)?[\"']?[^\s:\"']+:({_VALUE})"),
)
"""The places of secrets in a command line, a URL or a header."""


def is_secret(key: str) -> bool:
    """Return whether the value of `key` must never be printed, logged or put into a message; True in doubt."""
    if (of_transform := _TRANSFORM.search(key)) is not None:  # its name may be any word
        return of_transform["key"] not in _PUBLIC_OF_TRANSFORMS
    return bool(_SECRET.search(key)) and not _PUBLIC.search(key)


def mask_value(key: str, value: str) -> str:
    """Return `value` as it may be shown to people: `MASK` if `key` holds a secret, else itself.

    An empty secret stays empty.
    """
    return MASK if value and is_secret(key) else value


def shown_credentials(text: str) -> frozenset[str]:
    """Return the secrets that a command line or an address shows by their places in it."""
    candidates = (match[1].strip("\"'") for form in _CREDENTIALS for match in form.finditer(text))
    return frozenset(candidate for candidate in candidates if candidate and not candidate.startswith("$"))


class SecretMask:
    """A mask that takes secrets out of texts, in every form in which they are likely to come back."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        forms = {form for secret in secrets if secret and len(secret) >= SHORTEST for form in _forms(secret)}
        # The longest first: a shorter one that begins it would leave its end unmasked.
        self._secret_pattern = (
            re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True)))) if forms else None
        )

    def mask(self, text: str) -> str:
        """Return the text without the secrets that are known, and without those that their place shows."""
        if self._secret_pattern is not None:
            text = self._secret_pattern.sub(MASK, text)
        for form in _CREDENTIALS:
            text = form.sub(lambda match: match[0].replace(match[1], MASK), text)
        return text


def _forms(secret: str) -> set[str]:
    forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms |= {re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in forms}
    data = secret.encode()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(_inner_base64(encode(b"\0" * before + data).decode(), before, len(data)))
    return {form for form in forms if len(form) >= SHORTEST}


def _inner_base64(encoded: str, before: int, size: int) -> str:
    """Return the characters that depend on the secret alone. Those at its ends have bits of its neighbours."""
    return encoded[-(-before * 8 // 6) : (before + size) * 8 // 6]
