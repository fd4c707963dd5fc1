"""The time of day has one place."""

import time

from lockstep_runtime.flow.context import Clock
from lockstep_runtime.util.clock import now_ms


def test_the_present_in_milliseconds() -> None:
    before = int(time.time() * 1000)
    assert before <= now_ms() <= before + 60_000
    assert Clock().wall_ms is now_ms
