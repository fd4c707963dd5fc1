"""JSON as the API and the stream write it."""

import json
from typing import Any


def json_text(body: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
