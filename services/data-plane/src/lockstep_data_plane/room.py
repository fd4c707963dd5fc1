"""Whether a partition may be fetched now: bytes in flight, and the limits of bytes a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from lockstep_config.model import DataPlaneSettings
from lockstep_data_plane.limits import RateLimits
from lockstep_data_plane.partition import Partition

__all__ = ["Room"]


class Room:
    """The room of one slot, which its partitions share. One instance belongs to one event loop."""

    def __init__(
        self, plane: DataPlaneSettings, partitions: Callable[[], int], nudge: Callable[[Partition], None]
    ) -> None:
        """`partitions`: how many there are now. `nudge` is called when one that had to wait may be fetched again."""
        self._plane = plane
        self._partitions = partitions
        self._nudge = nudge
        self._rates = RateLimits(plane.max_bytes_per_s)
        self._waking: dict[Partition, asyncio.TimerHandle] = {}

    @property
    def limited(self) -> bool:
        """Whether there are limits of bytes a second, which partitions share."""
        return self._rates.any

    def for_more_of(self, partition: Partition) -> bool:
        """Whether it may be fetched now; where only the rate forbids it, it is nudged in time."""
        share = max(
            self._plane.max_in_flight_bytes // max(1, self._partitions()), 2 * self._plane.fetch.max_partition_bytes
        )
        return partition.chain.bytes_held < share and self._within_rate(partition)

    def took(self, partition: Partition, size: int) -> None:
        """So many bytes of the partition were fetched."""
        if self._rates.any:
            self._rates.took(partition.topic, size, asyncio.get_running_loop().time())

    def share_rate(self, mine: Mapping[str, int], everywhere: Mapping[str, int]) -> None:
        """How many partitions of each topic this slot has, and how many the flow has: so it shares the limits of
        bytes a second."""
        self._rates.share(mine, everywhere)

    def close(self) -> None:
        """Nobody is nudged any more."""
        for handle in self._waking.values():
            handle.cancel()

    def _within_rate(self, partition: Partition) -> bool:
        if not self._rates.any:
            return True
        loop = asyncio.get_running_loop()
        wait = self._rates.wait(partition.topic, loop.time())
        if wait > 0 and partition not in self._waking:
            self._waking[partition] = loop.call_later(wait, self._wake, partition)
        return wait <= 0

    def _wake(self, partition: Partition) -> None:
        del self._waking[partition]
        self._nudge(partition)
