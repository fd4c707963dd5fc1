"""The writer of MM2's own progress for a slot's partitions (`mm2-behaviour.md` §1.7)."""

import asyncio
from collections.abc import Mapping

from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.codecs.mm2_codec import encode_source_progress, encode_source_progress_reset
from lockstep_state.offsets import TopicPartition

PAUSE_S = 1.0
"""Seconds between a failure and the next attempt."""


class MirrorProgressWriter:
    """A writer that appends the newest progress of each partition, all that waits at once.

    Rows do not wait for it. If the topic takes nothing, only MM2 would find older progress, and no copy is delayed.
    """

    def __init__(self, topic_log: ControlTopicLog, source: str, connector: str, log: FlowLog) -> None:
        """Take `source` and `connector`, the names in the keys."""
        self._topic_log = topic_log
        self._source = source
        self._connector = connector
        self._log = log
        self._pending: dict[TopicPartition, int] = {}
        self._on_way: dict[TopicPartition, int] = {}
        self._sending: asyncio.Task[None] | None = None
        self._failing = False

    def offer(self, upstream: Mapping[TopicPartition, int]) -> None:
        """Send these offsets, by partition, unless newer ones come before."""
        self._pending |= upstream
        if self._pending and self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="MM2's progress")

    async def write(self, tp: TopicPartition, upstream: int) -> None:
        """Append the progress of one partition and wait for the acknowledgement.

        Earlier progress that was offered is not sent after it.

        Args:
            tp: The partition, by its name in the source.
            upstream: The offset; -1 resets the progress, as if nothing was ever copied.

        Raises:
            ClusterError: The record was not taken.
        """
        self.remove(tp)
        await self._topic_log.append(*self._encode(tp, upstream))

    def remove(self, tp: TopicPartition) -> None:
        """Remove a partition that has left this slot.

        Its waiting progress is not sent, as the next slot may have sent newer progress.
        """
        self._pending.pop(tp, None)
        self._on_way.pop(tp, None)

    async def settle(self, within_s: float) -> None:
        """Wait at most `within_s` seconds until everything that was offered is acknowledged."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=within_s)

    async def stop(self, within_s: float) -> None:
        """Wait as `settle` does, and send nothing afterwards."""
        await self.settle(within_s)
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self) -> None:
        try:
            while self._pending:
                self._on_way, self._pending = self._pending, {}
                try:
                    await self._topic_log.append_all([self._encode(*due) for due in self._on_way.items()])
                except ClusterError as trouble:
                    self._pending = self._on_way | self._pending
                    self._report(trouble)
                    await asyncio.sleep(PAUSE_S)
                else:
                    self._report(None)
        finally:
            self._sending = None

    def _report(self, trouble: ClusterError | None) -> None:
        if trouble is not None and not self._failing:
            self._log.warn("MM2's progress failing", f"{trouble}; trying again, and the copy goes on")
        elif trouble is None and self._failing:
            self._log.info("MM2's progress recovered")
        self._failing = trouble is not None

    def _encode(self, tp: TopicPartition, upstream: int) -> tuple[bytes, bytes | None]:
        if upstream < 0:
            return encode_source_progress_reset(self._source, *tp, self._connector)
        return encode_source_progress(self._source, *tp, upstream, self._connector)
