"""Restarts of a task of a flow after a `ClusterError` (`restarts.md`)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError, errors_in


class TaskRestarts:
    """Run one task again after each `ClusterError`, with pauses that double."""

    def __init__(
        self,
        report: Callable[[ClusterError], None],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        longest_s: float = 30.0,
        wake: asyncio.Event | None = None,
    ) -> None:
        """Create restarts without failures.

        Args:
            report: Gets each error before the pause that follows it.
            monotonic: Seconds of a clock that does not go back.
            longest_s: The longest pause. It is 5 s at most while a cluster does not answer.
            wake: Ends a pause when it is set. The task clears it.
        """
        self.failures = 0
        self.backoff = Backoff(limit=longest_s)
        self._report = report
        self._monotonic = monotonic
        self._wake = asyncio.Event() if wake is None else wake

    async def run_forever(self, task: Callable[[], Awaitable[None]]) -> NoReturn:
        """Run the task until cancelled. Ten seconds of work take back one step of the pauses.

        Raises what the task raises, except a `ClusterError`.
        """
        while True:
            began, error = self._monotonic(), None
            try:
                await task()
            except* ClusterError as group:
                error = next(errors_in(group))
                self.failures += 1
                self._report(error)
            self.backoff.forget_failures(self._monotonic() - began)
            await set_within(self._wake, self.backoff.next_after(error))
