"""Work in rounds: again and again, sooner when asked, with back-off and one clear line while a cluster gives
trouble."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from lockstep_config.keys.python_classes import ClassFailed
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.asyncio_util import set_within
from lockstep_runtime.util.backoff import Backoff
from lockstep_runtime.util.errors import ClusterError, ClusterUnreachable, NotPermitted, TopicDeleted

__all__ = ["FailureTracker", "PeriodicTasks"]

SAID_AT_ONCE = 10
"""Troubles that are worth a line each while they last: thousands of partitions may wait for one broker to lead them."""


class FailureTracker:
    """What is wrong just now, by where. Each is said once when it begins and once when it is over; an unreachable
    cluster and a permission that is missing once for all who notice, and of many others at once only the first ones.
    `others_say`: clusters of which somebody else says when they cannot be reached."""

    def __init__(self, log: FlowLog, others_say: Collection[str] = ()) -> None:
        self._log = log
        self._others_say = frozenset(others_say)
        self._now: dict[str, ClusterError | ClassFailed] = {}
        self._named: set[str] = set()
        """Those that were said by name."""
        self._others: set[str] = set()
        """The rest."""
        self._ever = 0
        """How many of these there have been since there were none."""

    @property
    def now(self) -> dict[str, str]:
        """Present troubles by name, for /status and /ready."""
        return {name: str(trouble) for name, trouble in self._now.items()}

    def began(self, name: str, trouble: ClusterError | ClassFailed) -> None:
        """`name` (such as "topic refresh") does not work because of `trouble`, and is tried again."""
        before = self._now.get(name)
        if isinstance(trouble, ClusterUnreachable):
            if not self._away(trouble.alias):
                self._log.warn(
                    "cluster unreachable", f"{trouble}; trying again", cluster=trouble.alias, reason=trouble.why
                )
        elif str(before) != str(trouble) and not self._is_repeated(name, trouble):
            self._log_failing(name, trouble)
        self._now[name] = trouble
        self._log_reached(before)

    def over(self, name: str) -> None:
        """`name` works (again). Cheap to say when it never failed."""
        before = self._now.get(name)
        if before is None:
            return
        del self._now[name]
        self._log_recovered(name, quietly=isinstance(before, ClusterUnreachable) or self._is_repeated(name, before))
        self._log_reached(before)

    def _log_failing(self, name: str, trouble: ClusterError | ClassFailed) -> None:
        about = {"cluster": trouble.alias} if isinstance(trouble, ClusterError) else {}
        if name in self._named or (name not in self._others and len(self._named) < SAID_AT_ONCE):
            self._named.add(name)
            if isinstance(trouble, TopicDeleted):
                self._log.warn(f"{name} deleted", f"{trouble}; it is looked for again", **about)
            else:
                self._log.warn(f"{name} failing", f"{trouble}; trying again", **about)
            return
        if not self._others:
            self._log.warn("others failing", f"{name} too; further failures are not logged; trying again", **about)
            self._ever = 0
        self._ever += name not in self._others
        self._others.add(name)
        self._log.debug(f"{name} failing", f"{trouble}; trying again", **about)

    def _log_recovered(self, name: str, *, quietly: bool) -> None:
        self._named.discard(name)
        if name in self._others:
            self._others.discard(name)
            self._log.debug(f"{name} recovered")
            if not self._others:
                self._log.info("others recovered", f"all that were not named, {self._ever:,}")
        elif not quietly:
            self._log.info(f"{name} recovered")

    def _is_repeated(self, name: str, trouble: ClusterError | ClassFailed) -> bool:
        """Whether another one lacks the same permission: it was said when that began, and its end is said with the
        last one's."""
        if not isinstance(trouble, NotPermitted) or trouble.remedy is None:
            return False
        others = (other for at, other in self._now.items() if at != name and isinstance(other, NotPermitted))
        return any(other.remedy is not None and other.remedy.command == trouble.remedy.command for other in others)

    def _away(self, alias: str) -> bool:
        """Whether nothing is to be said of the cluster: it is known to be away, or others say so."""
        away = (trouble.alias for trouble in self._now.values() if isinstance(trouble, ClusterUnreachable))
        return alias in self._others_say or alias in away

    def _log_reached(self, before: ClusterError | ClassFailed | None) -> None:
        if isinstance(before, ClusterUnreachable) and not self._away(before.alias):
            self._log.info("cluster reachable again", before.alias, cluster=before.alias)


class PeriodicTasks:
    """The periodic work of one service in one flow."""

    def __init__(
        self,
        log: FlowLog,
        monotonic: Callable[[], float],
        ended: Callable[[str, bool], None] = lambda _, __: None,
        around: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        """`ended` is told of each round: its name, and whether it failed. `around` makes what each round is done
        within, by its name."""
        self.troubles = FailureTracker(log)
        self._ended = ended
        self._around = around
        self._monotonic = monotonic
        self._asked: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._hurried: set[str] = set()

    async def every(
        self, name: str, interval: timedelta, round_: Callable[[], Awaitable[None]], *, rest: float = 0.0
    ) -> None:
        """Do a round now, then `interval` after the beginning of the last one (at once if that is past), for ever.

        `rest`: but no sooner after a round's end than so many times the processor time that the process took for it,
        so that work that grows with the cluster does not come to fill a core; who hurries a round does not wait for
        that either. What waited for a cluster costs nothing.

        A ClusterError, or a failing class that the file names, is named once and retried with back-off from half a
        second, at most 30 s or the interval, whichever is less, and 5 s where the cluster does not answer. Everything
        else gets out. `name` is shown: use words such as "topic refresh".
        """
        asked = self._asked.setdefault(name, asyncio.Event())
        backoff = Backoff(limit=max(5.0, min(30.0, interval.total_seconds())))
        while True:
            if asked.is_set():
                self._hurried.add(name)
            else:
                self._hurried.discard(name)
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
            except BaseException:
                for future in waiting:
                    future.cancel()
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

    def hurry(self, name: str) -> None:
        """Let the named round come at once. A name nobody works on is ignored."""
        if name in self._asked:
            self._asked[name].set()

    def hurried(self, name: str) -> bool:
        """Within a round: whether it came because somebody asked, not because its time had come."""
        return name in self._hurried

    async def refresh(self) -> None:
        """Let every round come now and wait for all of them. Raises the first trouble one of them ended with."""
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
        """We stood down: nobody works on rounds any more."""
        for futures in self._waiting.values():
            for future in futures:
                future.cancel()
        self._waiting.clear()
        self._asked.clear()


def _answer(waiting: list[asyncio.Future[None]], trouble: ClusterError | ClassFailed | None) -> None:
    for future in waiting:
        if not future.done():
            if trouble is None:
                future.set_result(None)
            else:
                future.set_exception(trouble)
