"""Work in rounds: again and again, sooner when asked, with back-off and one clear line while a cluster gives
trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from lockstep_runtime.errors import ClusterTrouble
from lockstep_runtime.log import FlowLog
from lockstep_runtime.retry import Backoff

__all__ = ["Rounds", "Troubles"]


class Troubles:
    """What is wrong just now, by where: says so once when it begins or changes, and once when it is over."""

    def __init__(self, log: FlowLog) -> None:
        self._log = log
        self._now: dict[str, str] = {}

    @property
    def now(self) -> dict[str, str]:
        """Present troubles by name, for /status and /ready."""
        return dict(self._now)

    def began(self, name: str, trouble: ClusterTrouble | str) -> None:
        text = str(trouble)
        if self._now.get(name) != text:
            known = name in self._now
            self._now[name] = text
            if not known or not text.startswith("cluster"):
                self._log.warn(f"{name} failing", f"{text}; trying again", trouble=name)

    def over(self, name: str) -> None:
        if self._now.pop(name, None) is not None:
            self._log.say(f"{name} recovered", trouble=name)


class Rounds:
    """The periodic work of one service in one flow."""

    def __init__(self, log: FlowLog, monotonic: Callable[[], float]) -> None:
        self.troubles = Troubles(log)
        self._monotonic = monotonic
        self._asked: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    async def every(self, name: str, interval: timedelta, round_: Callable[[], Awaitable[None]]) -> None:
        """Do a round now, then `interval` after the beginning of the last one (at once if that is past), for ever.

        A ClusterTrouble is named once and retried with back-off from half a second, at most 30 s or the interval,
        whichever is more. Everything else gets out. `name` is shown: use words such as "topic refresh".
        """
        asked = self._asked.setdefault(name, asyncio.Event())
        backoff = Backoff(limit=max(5.0, min(30.0, interval.total_seconds())))
        while True:
            asked.clear()
            # Who asks while the round is under way wants one that began afterwards.
            waiting = self._waiting.pop(name, [])
            began = self._monotonic()
            try:
                await round_()
            except ClusterTrouble as trouble:
                self.troubles.began(name, trouble)
                _answer(waiting, trouble)
                wait = backoff.next()
            else:
                self.troubles.over(name)
                backoff.reset()
                _answer(waiting, None)
                wait = interval.total_seconds() - (self._monotonic() - began)
            if wait > 0:
                try:
                    await asyncio.wait_for(asked.wait(), wait)
                except TimeoutError:
                    continue

    def hurry(self, name: str) -> None:
        """Let the named round come at once. A name nobody works on is ignored."""
        if name in self._asked:
            self._asked[name].set()

    async def refresh(self) -> None:
        """Let every round come now and wait for all of them. Raises the first ClusterTrouble one of them ended with."""
        loop = asyncio.get_running_loop()
        futures = []
        for name in self._asked:
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(name, []).append(future)
            futures.append(future)
            self._asked[name].set()
        if futures:
            await asyncio.gather(*futures)

    def forget(self) -> None:
        """We stood down: nobody works on rounds any more."""
        for futures in self._waiting.values():
            for future in futures:
                future.cancel()
        self._waiting.clear()
        self._asked.clear()


def _answer(waiting: list[asyncio.Future[None]], trouble: ClusterTrouble | None) -> None:
    for future in waiting:
        if not future.done():
            if trouble is None:
                future.set_result(None)
            else:
                future.set_exception(trouble)
