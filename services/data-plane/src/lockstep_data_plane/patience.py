"""How long a broker may be silent before its connection is given up (no I/O, no clock)."""

from __future__ import annotations

__all__ = ["PATIENCE_S", "silent_too_long"]

PATIENCE_S = 40.0
"""How long a fetch may stay unanswered beyond what it asked the broker to wait."""


def silent_too_long(asked_at: float, now: float, kept_s: float) -> bool:
    """Whether the fetch that was sent at `asked_at` is given up, which the broker may keep for `kept_s` where it has
    nothing to bring. Never where none is out (`asked_at` 0)."""
    return asked_at > 0 and now - asked_at > PATIENCE_S + kept_s
