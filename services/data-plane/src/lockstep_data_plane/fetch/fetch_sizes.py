"""How much to ask of a broker (no I/O; time comes from outside).

One connection fetches all partitions that a slot has of a broker. A second one shares the work only while there is
much to fetch. Then one answer is processed while the other is on its way."""

from collections import defaultdict
from dataclasses import dataclass

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.common.in_flight_limits import partition_bytes
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget

COUNTED_S = 0.1
MUCH_BYTES = 1_600_000
"""A connection brings much where it brings so many bytes within `COUNTED_S`."""

MUCH_LASTS_S = 10.0
"""A second connection goes on for so long after the last time that one of the two brought much."""


@dataclass(slots=True)
class _Load:
    """What one connection brought of late."""

    since: float = float("-inf")
    size: int = 0
    much_at: float = float("-inf")


class FetchSizes:
    """The size of each request of a slot. `now` everywhere: seconds of a clock that does not go back."""

    def __init__(self, settings: FetchSettings, budget: MemoryBudget) -> None:
        self._settings = settings
        self._budget = budget
        self._loads: dict[tuple[int, int], _Load] = defaultdict(_Load)

    def limits(self, round_trip_s: float, *, connections: int, partitions: int) -> FetchBudget | None:
        """What one of so many connections may ask for now, of so many partitions in all; None: nothing.

        The longer the round trip the more, unless the file sets the size. 0: nothing is known of it yet."""
        each = self._settings.max_partition_bytes
        if self._settings.grows:
            each = partition_bytes(each, round_trip_s, partitions, self._budget.cap)
        return self._budget.grant(
            connections=connections, partitions=partitions, each=each, at_most=self._settings.max_bytes
        )

    def on_fetched(self, connection: tuple[int, int], size: int, now: float) -> None:
        """Count so many bytes that an answer brought on the connection, the first (0) or second (1) to a broker."""
        load = self._loads[connection]
        if now - load.since >= COUNTED_S:
            load.since, load.size = now, 0
        load.size += size
        if load.size >= MUCH_BYTES:
            load.much_at = now

    def surplus(self, connection: tuple[int, int], own: int, others: int, now: float) -> int:
        """How many of its own partitions the connection gives to the other one of its broker, which has `others`.

        While it brings much, it gives half of what it has more. If neither does, the second gives all to the first."""
        broker, index = connection
        if self._brings_much(connection, now):
            return max(0, own - others) // 2
        return own if index == 1 and not self._brings_much((broker, 0), now) else 0

    def _brings_much(self, connection: tuple[int, int], now: float) -> bool:
        return now - self._loads[connection].much_at < MUCH_LASTS_S
