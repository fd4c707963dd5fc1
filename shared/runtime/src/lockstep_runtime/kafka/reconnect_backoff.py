"""When an address that refused a connection is connected to again (no I/O, no clock)."""

from __future__ import annotations

from lockstep_runtime.util.backoff import Backoff

__all__ = ["LONGEST_S", "Address", "ReconnectBackoff"]

FIRST_S, LONGEST_S = 0.05, 1.0
"""The pauses of Kafka's own clients: `reconnect.backoff.ms` and `reconnect.backoff.max.ms` are 50 and 1000 there."""

Address = tuple[str, int]


class ReconnectBackoff:
    """The pauses of each address. They double while it refuses connections, and end with the first that it takes."""

    def __init__(self) -> None:
        self._refusing: dict[Address, tuple[Backoff, float]] = {}

    def refused(self, address: Address, now: float) -> None:
        """A connection could not be made."""
        pauses, _ = self._refusing.get(address, (Backoff(FIRST_S, LONGEST_S), now))
        self._refusing[address] = pauses, now + pauses.next()

    def opened(self, address: Address) -> None:
        """A connection was made. Idempotent."""
        self._refusing.pop(address, None)

    def wait_s(self, address: Address, now: float) -> float:
        """Seconds to wait before the next attempt, 0 where the address has not refused one lately."""
        _, until = self._refusing.get(address, (None, now))
        return min(max(0.0, until - now), LONGEST_S)  # `until` is rounded, so the difference can be above
