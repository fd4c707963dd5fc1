"""The topics that the console follows on one target: one client for all, and one look at them every ten seconds.

A topic may be deleted, or deleted and created again, without an error for its reader. And librdkafka may stop fetching
a partition for good (`StallDetector`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.topics_follower import FollowedTopic, TopicsFollower

CHECK_INTERVAL_S = 10.0
"""The seconds between two looks at all topics."""

PARTITION = 0
"""The only partition of these topics that counts (`architecture.md` §3)."""


@dataclass(slots=True)
class CheckedTopic:
    """A topic that is followed, and what the last look at it showed."""

    followed: FollowedTopic
    topic_id: str
    begin_anew: Callable[[], None]
    stood_at: int = -1
    """The position at the last look, if the log had more then; else -1."""


class TargetTopics:
    """The followed topics of one target. Run it as long as the console lives."""

    def __init__(self, settings: FlowSettings, target: Admin) -> None:
        """Take any flow to the target, for the settings of the client, and the administration of the target."""
        alias = settings.flow.target
        self.target = target
        self.follower = TopicsFollower(
            client_settings.target_consumer(settings, "console"),
            alias,
            access=needed_access(settings, alias),
            partition=PARTITION,
        )
        self._checked: dict[str, CheckedTopic] = {}

    def check(self, topic: CheckedTopic) -> None:
        """Look at a topic from now on. `begin_anew` is called once it has to be read from its beginning."""
        self._checked[topic.followed.topic] = topic

    def leave(self, followed: FollowedTopic) -> None:
        """Read a topic no further."""
        checked = self._checked.get(followed.topic)
        if checked is not None and checked.followed is followed:
            del self._checked[followed.topic]
        self.follower.leave(followed)

    async def run(self) -> None:
        """Look at all topics until cancelled."""
        try:
            while True:
                await asyncio.sleep(CHECK_INTERVAL_S)
                try:
                    await self._look()
                except ClusterError:
                    continue  # the client goes on by itself once the cluster is there; reports say that it is away
        finally:
            self.follower.end()

    async def _look(self) -> None:
        checked = dict(self._checked)
        if not checked:
            return
        described = (await self.target.topics(checked)).require_done()
        ends = await self.target.end_offsets([(name, PARTITION) for name in checked], read_committed=True)
        for name, topic in checked.items():
            present = described.get(name)
            if present is None or present.topic_id != topic.topic_id or self._stands_still(topic, ends.get((name, 0))):
                topic.begin_anew()

    def _stands_still(self, topic: CheckedTopic, end: int | None) -> bool:
        """Return whether nothing came since the last look, although the log has had more for so long."""
        position, stood_at = topic.followed.position, topic.stood_at
        topic.stood_at = position if end is not None and end > position else -1
        return topic.stood_at >= 0 and stood_at == position
