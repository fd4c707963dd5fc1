"""The state topic of a flow as a command reads it."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from lockstep_config import FlowSettings
from lockstep_kafka.topics.topic_follower import TopicFollower, target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.clusters import REFUSED_S, target_client
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.names import state_topic
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import MalformedRow, Row

SILENT_S = 15.0
"""A leader is elected within some seconds. A topic of which nothing comes for longer cannot be read."""


class FollowedRows(Protocol):
    """The rows of one flow, which go on coming while a command works."""

    @property
    def rows(self) -> Mapping[str, Row]:
        """Return the rows that were read."""

    @property
    def unreadable(self) -> Collection[str]:
        """Return sentences about records that are no rows."""

    async def catch_up_now(self) -> None:
        """Wait until everything was read that is in the topic now.

        Raises:
            ClusterError: The topic cannot be read.
        """

    async def wait_until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Return once the rows make `holds` true, or after `within_s` seconds with False."""


class StateTopicRows:
    """The rows of one flow that count, as far as they were read.

    Args:
        settings: The flow.
        client: The client id on the target.
        on_record: It is called after each record.
        silent_s: The seconds for which nothing may come while the topic is read to its end.
    """

    def __init__(
        self,
        settings: FlowSettings,
        client: str,
        on_record: Callable[[], None] | None = None,
        *,
        silent_s: float = SILENT_S,
    ) -> None:
        self._silent_s = silent_s
        self._settings = settings
        self._client = client
        self._on_record = on_record
        self.topic = state_topic(settings.flow, settings.group_id)
        self.fold = StateFold()
        self.unreadable: dict[bytes, str] = {}
        """Sentences about records that are no rows, by key."""

    @property
    def by_key(self) -> Mapping[str, Row]:
        return self.fold.rows

    async def replay(self) -> None:
        """Read what is in the topic now. Raises as `following`."""
        await (await self._follower()).replay(silent_s=self._silent_s)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[TopicFollower]:
        """Read what is in the topic, and go on reading.

        At the end the reading thread is not waited for: it may wait for the answer of a cluster that is gone.

        Raises:
            ClusterError: The target does not answer, which is not waited for, or the topic has no leader.
            TopicMissing: The flow has never run.
            NewerVersion: A row is of a newer release.
        """
        follower = await self._follower()
        follower.start()
        try:
            await follower.caught_up(silent_s=self._silent_s)
            yield follower
        finally:
            follower.end()

    async def _follower(self) -> TopicFollower:
        """Return a follower that is not started.

        Raises:
            ClusterError: The target does not answer. The follower itself would try again for ever.
        """
        await target_client(self._settings, refused_s=REFUSED_S).probe()
        return target_follower(self._settings, self._client, self.topic, self._apply, partitions=[0])

    def _apply(self, records: Sequence[Record]) -> None:
        for record in records:
            try:
                self.fold.fold(record.offset, record.key, record.value)
            except MalformedRow as exc:
                self.unreadable[record.key or b""] = f"{record.location}: {exc}"
            except NewerVersion as exc:
                raise exc.within(f"topic {self.topic} on cluster {self._settings.flow.target}") from exc
            else:
                self.unreadable.pop(record.key or b"", None)
            if self._on_record is not None:
                self._on_record()
