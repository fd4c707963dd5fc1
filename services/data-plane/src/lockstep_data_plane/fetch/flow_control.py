"""Whether there is room for more of a partition now: bytes in flight, and the limits of bytes a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from lockstep_config.flow.model import DataPlaneSettings
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.fetch.memory_budget import MemoryBudget
from lockstep_data_plane.fetch.rate_limits import RateLimits


class FlowControl:
    """The room of one slot, which its partitions share. One instance belongs to one event loop."""

    def __init__(self, plane: DataPlaneSettings, nudge: Callable[[PartitionMachine], None]) -> None:
        """`nudge` is called when one that had to wait for the rate may be fetched again."""
        self._nudge = nudge
        self._rates = RateLimits(plane.max_bytes_per_s)
        self._waking: dict[PartitionMachine, asyncio.TimerHandle] = {}
        self.in_flight = MemoryBudget(plane.max_in_flight_bytes)

    @property
    def limited(self) -> bool:
        """Whether there are limits of bytes a second, which partitions share."""
        return self._rates.any

    def within_rate(self, partition: PartitionMachine) -> bool:
        """Whether the limits of bytes a second let it be fetched now; where they do not, it is nudged in time."""
        if not self._rates.any:
            return True
        loop = asyncio.get_running_loop()
        wait = self._rates.wait(partition.topic, loop.time())
        if wait > 0 and partition not in self._waking:
            self._waking[partition] = loop.call_later(wait, self._wake, partition)
        return wait <= 0

    def on_fetched(self, partition: PartitionMachine, size: int) -> None:
        """So many bytes of the partition were fetched."""
        if self._rates.any:
            self._rates.on_fetched(partition.topic, size, asyncio.get_running_loop().time())

    def share_rate(self, mine: Mapping[str, int], everywhere: Mapping[str, int]) -> None:
        """How many partitions of each topic this slot has, and how many the flow has: so it shares the limits of
        bytes a second."""
        self._rates.share(mine, everywhere)

    def close(self) -> None:
        """Nobody is nudged any more."""
        for handle in self._waking.values():
            handle.cancel()

    def _wake(self, partition: PartitionMachine) -> None:
        del self._waking[partition]
        self._nudge(partition)
