"""Reads where the logs of the source end, together with the topics that these ends are of.

Topics and partitions appear while a step waits. So the topics are read again whenever the ends are read, and what
appears counts as something that moved.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from lockstep_ops.switch.followed_flow import FollowedFlow
from lockstep_ops.switch.switch_clusters import NotFoundYet, StepFailed, SwitchClusters
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_positions import records_by_partition, switched_topics
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.clock import now_ms
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic

STILL_S = 1.0
"""The seconds between two reads of the source's ends. If both are equal, the logs stand still."""

FENCE = "Stop them, or say up to when to copy with --cutoff"

ReadEnds = Callable[[Sequence[MirroredTopic]], Awaitable[dict[TopicPartition, int]]]


class SourceLogs(NamedTuple):
    """Topics, the ends of their logs on the source, and when these were asked for, Unix milliseconds."""

    topics: Sequence[MirroredTopic]
    ends: Mapping[TopicPartition, int]
    asked_ms: int


class SourceEndsReader:
    """A reader of the ends of the source topics that a switch is about."""

    def __init__(self, log: SwitchLog, clusters: SwitchClusters, progress: WorkProgress) -> None:
        self._log = log
        self._clusters = clusters
        self._progress = progress

    @property
    def topics(self) -> list[MirroredTopic]:
        """Return the topics of the switch that the flow has found."""
        return selected_topics(self._log, self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self._log.switch is None else self._log.switch.topics

    async def read_all(self, deadline: float, read_ends: ReadEnds | None = None) -> SourceLogs:
        """Read the ends of the logs, once the flow has found every topic and partition that it selects.

        Args:
            deadline: The moment, of `time.monotonic`, until which it waits.
            read_ends: It reads the ends. None: `SwitchClusters.source_ends`.

        Raises:
            NotFoundYet: Something is not found at the deadline.
        """
        while True:
            try:
                await self._clusters.require_found(self._log.rows, self._names)
                topics, asked_ms = self.topics, now_ms()
                return SourceLogs(topics, await (read_ends or self._clusters.source_ends)(topics), asked_ms)
            except NotFoundYet as exc:
                if time.monotonic() > deadline:
                    raise
                self._progress.text = str(exc)
                await asyncio.sleep(STILL_S)

    async def read_still(self, deadline: float) -> SourceLogs:
        """Read the ends of the logs, once they stand still and the flow has found everything.

        No transaction is open then that the flow waits for.

        Raises:
            StepFailed: That is not so at the deadline.
        """
        before = (await self.read_all(deadline)).ends
        while True:
            await asyncio.sleep(STILL_S)
            try:
                topics, asked_ms = self.topics, now_ms()
                earlier, before = before, await self._clusters.source_ends(topics)
                await self._require_still(topics, earlier, before)
                return SourceLogs(topics, before, asked_ms)
            except StepFailed as exc:
                if time.monotonic() > deadline:
                    raise
                self._progress.text = str(exc)

    async def _require_still(
        self, topics: Sequence[MirroredTopic], before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        grown = {tp: end - before[tp] for tp, end in ends.items() if end > before.get(tp, end)}
        if grown:
            source = self._log.settings.flow.source
            raise StepFailed(f"producers still write to {source}: {records_by_partition(grown)}. {FENCE}")
        if waiting := await self._clusters.open_transactions(topics):
            topic, number = waiting[0]
            raise StepFailed(f"a transaction is open in {topic}-{number}: end it, or wait until it times out. {FENCE}")
        if appeared := sorted(ends.keys() - before.keys()):
            topic, number = appeared[0]
            raise StepFailed(f"{topic}-{number} has just appeared on {self._log.settings.flow.source}")
        await self._clusters.require_found(self._log.rows, self._names)
        if _partitions(self.topics) != _partitions(topics):
            raise StepFailed(f"{self._log.settings.flow} has just found another topic or partition")


def selected_topics(flow: FollowedFlow, names: Sequence[str]) -> list[MirroredTopic]:
    """Return the topics of the flow that a switch is about.

    Args:
        flow: The flow.
        names: Source topics. Empty: all but heartbeats topics.
    """
    mirrored = [row.source_topic for row in flow.rows.values() if isinstance(row, MirroredTopic)]
    return switched_topics(flow.rows, names, filter(flow.settings.policy.is_heartbeats_topic, mirrored))


def _partitions(topics: Sequence[MirroredTopic]) -> set[tuple[str, int]]:
    return {(topic.source_topic, topic.partitions) for topic in topics}
