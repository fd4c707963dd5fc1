"""Periodic work in rounds: sooner when asked, and with back-off while a cluster does not answer or refuses."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from lockstep_config.keys.python_classes import ClassFailed
from lockstep_kafka.common.asyncio_util import is_cancelled_from_within, set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog


class RoundInterrupted(Exception):
    """The work of the service ended before the end of a round that a refresh waited for.

    The connector is paused, stopped or restarted.
    """


class PeriodicTasks:
    """The periodic work of one service in one flow."""

    def __init__(
        self,
        log: FlowLog,
        monotonic: Callable[[], float],
        ended: Callable[[str, bool], None] = lambda _, __: None,
        around: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """Create it without rounds.

        Args:
            log: Gets one line when a round begins to fail, and one when it works again.
            monotonic: Seconds of a clock that does not go back.
            ended: Gets the name of each round that has ended, and whether it failed.
            around: Returns, by the name of a round, the context in which the round runs.
        """
        self.troubles = FailureTracker(log)
        self._ended = ended
        self._around = around
        self._monotonic = monotonic
        self._requests: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._triggered: set[str] = set()

    async def every(
        self, name: str, interval: timedelta, round_: Callable[[], Awaitable[None]], *, pause_factor: float = 0.0
    ) -> None:
        """Run a round now, then each `interval` after the beginning of the last one, until cancelled.

        A round that takes longer than the interval is followed by the next one at once. A ClusterError, or a failing
        class that the file names, is logged once, and the round is retried after a pause. Pauses double from 0.5 s up
        to the interval, of which 5 s is the least and 30 s the most. They are 5 s at most while a cluster does not
        answer (`restarts.md`). All other errors are raised.

        Args:
            name: The name of the round in logs, such as "topic refresh".
            interval: The time between the beginnings of two rounds.
            round_: The work.
            pause_factor: The least pause after a round, as a multiple of the processor time that the process took for
                it. So work that grows with the cluster never fills a core. A triggered round does not wait for it.
        """
        requested = self._requests.setdefault(name, asyncio.Event())
        backoff = Backoff(limit=max(5.0, min(30.0, interval.total_seconds())))
        while True:
            if requested.is_set():
                self._triggered.add(name)
            else:
                self._triggered.discard(name)
            requested.clear()
            # A request during the round is for a round that begins afterwards.
            waiting = self._waiting.pop(name, [])
            began, worked = self._monotonic(), time.process_time()
            try:
                with self._around(name):
                    await round_()
            except (ClusterError, ClassFailed) as trouble:
                self.troubles.record_failure(name, trouble)
                self._ended(name, True)
                _answer(waiting, trouble)
                wait = backoff.next_after(trouble)
            except asyncio.CancelledError as exc:
                # The futures get an error: to cancel them would cancel their callers, and nothing would show that.
                if not is_cancelled_from_within():
                    _answer(waiting, RoundInterrupted(name))
                    raise
                defect = RuntimeError(f"{name} was cancelled from within")
                _answer(waiting, defect)
                raise defect from exc
            except Exception as exc:
                _answer(waiting, exc)
                raise
            else:
                self.troubles.record_success(name)
                self._ended(name, False)
                backoff.reset()
                _answer(waiting, None)
                elapsed_s = self._monotonic() - began
                wait = max(interval.total_seconds() - elapsed_s, pause_factor * (time.process_time() - worked))
            if wait > 0:
                await set_within(requested, wait)

    def trigger(self, name: str) -> None:
        """Start the named round at once. A name without a round is ignored."""
        if name in self._requests:
            self._requests[name].set()

    def was_triggered(self, name: str) -> bool:
        """Return, within a round, whether it was triggered rather than due."""
        return name in self._triggered

    async def refresh(self) -> None:
        """Run every round now and wait for all of them.

        Raises:
            RoundInterrupted: The work of the service ended before that.
            ClusterError: The first trouble that one of the rounds ended with.
        """
        loop = asyncio.get_running_loop()
        futures = []
        for name in self._requests:
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(name, []).append(future)
            futures.append(future)
            self._requests[name].set()
        if futures:
            await asyncio.gather(*futures)

    def reset(self) -> None:
        """Forget all rounds: the leadership was given up, or the connector is not to run now."""
        for name, waiting in self._waiting.items():
            _answer(waiting, RoundInterrupted(name))
        self._waiting.clear()
        self._requests.clear()


def _answer(waiting: list[asyncio.Future[None]], trouble: Exception | None) -> None:
    for future in waiting:
        if not future.done():
            if trouble is None:
                future.set_result(None)
            else:
                future.set_exception(trouble)
