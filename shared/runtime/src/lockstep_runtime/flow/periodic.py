"""Work in rounds: again and again, sooner when asked, with back-off and one clear line while a cluster gives
trouble."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from lockstep_config.keys.python_classes import ClassFailed
from lockstep_kafka.common.asyncio_util import cancelled_from_within, set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog


class RoundInterrupted(Exception):
    """The work of the service ended before a round that a refresh waited for. The connector is paused, stopped or
    restarted."""


class PeriodicTasks:
    """The periodic work of one service in one flow."""

    def __init__(
        self,
        log: FlowLog,
        monotonic: Callable[[], float],
        ended: Callable[[str, bool], None] = lambda _, __: None,
        around: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """`ended` gets the name of each round, and whether it failed. `around` makes what each round is done within, by
        its name."""
        self.troubles = FailureTracker(log)
        self._ended = ended
        self._around = around
        self._monotonic = monotonic
        self._asked: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._triggered: set[str] = set()

    async def every(
        self, name: str, interval: timedelta, round_: Callable[[], Awaitable[None]], *, rest: float = 0.0
    ) -> None:
        """Do a round now, then `interval` after the beginning of the last one (at once if that is past), for ever.

        `rest`: not sooner after a round's end than so many times the processor time that the process took for it. So
        work that grows with the cluster does not come to fill a core. A hurried round does not wait for that either.
        Waiting for a cluster costs nothing.

        A ClusterError, or a failing class that the file names, is named once and retried with back-off from half a
        second. The back-off is at most 30 s or the interval, whichever is less, and 5 s where the cluster does not
        answer. All other errors are raised. `name` is shown: use words such as "topic refresh".
        """
        asked = self._asked.setdefault(name, asyncio.Event())
        backoff = Backoff(limit=max(5.0, min(30.0, interval.total_seconds())))
        while True:
            if asked.is_set():
                self._triggered.add(name)
            else:
                self._triggered.discard(name)
            asked.clear()
            # A request during the round is for a round that begins afterwards.
            waiting = self._waiting.pop(name, [])
            began, worked = self._monotonic(), time.process_time()
            try:
                with self._around(name):
                    await round_()
            except (ClusterError, ClassFailed) as trouble:
                self.troubles.began(name, trouble)
                self._ended(name, True)
                _answer(waiting, trouble)
                wait = backoff.after(trouble)
            except asyncio.CancelledError as exc:
                # Not cancelled themselves: that would cancel who waits, and nothing would show that.
                if not cancelled_from_within():
                    _answer(waiting, RoundInterrupted(name))
                    raise
                mistake = RuntimeError(f"{name} was cancelled from within")
                _answer(waiting, mistake)
                raise mistake from exc
            except Exception as exc:
                _answer(waiting, exc)
                raise
            else:
                self.troubles.over(name)
                self._ended(name, False)
                backoff.reset()
                _answer(waiting, None)
                elapsed_s = self._monotonic() - began
                wait = max(interval.total_seconds() - elapsed_s, rest * (time.process_time() - worked))
            if wait > 0:
                await set_within(asked, wait)

    def trigger(self, name: str) -> None:
        """Let the named round come at once. A name without a round is ignored."""
        if name in self._asked:
            self._asked[name].set()

    def was_triggered(self, name: str) -> bool:
        """Within a round: whether it came because somebody asked, not because its time had come."""
        return name in self._triggered

    async def refresh(self) -> None:
        """Let every round come now and wait for all of them. Raises the first trouble one of them ended with, and
        RoundInterrupted when the work of the service ended before that."""
        loop = asyncio.get_running_loop()
        futures = []
        for name in self._asked:
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(name, []).append(future)
            futures.append(future)
            self._asked[name].set()
        if futures:
            await asyncio.gather(*futures)

    def reset(self) -> None:
        """No task works on rounds any more: we gave up the leadership, or the connector is not to run now."""
        for name, waiting in self._waiting.items():
            _answer(waiting, RoundInterrupted(name))
        self._waiting.clear()
        self._asked.clear()


def _answer(waiting: list[asyncio.Future[None]], trouble: Exception | None) -> None:
    for future in waiting:
        if not future.done():
            if trouble is None:
                future.set_result(None)
            else:
                future.set_exception(trouble)
