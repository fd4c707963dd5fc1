"""The driver's own view of both clusters' logs, for outages of the source, lags, and stuck partitions."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.driver.source_ends_watch import SourceEndsWatch, SourceReading, WatchedPartitions
from lockstep_data_plane.slot.desired_partitions import DesiredPartition, desired_partitions
from lockstep_kafka.common.asyncio_util import BesideTask, done_within, to_next_tick
from lockstep_kafka.common.errors import ClusterError
from lockstep_rules.offsets.first_seen import released_offset
from lockstep_rules.offsets.lag import NOT_ASKED
from lockstep_rules.offsets.stalled_copy import why_stalled
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, SeenEnds, SourceEnds


class CopyStallDetector:
    """The memory of since when each partition has not moved although it has something to copy."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self.stuck: set[TopicPartition] = set()
        """Partitions that were reported as stuck and have not moved since."""

    def check(
        self,
        rows: Iterable[PartitionProgress],
        ends: Mapping[TopicPartition, int],
        now: float,
        resting: Collection[TopicPartition] = (),
    ) -> tuple[dict[TopicPartition, float], list[TopicPartition]]:
        """Return the newly stuck partitions, with the seconds since they moved, and those not stuck any more.

        A partition is not stuck any more if it moves, is up to date, is halted, or is among `resting`.

        Args:
            rows: The progress of the partitions to check.
            ends: The offset behind the last readable record, by partition. A partition without one stays as it was.
            now: Seconds of a monotonic clock.
            resting: Partitions that an operator has paused or stopped.
        """
        stuck: dict[TopicPartition, float] = {}
        moving: list[TopicPartition] = []
        for row in rows:
            tp = (row.topic, row.partition)
            if tp not in ends:
                continue
            upstream, since = self._since.get(tp, (row.upstream, now))
            at_rest = row.phase == "halted" or tp in resting
            if at_rest or row.upstream != upstream or ends[tp] - 1 <= row.upstream:
                self._since[tp] = (row.upstream, now)
                if tp in self.stuck:
                    self.stuck.remove(tp)
                    moving.append(tp)
                continue
            self._since[tp] = (upstream, since)
            if now - since >= STUCK_AFTER_S and tp not in self.stuck:
                self.stuck.add(tp)
                stuck[tp] = now - since
        return stuck, moving


TICK_S = 1.0

TARGET_WITHIN_S = 3.0
"""Seconds that the target may take to answer, so that it does not delay the next check of the source."""

STUCK_AFTER_S = 60.0

TROUBLE = "watching the source"
WRITING = "writing the source's ends"


class SourceMonitor:
    """The monitor of one flow's source, for the slots with a number below `slots`."""

    def __init__(self, ctx: FlowContext, collector: MetricsCollector, slots: int) -> None:
        self._ctx = ctx
        self._collector = collector
        self._slots = slots
        self._stall_detector = CopyStallDetector()
        self.watch = SourceEndsWatch(ctx)
        self._applied: SourceReading | None = None
        self._task = BesideTask("watch the source", self._run)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Check the source as long as the context lasts, also while the driver waits for something else."""
        return self._task.running()

    def check(self) -> None:
        """Raise what has ended the task of `running`: ClusterError of the target, LeadershipLost, or a mistake."""
        self._task.check()

    async def _run(self) -> None:
        async with self.watch.running(self._watched()):
            while True:
                self.watch.check()
                self.watch.watched = self._watched()
                await self.apply_reading()
                await asyncio.sleep(to_next_tick(TICK_S))

    def _orders(self) -> dict[TopicPartition, DesiredPartition]:
        state = self._ctx.state
        return {
            tp: order
            for row in state.all(Assignment)
            if row.slot < self._slots
            for tp, order in desired_partitions(state.rows, row.slot, row.partitions, self._ctx.settings.states).items()
        }

    def _watched(self) -> WatchedPartitions:
        assigned = (row.partitions for row in self._ctx.state.all(Assignment) if row.slot < self._slots)
        partitions = {**{tp: None for held in assigned for tp in held}, **self._collector.selected()}
        return WatchedPartitions(partitions, often=self._collector.has_silent_slot)

    async def apply_reading(self) -> None:
        """Apply the last reading once, and report a source that cannot be reached. Raises as `check`."""
        troubles, estimator, reading = self._ctx.periodic.troubles, self._collector.estimator, self.watch.reading
        if reading is not None and reading is not self._applied:
            if reading.trouble is not None:
                estimator.forget_check()
                troubles.record_failure(TROUBLE, reading.trouble)
            else:
                troubles.record_success(TROUBLE)
                await self._compare(reading.observed)
            self._applied = reading
        estimator.begin_check(self.watch.asking_since)
        if (trouble := self.watch.write_trouble) is not None:
            troubles.record_failure(WRITING, trouble)
        else:
            troubles.record_success(WRITING)

    async def _compare(self, observed: Mapping[TopicPartition, ObservedPartition]) -> None:
        """Query the ends of the target's logs and compare. A slot that does not move cannot report that it should."""
        ctx, estimator, now = self._ctx, self._collector.estimator, self._ctx.clock.monotonic()
        ctx.must_act()
        orders = self._orders()
        progress = {tp: logs.row for tp, logs in observed.items() if logs.row is not None}
        ends = {tp: logs.source.end for tp, logs in observed.items() if logs.source is not None}
        copied = {tp: observed[tp].topic for tp in progress if tp in ends}
        target_ends = await self._target_ends({tp: topic for tp, topic in copied.items() if topic is not None})
        resting = {
            tp for tp, order in orders.items() if order.resting_reason or self._has_ended(order, progress.get(tp))
        }
        rows = [progress[tp] for tp in orders if tp in progress]
        due_ends = {tp: self._due_end(tp, end, orders.get(tp)) for tp, end in ends.items()}
        stuck, moving = self._stall_detector.check(rows, due_ends, now, resting)
        if (recalled := ctx.state.get(SourceEnds, "current")) is not None:
            estimator.restore(recalled, now=ctx.clock.monotonic(), wall_ms=ctx.clock.wall_ms())
        observed = {tp: replace(logs, target_end=target_ends.get(tp, NOT_ASKED)) for tp, logs in observed.items()}
        self._collector.on_observed(self._stall_detector.stuck, observed, resting)
        await self._report(stuck, moving, progress, ends)

    def _due_end(self, tp: TopicPartition, end: int, order: DesiredPartition | None) -> int:
        """Return the next offset that is not to be copied now, at most `end`, the end of the source's log."""
        if order is not None and order.end is not None:
            return min(end, order.end)
        if not self._ctx.settings.delay_ms(tp[0]):
            return end
        state = self._ctx.state
        row = state.get(SeenEnds, tp[0], str(tp[1]))
        return min(end, released_offset(row, state.get(MirroredTopic, tp[0])))

    @staticmethod
    def _has_ended(order: DesiredPartition, row: PartitionProgress | None) -> bool:
        """Return whether the copy rests because it has reached an end that an operator set."""
        return order.end is not None and row is not None and row.phase == "stopped"

    async def _report(
        self,
        stuck: Mapping[TopicPartition, float],
        moving: Iterable[TopicPartition],
        progress: Mapping[TopicPartition, PartitionProgress],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Append the events of all partitions at once.

        A target that takes no appends stops thousands of partitions, and nothing is observed while they are reported.
        """
        events = []
        causes = await self._find_causes(stuck) if stuck else {}
        for tp, for_s in stuck.items():
            name, upstream = f"{tp[0]}-{tp[1]}", progress[tp].upstream
            text = f"{name}: stuck at {upstream} for {for_s:.0f} s, the source goes up to {ends[tp] - 1}"
            cause = causes.get(tp, NO_REASON)
            text = f"{text}; {format_sentence(cause)}" if cause else text
            events.append(
                self._ctx.event("PartitionStuck", name, text, cause=cause, upstream=upstream, source_end=ends[tp])
            )
        for topic, number in moving:
            name = f"{topic}-{number}"
            events.append(self._ctx.event("PartitionMoves", name, f"{name} is not stuck any more"))
        await asyncio.gather(*events)

    async def _find_causes(self, stuck: Iterable[TopicPartition]) -> dict[TopicPartition, Reason]:
        """Return why these partitions do not move, as far as the target's topic description shows it."""
        rows = {tp: row for tp in stuck if (row := self._ctx.state.get(MirroredTopic, tp[0])) is not None}
        try:
            described = await done_within(
                self._ctx.target.topics({row.target_topic for row in rows.values()}), TARGET_WITHIN_S
            )
        except (ClusterError, TimeoutError):  # a slot that needs the target to act says so
            return {}
        causes: dict[TopicPartition, Reason] = {}
        for (topic, number), row in rows.items():
            copy = described.done.get(row.target_topic)
            if copy is not None and number < len(copy.in_sync):
                causes[topic, number] = why_stalled(row, number, copy.in_sync[number], copy.replicas)
        return causes

    async def _target_ends(self, topics: Mapping[TopicPartition, MirroredTopic]) -> dict[TopicPartition, int | None]:
        """Return the next offset of each partition's copy; None: the target did not answer.

        A flow that partitions by key has none, because the records of one partition go to several logs.
        """
        if self._ctx.settings.data_plane.by_key:
            return {}
        copies = {tp: (topic.target_topic, tp[1]) for tp, topic in topics.items()}
        try:
            ends = await done_within(self._ctx.target.end_offsets(copies.values()), TARGET_WITHIN_S)
        except (ClusterError, TimeoutError):  # a slot that needs the target to act says so
            ends = {}
        return {tp: ends.get(copy) for tp, copy in copies.items()}
