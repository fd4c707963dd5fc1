"""The turns in which the reports of all flows are read: how many at a time, and how often each flow."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Protocol

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import share_kept_s

AT_ONCE = 4
"""Reports that are read at the same time. Each asks both clusters of its flow."""

LONGEST_TURN_S = 0.5
"""The seconds after which the next flow has its turn, although the report is still read: it waits for a cluster."""

SOONEST_S, LOOKED_AT_SHARE, LOOKED_AT_MOST_S = 2.0, 0.1, 30.0
"""The shortest wait before a report is read again, the share of a core that all reports of flows may take that somebody
looks at, and the longest wait for it."""

UNSEEN_S, UNSEEN_SHARE, UNSEEN_AT_MOST_S = 60.0, 0.01, 600.0
"""The same for all reports while nobody looks."""


class Watched(Protocol):
    """A flow whose reports are read in turns."""

    @property
    def is_looked_at(self) -> bool:
        """Return whether somebody looks at it."""


class ReportTurns:
    """The turns of all flows. What the process takes meanwhile is shared by the turns that run at the same time."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asking: Counter[Admin] = Counter()
        self._watched: defaultdict[Admin, list[Watched]] = defaultdict(list)
        self._spent_each = 0.0
        """The processor time that a turn would have been charged that has run since the beginning."""
        self._charged_up_to = time.process_time()

    def add(self, watched: Watched, source: Admin) -> None:
        """Take a flow whose reports are read in these turns."""
        self._watched[source].append(watched)

    @asynccontextmanager
    async def turn(self, source: Admin) -> AsyncIterator[Callable[[], float]]:
        """Wait for a turn to read a report, and give the function that says what processor time it took up to now.

        A cluster that does not answer keeps no other flow waiting: after `LONGEST_TURN_S` the turn is the next one's.
        A source that nobody looks at keeps no connection afterwards.
        """
        await self._turns.acquire()
        with ExitStack() as turn:
            turn.callback(self._turns.release)
            ending = asyncio.get_running_loop().call_later(LONGEST_TURN_S, turn.close)
            turn.callback(ending.cancel)
            began = self._charge()
            self._asking[source] += 1
            try:
                yield lambda: self._charge() - began
            finally:
                self._charge()
                self._asking[source] -= 1
        if not self._asking[source] and not any(watched.is_looked_at for watched in self._watched[source]):
            await source.close()

    def _charge(self) -> float:
        """Charge the turns that run with what the process took since the last time."""
        used = time.process_time()
        self._spent_each += (used - self._charged_up_to) / max(1, self._asking.total())
        self._charged_up_to = used
        return self._spent_each

    def looked_at_s(self, cost_s: float) -> float:
        """Return the seconds until a report that took this processor time may be read again while somebody looks."""
        share = LOOKED_AT_SHARE / max(1, sum(watched.is_looked_at for watched in self._all()))
        return share_kept_s(cost_s, share, soonest=SOONEST_S, latest=LOOKED_AT_MOST_S)

    def unseen_s(self, cost_s: float) -> float:
        """Return the seconds until it is read again while nobody looks."""
        share = UNSEEN_SHARE / max(1, len(self._all()))
        return share_kept_s(cost_s, share, soonest=UNSEEN_S, latest=UNSEEN_AT_MOST_S)

    def _all(self) -> list[Watched]:
        return [watched for some in self._watched.values() for watched in some]
