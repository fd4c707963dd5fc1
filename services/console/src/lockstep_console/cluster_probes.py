"""Ask the clusters of all flows whether they answer, while somebody looks. A cluster of several flows is asked once.

A report of many flows takes longer than an operator wants to wait for this sentence: so the clusters are asked for it
alone.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta

from lockstep_console.flow_watch import FlowWatch
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import without_end
from lockstep_kafka.common.errors import ClusterError

INTERVAL_S = 1.5
"""The seconds between two questions to one cluster."""

ANSWERS_WITHIN = timedelta(seconds=2)
"""The time within which a cluster has to answer. With the interval it is less than the five seconds of the page."""


class ClusterProbes:
    """One question after the other to each cluster. Run it as long as the console lives."""

    def __init__(self, watches: Iterable[FlowWatch]) -> None:
        self._watches: dict[Admin, list[FlowWatch]] = {}
        for watch in watches:
            for admin in (watch.clients.source, watch.clients.target):
                self._watches.setdefault(admin, []).append(watch)

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for admin, watches in self._watches.items():
                tasks.create_task(without_end(f"the look at cluster {admin.alias}", self._ask(admin, watches)))

    async def _ask(self, admin: Admin, watches: Sequence[FlowWatch]) -> None:
        while True:
            if any(watch.is_looked_at for watch in watches):
                sentence = await self._trouble(admin)
                for watch in watches:
                    watch.note_cluster(admin.alias, sentence)
            await asyncio.sleep(INTERVAL_S)

    async def _trouble(self, admin: Admin) -> str:
        try:
            await admin.probe(ANSWERS_WITHIN)
        except ClusterError as exc:
            return str(exc)
        return ""
