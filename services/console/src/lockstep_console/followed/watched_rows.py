"""The rows of one flow, as its state topic has them now."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from lockstep_config import FlowSettings
from lockstep_console.followed.raw_fold import RawFold
from lockstep_console.followed.target_topics import PARTITION, TargetTopics
from lockstep_console.followed.watched_topic import WatchedTopic
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.topic_reader import Record
from lockstep_state.names import state_topic
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row

CAUGHT_UP_WITHIN_S = 3.0

READ_AT_ONCE = 500
"""Rows that are read in one piece, in some hundredths of a second. Then other flows and requests have their turn."""


class WatchedRows(WatchedTopic):
    """The rows (`FollowedRows`). `on_rows` gets the records as they come, once all of before are read."""

    def __init__(
        self, settings: FlowSettings, topics: TargetTopics, on_rows: Callable[[Sequence[Record]], None]
    ) -> None:
        super().__init__(settings, topics, state_topic(settings.flow, settings.group_id))
        self._on_rows = on_rows
        self._fold = RawFold()
        self._came = asyncio.Event()

    @property
    def rows(self) -> Mapping[str, Row]:
        """Return the rows that count, by key.

        Raises:
            NewerVersion: A row is of a newer release.
        """
        return self._fold.rows

    def find(self, key: str) -> Row | None:
        """Return one row, which is much cheaper than `rows`, or None if there is none or it is of a newer release.

        The status of the flow says that a row is of a newer release.
        """
        try:
            return self._fold.get(key)
        except NewerVersion:
            return None

    @property
    def unreadable(self) -> Collection[str]:
        """Return sentences about records that are no rows."""
        return self._fold.unreadable.values()

    def begin(self) -> None:
        self._fold = RawFold()

    def apply(self, records: Sequence[Record]) -> None:
        add = self._fold.add
        for record in records:
            add(record)
        self._came.set()
        if self.trouble is None:
            self._on_rows(records)

    async def catch_up_now(self) -> None:
        """Return once everything was read that is in the topic now.

        Raises:
            ClusterError: The topic is not followed, or not read to its end in time.
        """
        if self.trouble is not None:
            raise self.trouble.with_traceback(None)
        tp = (self.topic, PARTITION)
        ends = await self._target.end_offsets([tp], read_committed=True)
        if tp not in ends:
            raise ClusterError(self._target.alias, f"topic {self.topic} does not say where it ends")
        if not await self.wait_until(lambda: self._reaches(ends[tp]), CAUGHT_UP_WITHIN_S):
            alias = self._target.alias
            raise ClusterError(alias, f"{alias}: topic {self.topic} cannot be read up to offset {ends[tp] - 1}")
        await self.read_waiting()

    async def read_waiting(self) -> None:
        """Read the rows that came since, piece by piece: a flow of 100,000 partitions has as many at its beginning."""
        fold = self._fold
        while fold.read_some(READ_AT_ONCE):
            await asyncio.sleep(0)

    async def wait_until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Return True once `holds` is true after a record, or False after `within_s` seconds.

        Raises:
            ClusterError: The topic is not followed any more.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not holds():
            if self.trouble is not None:
                raise self.trouble.with_traceback(None)
            self._came.clear()
            if not await set_within(self._came, max(0.0, deadline - loop.time())):
                return holds()
        return True

    def _reaches(self, end: int) -> bool:
        """Return whether all records before `end` were read. The last offsets may hold no record."""
        return max(self.position, self._fold.position + 1) >= end
