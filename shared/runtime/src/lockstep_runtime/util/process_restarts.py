"""Pauses between the starts of a process, or of a service in a shared process, that crashes (`restarts.md`). Pure."""

from dataclasses import dataclass
from datetime import timedelta

from lockstep_kafka.common.backoff import Backoff

LONGEST_DELAY = timedelta(seconds=30)
"""Longer would make a repaired cluster wait for nothing; a start every half minute is no load."""

STEADY = timedelta(minutes=1)
"""The time from a start after which the next crash counts as the first one."""

EARNS_BACK = timedelta(seconds=5)
"""The readiness that takes back one crash.

A process that is killed every ten seconds comes back at once each time. One that ends by itself before it is ready, or
soon after, waits longer and longer.
"""


@dataclass(slots=True)
class ProcessRestarts:
    """Crashes of one process in a row."""

    crashes: int = 0

    def next_delay(self, lived: timedelta, worked: timedelta) -> timedelta:
        """Count one more crash and return the pause before the next start: 0, 1, 2, 4 ... 30 seconds.

        Args:
            lived: Time since the start.
            worked: Time since the process was ready; zero if it never was.
        """
        counted = 0 if lived >= STEADY else max(0, self.crashes - worked // EARNS_BACK)
        self.crashes = counted + 1
        longest_s = LONGEST_DELAY.total_seconds()
        return timedelta(seconds=Backoff(first=1.0, limit=longest_s, failures=counted, at_once=1).next())
