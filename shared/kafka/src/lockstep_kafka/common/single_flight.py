"""Work that is done once for all callers that ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable


class SingleFlight:
    """Shared work that finds out a state. One instance belongs to one event loop."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._working = asyncio.Lock()
        self._begun = float("-inf")
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Wait for a run of the work that begins after this call, and raise what it raises.

        A caller that comes while the work runs shares the next run. If a caller is cancelled, the next one does its
        run.
        """
        called_at = asyncio.get_running_loop().time()
        async with self._working:
            if self._begun <= called_at:
                begun, failure = asyncio.get_running_loop().time(), None
                try:
                    await self._work()
                except Exception as exc:  # noqa: BLE001  # raised for each who asked
                    failure = exc
                self._begun, self._failure = begun, failure
            if self._failure is not None:
                raise self._failure.with_traceback(None)
