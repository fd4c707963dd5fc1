"""JSON as the API and the stream write it."""

import json
from typing import Any


def json_text(body: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)


def json_bytes(text: str) -> bytes:
    """Return JSON text as it is sent. Half of a surrogate pair, which UTF-8 does not have, becomes JSON's escape."""
    return text.encode(errors="backslashreplace")
