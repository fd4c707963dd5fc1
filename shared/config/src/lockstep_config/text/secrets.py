"""The keys that hold secrets, and the text that is shown in place of a secret."""

import re

MASK = "********"

_SECRET = re.compile(
    r"password|passphrase|secret|token|jaas|credential|private|basic\.auth|(?:^|[._-])key$|key\.?material"
    r"|switch\.hook\.(?:before|fence|redirect|after)$",
    re.IGNORECASE,
)
_PUBLIC = re.compile(r"token\.endpoint\.url$|(?:location|enabled|class|retry\.backoff(?:\.max)?\.ms)$", re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Return whether the value of `key` must never be printed, logged or put into a message; True in doubt."""
    return bool(_SECRET.search(key)) and not _PUBLIC.search(key)


def masked(key: str, value: str) -> str:
    """Return `value` as it may be shown to people: `MASK` if `key` holds a secret, else itself.

    An empty secret stays empty.
    """
    return MASK if value and is_secret(key) else value
