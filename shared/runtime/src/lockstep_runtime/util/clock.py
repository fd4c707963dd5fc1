"""The time of day in the unit of records, rows and events."""

import time


def now_ms() -> int:
    """Return Unix milliseconds by the machine's clock, which may be set back."""
    return time.time_ns() // 1_000_000
