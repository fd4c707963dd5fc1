"""When single records are better fetched a few at a time, and how many connections fetch (no I/O, no clock).

A question costs the brokers and us the same for one record as for hundreds."""

from __future__ import annotations

SWARM_PER_S = 1_000
SMALL_BATCH_CHECK_S = 0.1
LASTS_S = 1.0
MUCH_BYTES = 1_600_000  # within SMALL_BATCH_CHECK_S
QUIET_S = 10.0

FEW_BYTES = 64 * 1024
"""An answer larger than this brings more than a few."""

PACE_S = 0.006
REST_FACTOR = 3  # times what a question took


def rest_s(duration_s: float) -> float:
    """How long to leave a broker alone whose last request and answer took so many seconds. Thrice as long, as long as
    both together are no more than 6 ms.

    Where cores are busy both take longer, and the next question brings more; where they are not, nobody waits for long.
    """
    return max(0.0, min(REST_FACTOR * duration_s, PACE_S - duration_s))


class SmallBatchPacer:
    """Whether one connection brings so many small batches that they are better fetched a few at a time."""

    def __init__(self) -> None:
        self._since = 0.0
        self._batches = 0
        self._bytes = 0
        self._swarms = False
        self._swarms_since = 0.0
        self._heard_at = float("inf")
        self.much = False
        """More came of late than one connection should have to bring."""

    def paced(self, batches: int, size: int, now: float) -> bool:
        """Count what an answer brought, of so many bytes; whether the next question may wait a little."""
        if size or self._heard_at > now:
            self._heard_at = now
        self._batches += batches
        self._bytes += size
        looked = now - self._since
        self.much = self._bytes >= MUCH_BYTES or (self.much and looked < SMALL_BATCH_CHECK_S)
        if looked >= SMALL_BATCH_CHECK_S:
            swarmed, self._swarms = self._swarms, self._batches >= SWARM_PER_S * looked
            if self._swarms and not swarmed:
                self._swarms_since = now
            self._since, self._batches, self._bytes = now, 0, 0
        return self._swarms and 0 < size <= FEW_BYTES

    def lasts(self, now: float) -> bool:
        """Nothing but single records for a second, and still: who is asked often need not be asked over two
        connections."""
        return self._swarms and not self.much and now - self._swarms_since >= LASTS_S and now - self._since < LASTS_S

    def quiet(self, now: float) -> bool:
        """Nothing came for so long that the partition needs no request over a connection of its own."""
        return now - self._heard_at >= QUIET_S
