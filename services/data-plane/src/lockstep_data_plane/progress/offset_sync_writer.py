"""Offset syncs on their way (`mm2-behaviour.md` §3.1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from lockstep_protocol.mm2_codec import encode_offset_sync
from lockstep_protocol.mm2_records import OffsetSync
from lockstep_protocol.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_protocol.sliding_window import Window
from lockstep_runtime.kafka.control_producer import ControlTopicLog
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_runtime.util.errors import ClusterError

__all__ = ["OffsetSyncWriter"]

GATHER_S = 0.2
"""Syncs wait this long for newer ones: at full speed each batch brings one, and each append costs the broker and every
reader the same, however many are in it."""

PAUSE_S = 1.0
"""Between a failure and the next attempt."""

Syncs = tuple[tuple[int, int], ...]
"""(upstream, downstream) of one partition, at most two: the oldest and the newest."""


class OffsetSyncWriter:
    """Appends the offset syncs of a slot's partitions, all that wait in one go. Of what waits, the oldest and the
    newest of each partition are kept, and unlike MM2's what failed is sent again unless there is a newer one."""

    def __init__(self, log: ControlTopicLog, say: FlowLog) -> None:
        self._log = log
        self._say = say
        self._pending: dict[TopicPartition, Syncs] = {}
        self._sending: asyncio.Task[None] | None = None
        self._failing = False
        self.sent = 0
        """Syncs acknowledged."""
        self.latency = Window()
        """How long that took, in milliseconds."""

    def offer(self, topic: str, partition: int, *syncs: tuple[int, int]) -> None:
        """Send the syncs soon. Pairs of a partition must come with upstream offsets that do not fall: a smaller one
        makes every reader of MM2's forget what it knew (`mm2-behaviour.md` §9)."""
        if not syncs:
            return
        waiting = self._pending.get((topic, partition), ()) + syncs
        self._pending[topic, partition] = waiting if len(waiting) <= 2 else (waiting[0], waiting[-1])
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="offset syncs")

    async def _send(self) -> None:
        try:
            while self._pending:
                await asyncio.sleep(PAUSE_S if self._failing else GATHER_S)
                await self._send_all()
        finally:
            self._sending = None

    async def _send_all(self) -> None:
        taken, self._pending = self._pending, {}
        began = time.monotonic()
        try:
            await self._log.append_all(_records(taken), partition=0)
        except ClusterError as trouble:
            # Some of them may be there: the newest again does no harm, an older one behind it would.
            self._pending = {tp: syncs[-1:] for tp, syncs in taken.items()} | self._pending
            if not self._failing:
                self._failing = True
                self._say.warn("offset syncs failing", f"{trouble}; trying again")
        else:
            self.sent += sum(map(len, taken.values()))
            self.latency.add(now_ms(), 1000 * (time.monotonic() - began))
            if self._failing:
                self._failing = False
                self._say.info("offset syncs recovered")

    async def settle(self, within_s: float) -> None:
        """Send what waits, and wait for that and for what is on its way, at most so long; what is left is covered by
        the next syncs."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=within_s)
            if self._sending is not None:
                self._sending.cancel()


def _records(syncs: Mapping[TopicPartition, Syncs]) -> list[tuple[bytes, bytes]]:
    return [
        encode_offset_sync(OffsetSync(topic, partition, UpstreamOffset(up), DownstreamOffset(down)))
        for (topic, partition), pairs in syncs.items()
        for up, down in pairs
    ]
