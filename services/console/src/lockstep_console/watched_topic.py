"""One partition of a topic of a flow's target, followed for as long as the console lives.

A topic that is deleted, created again or truncated is read from its beginning. While it cannot be read, `trouble` says
why, and it is tried again.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LogTruncated, TopicMissing
from lockstep_kafka.topics.topic_follower import TopicFollower, target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.util.task_restarts import TaskRestarts

PARTITION = 0
"""The only partition of these topics that counts (`architecture.md` §3)."""

WAITS_S = 2.0
"""The seconds for which the thread of an idle topic waits at a time. A service wakes oftener, because it leads."""

ANSWERS_WITHIN = timedelta(seconds=2)

CHECK_INTERVAL_S = 10.0
"""The seconds after which a topic that is followed is looked for again: it may be another one by now."""

LONGEST_PAUSE_S = 5.0


class WatchedTopic:
    """The topic. A subclass keeps what comes (`begin`, `apply`)."""

    def __init__(self, settings: FlowSettings, target: Admin, topic: str) -> None:
        self.settings, self.topic = settings, topic
        self._target = target
        self._follower: TopicFollower | None = None
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

    async def first_offset(self) -> int | None:
        """Return the offset to begin at; None is the first one."""
        return None

    @property
    def silence(self) -> str:
        """Return why the cluster is not reached now by the client that follows, or ""."""
        return "" if self._follower is None else self._follower.trouble

    async def judged(self) -> None:
        """Return once the topic was read to its end for the first time, or it is known why it cannot be."""
        await self._judged.wait()

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._restarts.run_forever(self._follow)

    async def _follow(self) -> None:
        await self._target.probe(ANSWERS_WITHIN)
        described = await self._target.topic(self.topic)
        if described is None:
            raise TopicMissing(self._target.alias, self.topic)
        first = await self.first_offset()
        self.begin()
        follower = target_follower(
            self.settings,
            "console",
            self.topic,
            self.apply,
            partitions=[PARTITION],
            starts={} if first is None else {PARTITION: first},
            wait_s=WAITS_S,
        )
        follower.start()
        try:
            await follower.caught_up()
            self._follower, self.trouble = follower, None
            self._judged.set()
            self._restarts.backoff.reset()
            await self._until_changed(follower, described.topic_id)
        finally:
            self._follower = None
            follower.end()  # its thread is not waited for: it may wait for a cluster that is away
        raise LogTruncated(self._target.alias, self.topic, PARTITION, follower.positions.get(PARTITION, 0))

    async def _until_changed(self, follower: TopicFollower, topic_id: str) -> None:
        """Return once the topic is another one, or raise what ends the follower."""
        failed = asyncio.ensure_future(follower.failed())
        try:
            while True:
                done, _ = await asyncio.wait({failed}, timeout=CHECK_INTERVAL_S)
                if done:
                    return failed.result()
                try:
                    described = await self._target.topic(self.topic)
                except ClusterUnreachable:
                    continue  # the follower goes on by itself once the cluster is there
                if described is None:
                    raise TopicMissing(self._target.alias, self.topic)
                if described.topic_id != topic_id:
                    return None
        finally:
            failed.cancel()

    def _fail(self, trouble: ClusterError) -> None:
        self.trouble = trouble
        self._judged.set()
