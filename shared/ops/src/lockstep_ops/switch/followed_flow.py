"""The rows of one flow while a command works: they are read once, and go on coming."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.topic_follower import TopicFollower
from lockstep_ops.clusters import target_client
from lockstep_ops.status.state_topic_rows import StateTopicRows
from lockstep_state.rows.state_rows import Row

CAUGHT_UP_WITHIN_S = 30.0


class FollowedFlow:
    """A flow whose state topic is read while a command works. Use it within `following`."""

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self._record_read = asyncio.Event()
        self._rows = StateTopicRows(settings, "switch", self._on_record)
        self._follower: TopicFollower

    @property
    def rows(self) -> Mapping[str, Row]:
        """Return the rows of the flow that count, as far as they have come."""
        return self._rows.by_key

    @property
    def unreadable(self) -> Collection[str]:
        """Return sentences about records that are no rows."""
        return self._rows.unreadable.values()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        """Read the topic to its end, and go on reading. Raises as `StateTopicRows.following`."""
        async with self._rows.following() as follower:
            self._follower = follower
            yield self

    async def catch_up(self, offset: int) -> None:
        """Return once the record at this offset was read.

        Raises:
            ClusterError: It is not read in time.
        """
        if not await self.wait_until(lambda: self._rows.fold.position >= offset, CAUGHT_UP_WITHIN_S):
            alias = self.settings.flow.target
            raise ClusterError(alias, f"{alias}: the state topic cannot be read up to offset {offset}")

    async def catch_up_now(self) -> None:
        """Return once everything was read that is in the topic now.

        Raises:
            ClusterError: The topic cannot be read to its end.
        """
        topic = self._rows.topic
        ends = await target_client(self.settings).end_offsets([(topic, 0)])
        if (topic, 0) not in ends:
            raise ClusterError(self.settings.flow.target, f"topic {topic} does not say where it ends")
        await self.catch_up(ends[topic, 0] - 1)

    async def wait_until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Return True once the rows make `holds` true, or False after `within_s` seconds.

        It raises what ends the follower.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        ended = asyncio.ensure_future(self._follower.failed())
        try:
            while not holds():
                self._record_read.clear()
                record_read = asyncio.ensure_future(self._record_read.wait())
                timeout = max(0.0, deadline - loop.time())
                done, _ = await asyncio.wait({record_read, ended}, timeout=timeout, return_when="FIRST_COMPLETED")
                record_read.cancel()
                if ended in done:
                    ended.result()
                    raise ClusterError(self.settings.flow.target, "the state topic is not followed any more")
                if not done:
                    return holds()
            return True
        finally:
            ended.cancel()

    def _on_record(self) -> None:
        self._record_read.set()


class OppositeFlow:
    """The flow in the other direction, whose rows are on the source. Use it within `async with`.

    Its rows are first read when they are needed, because a failover does without its source.
    """

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self._stack = AsyncExitStack()
        self._followed: FollowedFlow | None = None
        self._reading = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def follow(self) -> FollowedFlow:
        """Return the flow with all rows that are in its topic now.

        Raises:
            ClusterError: Its cluster does not answer, or the flow has never run (TopicMissing). It can be asked again.
            NewerVersion: A newer release wrote a row.
        """
        async with self._reading:
            if self._followed is not None:
                try:
                    await self._followed.catch_up_now()
                except ClusterError:  # the follower may have ended for good
                    self._followed = None
                    await self._stack.aclose()
                    raise
                return self._followed
            followed = FollowedFlow(self.settings)
            await self._stack.enter_async_context(followed.following())
            self._followed = followed
            return followed
