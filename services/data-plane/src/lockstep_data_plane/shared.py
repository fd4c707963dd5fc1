"""Work that is done once for all who ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["Shared"]


class Shared:
    """Work that finds out how something stands. One instance belongs to one event loop."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._working = asyncio.Lock()
        self._begun = float("-inf")

    async def done(self) -> None:
        """Returns once the work was done from beginning to end after this call: who asks while it is being done shares
        the next time. Raises what the work raises; whoever waits then tries again."""
        asked = asyncio.get_running_loop().time()
        async with self._working:
            if self._begun > asked:
                return
            begun = asyncio.get_running_loop().time()
            await self._work()
            self._begun = begun
