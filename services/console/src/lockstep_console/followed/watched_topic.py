"""One partition of a topic of a flow's target, followed for as long as the console lives.

A topic that is deleted, created again or truncated is read from its beginning. While it cannot be read, `trouble` says
why, and it is tried again.
"""

import asyncio
from collections.abc import Sequence

from lockstep_config import FlowSettings
from lockstep_console.followed.target_topics import PARTITION, CheckedTopic, TargetTopics
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.errors import ClusterError, LogTruncated, TopicMissing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_kafka.topics.topics_follower import FollowedTopic
from lockstep_runtime.util.task_restarts import TaskRestarts

LONGEST_PAUSE_S = 5.0

READ_WITHIN_S = 5.0
"""The seconds for which a request waits for the first reading of a topic, when the console has just begun."""


class WatchedTopic:
    """The topic. A subclass keeps what comes (`begin`, `apply`)."""

    def __init__(self, settings: FlowSettings, topics: TargetTopics, topic: str) -> None:
        self.settings, self.topic = settings, topic
        self._topics, self._target = topics, topics.target
        self._followed: FollowedTopic | None = None
        self._restarts = TaskRestarts(self._fail, longest_s=LONGEST_PAUSE_S)
        self._judged = asyncio.Event()
        self.trouble: ClusterError | None = ClusterError(settings.flow.target, f"topic {topic} is not read yet")
        """Why the topic is not followed now; None while it is."""

    def begin(self) -> None:
        """Forget what was kept: the topic is read from its beginning."""
        raise NotImplementedError

    def apply(self, records: Sequence[Record]) -> None:
        """Keep records, in log order."""
        raise NotImplementedError

    async def first_offset(self) -> int:
        """Return the offset to begin at, if the log has it; 0 is the first one."""
        return 0

    @property
    def position(self) -> int:
        """Return the offset behind the last record that was read, or -1 while nothing is followed."""
        return -1 if self._followed is None else self._followed.position

    async def judged(self) -> None:
        """Return once the topic was read to its end for the first time, or it is known why it cannot be."""
        await self._judged.wait()

    async def wait_read(self) -> None:
        """Return once the topic was read, or it is known why it cannot be.

        If that takes long, `trouble` says so.
        """
        await set_within(self._judged, READ_WITHIN_S)

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._restarts.run_forever(self._follow)

    async def _follow(self) -> None:
        described = await self._target.topic(self.topic)
        if described is None:
            raise TopicMissing(self._target.alias, self.topic)
        tp = (self.topic, PARTITION)
        first = (await self._target.begin_offsets([tp])).get(tp)
        end = (await self._target.end_offsets([tp], read_committed=True)).get(tp)
        if first is None or end is None:
            raise ClusterError(self._target.alias, f"topic {self.topic} does not say where it begins and ends")
        first = max(first, await self.first_offset())
        self.begin()
        is_other = asyncio.Event()
        followed = self._topics.follower.follow(self.topic, first, end, self.apply)
        self._topics.check(CheckedTopic(followed, described.topic_id, is_other.set))
        failing, waiting = asyncio.ensure_future(followed.failed()), asyncio.ensure_future(is_other.wait())
        reading = asyncio.ensure_future(followed.caught_up())
        try:
            await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
                self._followed, self.trouble = followed, None
                self._judged.set()
                self._restarts.backoff.reset()
                await asyncio.wait({failing, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if failing.done():
                failing.result()
        finally:
            self._followed = None
            self._topics.leave(followed)
            for task in (failing, waiting, reading):
                task.cancel()
        raise LogTruncated(self._target.alias, self.topic, PARTITION, followed.position)

    def _fail(self, trouble: ClusterError) -> None:
        self.trouble = trouble
        self._judged.set()
