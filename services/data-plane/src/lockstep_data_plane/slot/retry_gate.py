"""Partitions that wait for a broker or a leader: the first that gets through wakes the others."""

import asyncio

from lockstep_data_plane.wire.connection import BrokerUnreachable
from lockstep_runtime.util.asyncio_util import set_within

AT_MOST_S = 4.0
"""However long a broker has been away. Those who wait ask together for the metadata, so it costs little to look."""

AT_LEAST_S = 0.5
"""Between two tries of one partition, however many others get through."""


class RetryGate:
    """Those of one slot. Thousands whose brokers come back one after the other would wait as long again as they have,
    each for itself."""

    def __init__(self) -> None:
        self._asleep: set[asyncio.Event] = set()
        self._through = 0

    async def after(self, trouble: BaseException, changed: asyncio.Event, seconds: float) -> None:
        """Wait before the next try. As `pause` if no broker could be reached, which others find out too. Else until
        `changed` is set, at most so many seconds."""
        if isinstance(trouble, BrokerUnreachable):
            await self.pause(changed, seconds)
        else:
            await set_within(changed, seconds)

    async def pause(self, changed: asyncio.Event, seconds: float) -> None:
        """Before the next try: until `changed` is set, or another got through, at most so many seconds and
        `AT_MOST_S`."""
        seconds, before = min(seconds, AT_MOST_S), self._through
        if await set_within(changed, min(seconds, AT_LEAST_S)) or self._through != before:
            return
        self._asleep.add(changed)
        try:
            await set_within(changed, seconds - AT_LEAST_S)
        finally:
            self._asleep.discard(changed)

    def got_through(self) -> None:
        """One found its brokers: every waiting partition tries now. Sets what those wait for."""
        self._through += 1
        for changed in self._asleep:
            changed.set()
        self._asleep.clear()
