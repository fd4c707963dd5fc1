"""The writer of a slot's offset syncs (`mm2-behaviour.md` §3.1).

`OffsetSyncRule` decides which syncs are due after an acknowledgement.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.record_batch.layout import Stretch, stretches_within
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_rules.offsets.offset_sync_rule import OffsetSyncRule
from lockstep_rules.sliding_window import Window
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.mm2_codec import OffsetSync, encode_offset_sync
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset

GATHER_S = 0.2
"""Seconds that syncs wait for newer ones. At full speed each batch brings one, and an append costs the broker and
every reader the same for any number of syncs.
"""

PAUSE_S = 1.0
"""Seconds between a failure and the next attempt."""

Syncs = tuple[tuple[UpstreamOffset, DownstreamOffset], ...]
"""The offset syncs of one partition, in the order of its log."""


class OffsetSyncWriter:
    """A writer that appends the offset syncs of a slot's partitions, all that wait at once.

    Unlike MM2, it sends failed syncs again, unless there are newer ones.
    """

    def __init__(self, topic_log: ControlTopicLog, offset_lag_max: int, log: FlowLog) -> None:
        self._topic_log = topic_log
        self._offset_lag_max = offset_lag_max
        self._log = log
        self._rules: dict[TopicPartition, OffsetSyncRule] = {}
        self._pending: dict[TopicPartition, Syncs] = {}
        self._sending: asyncio.Task[None] | None = None
        self._failing = False
        self.sent = 0
        """The number of acknowledged syncs."""
        self.latency = Window()
        """The durations of these appends, in milliseconds."""

    def send_due(self, tp: TopicPartition, acks: Iterable[Ack]) -> None:
        """Send the syncs that are due by MM2's rule after the target's acknowledgements.

        The upstream offsets of a partition must not fall. A smaller one makes every reader of MM2 forget what it knew
        (`mm2-behaviour.md` §3.2).
        """
        rule = self._rules.get(tp)
        if rule is None:
            rule = self._rules[tp] = OffsetSyncRule(self._offset_lag_max)
        for downstream, stretches in _joined(acks):
            if syncs := rule.on_stretches(downstream, stretches):
                self._offer(tp, syncs)

    def flush(self, tp: TopicPartition) -> None:
        """Send the delayed sync of a partition, whose progress was written (KAFKA-15906)."""
        rule = self._rules.get(tp)
        if rule is not None and (delayed := rule.flush()) is not None:
            self._offer(tp, (delayed,))

    def remove(self, tp: TopicPartition) -> None:
        """Remove a partition that has left this slot.

        Its failed syncs are not sent again, as the next slot has newer ones.
        """
        self._rules.pop(tp, None)
        if self._failing:
            self._pending.pop(tp, None)

    def _offer(self, tp: TopicPartition, syncs: Syncs) -> None:
        """Add syncs to those that wait. Of each partition the oldest and the newest are kept."""
        waiting = self._pending.get(tp, ()) + syncs
        self._pending[tp] = waiting if len(waiting) <= 2 else (waiting[0], waiting[-1])
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
        due, self._pending = self._pending, {}
        syncs = [OffsetSync(*tp, up, down) for tp, pairs in due.items() for up, down in pairs]
        began = time.monotonic()
        try:
            await self._topic_log.append_all(map(encode_offset_sync, syncs), partition=0)
        except ClusterError as trouble:
            # Some of them may be there: the newest again does no harm, an older one behind it would. Another slot may
            # have written newer ones of a partition that has left.
            kept = {tp: syncs[-1:] for tp, syncs in due.items() if tp in self._rules}
            self._pending = kept | self._pending
            if not self._failing:
                self._failing = True
                self._log.warn("offset syncs failing", f"{trouble}; trying again")
        else:
            self.sent += len(syncs)
            self.latency.record(now_ms(), 1000 * (time.monotonic() - began))
            if self._failing:
                self._failing = False
                self._log.info("offset syncs recovered")

    async def settle(self, within_s: float) -> None:
        """Send what waits, and wait at most `within_s` seconds for it. Later syncs cover what was not sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=within_s)
            if self._sending is not None:
                self._sending.cancel()


def _joined(acks: Iterable[Ack]) -> list[tuple[int, Sequence[Stretch]]]:
    """Return the downstream offsets at which records begin, with their stretches.

    Batches without gaps that follow each other in both logs are joined.
    """
    joined: list[tuple[int, Sequence[Stretch]]] = []
    for outgoing, downstream, _, _, _ in acks:
        stretches = stretches_within(outgoing.offsets)
        if joined and len(stretches) == len(joined[-1][1]) == 1:
            (begin, ((first, _, before),)), ((following, _, count),) = joined[-1], stretches
            if (first + before, begin + before) == (following, downstream):
                joined[-1] = begin, ((first, 0, before + count),)
                continue
        joined.append((downstream, stretches))
    return joined
