"""What the driver itself sees of both clusters' logs. Whether the source can be reached, how far partitions are behind,
and which do not move though there is more."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.driver.source_ends_watch import SourceEndsWatch, SourceReading, Subject
from lockstep_data_plane.slot.desired_state import DesiredPartition, desired_partitions
from lockstep_kafka.common.asyncio_util import cancelled, done_within, to_next_tick
from lockstep_kafka.common.errors import ClusterError
from lockstep_rules.offsets.lag import NOT_ASKED
from lockstep_rules.offsets.stalled_copy import why_stalled
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, SourceEnds


class CopyStallDetector:
    """Remembers since when each partition stands still with something to copy."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self.stuck: set[TopicPartition] = set()
        """Those that were named and have not moved since."""

    def check(
        self,
        rows: Iterable[PartitionProgress],
        ends: Mapping[TopicPartition, int],
        now: float,
        resting: Collection[TopicPartition] = (),
    ) -> tuple[dict[TopicPartition, float], list[TopicPartition]]:
        """Those newly found stuck, with the seconds since they moved last, and those no longer stuck. A partition is no
        longer stuck if it moves, is up to date, is halted for a reason of its own, or is `resting`. `ends`: the next
        offset behind what can be read. A partition that is not in it had no answer, and stays as it was. `now`: seconds
        of a clock that does not go back."""
        found: dict[TopicPartition, float] = {}
        over: list[TopicPartition] = []
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
                    over.append(tp)
                continue
            self._since[tp] = (upstream, since)
            if now - since >= STUCK_AFTER_S and tp not in self.stuck:
                self.stuck.add(tp)
                found[tp] = now - since
        return found, over


TICK_S = 1.0

TARGET_WITHIN_S = 3.0
"""A target that does not answer within so many seconds does not hold up the next look at the source."""

STUCK_AFTER_S = 60.0

TROUBLE = "watching the source"
WRITING = "writing the source's ends"


class SourceMonitor:
    """Of one flow, whose slots are those below `slots`."""

    def __init__(self, ctx: FlowContext, collector: MetricsCollector, slots: int) -> None:
        self._ctx = ctx
        self._collector = collector
        self._slots = slots
        self._stall_detector = CopyStallDetector()
        self.watch = SourceEndsWatch(ctx)
        self._judged: SourceReading | None = None
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Observe the source as long as the context lasts, also while the driver waits for something else."""
        self._task = asyncio.create_task(self._run(), name="watch the source")
        try:
            yield
        finally:
            await cancelled([self._task])

    def check(self) -> None:
        """Raise what has ended the task of `running`: ClusterError of the target, LeadershipLost, or a mistake."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _run(self) -> None:
        async with self.watch.running(self._subject()):
            while True:
                self.watch.check()
                self.watch.subject = self._subject()
                await self.judge_reading()
                await asyncio.sleep(to_next_tick(TICK_S))

    def _ordered(self) -> dict[TopicPartition, DesiredPartition]:
        state = self._ctx.state
        return {
            tp: order
            for row in state.all(Assignment)
            if row.slot < self._slots
            for tp, order in desired_partitions(state.rows, row.slot, row.partitions, self._ctx.settings.states).items()
        }

    def _subject(self) -> Subject:
        assigned = (row.partitions for row in self._ctx.state.all(Assignment) if row.slot < self._slots)
        partitions = {**{tp: None for held in assigned for tp in held}, **self._collector.selected()}
        return Subject(partitions, often=self._collector.unheard)

    async def judge_reading(self) -> None:
        """Judge the last reading, unless that is done. A source that cannot be reached is said. Raises as `check`."""
        troubles, estimator, reading = self._ctx.periodic.troubles, self._collector.estimator, self.watch.reading
        if reading is not None and reading is not self._judged:
            if reading.trouble is not None:
                estimator.lost()
                troubles.began(TROUBLE, reading.trouble)
            else:
                troubles.over(TROUBLE)
                await self._judge(reading.seen)
            self._judged = reading
        estimator.asks(self.watch.asking_since)
        if (trouble := self.watch.write_trouble) is not None:
            troubles.began(WRITING, trouble)
        else:
            troubles.over(WRITING)

    async def _judge(self, seen: Mapping[TopicPartition, ObservedPartition]) -> None:
        """Ask the target how far its logs go, and compare: a slot that does not move cannot say that it should."""
        ctx, estimator, now = self._ctx, self._collector.estimator, self._ctx.clock.monotonic()
        ctx.must_act()
        ordered = self._ordered()
        known = {tp: observed.row for tp, observed in seen.items() if observed.row is not None}
        ends = {tp: observed.source.end for tp, observed in seen.items() if observed.source is not None}
        copied = {tp: seen[tp].topic for tp in known if tp in ends}
        target_ends = await self._target_ends({tp: topic for tp, topic in copied.items() if topic is not None})
        resting = {tp for tp, order in ordered.items() if order.resting_reason}
        rows = [known[tp] for tp in ordered if tp in known]
        found, over = self._stall_detector.check(rows, ends, now, resting)
        if (recalled := ctx.state.get(SourceEnds, "current")) is not None:
            estimator.recall(recalled, now=ctx.clock.monotonic(), wall_ms=ctx.clock.wall_ms())
        observed = {tp: replace(log, target_end=target_ends.get(tp, NOT_ASKED)) for tp, log in seen.items()}
        self._collector.on_observed(self._stall_detector.stuck, observed, resting)
        await self._report(found, over, known, ends)

    async def _report(
        self,
        found: Mapping[TopicPartition, float],
        over: Iterable[TopicPartition],
        known: Mapping[TopicPartition, PartitionProgress],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Append the events of all at once. A target that takes no appends stops thousands, and nothing is observed in
        the meantime."""
        events = []
        causes = await self._causes(found) if found else {}
        for tp, for_s in found.items():
            name, upstream = f"{tp[0]}-{tp[1]}", known[tp].upstream
            text = f"{name}: stuck at {upstream} for {for_s:.0f} s, the source goes up to {ends[tp] - 1}"
            cause = causes.get(tp, NO_REASON)
            text = f"{text}; {format_sentence(cause)}" if cause else text
            events.append(
                self._ctx.event("PartitionStuck", name, text, cause=cause, upstream=upstream, source_end=ends[tp])
            )
        for topic, number in over:
            name = f"{topic}-{number}"
            events.append(self._ctx.event("PartitionMoves", name, f"{name} is not stuck any more"))
        await asyncio.gather(*events)

    async def _causes(self, stuck: Iterable[TopicPartition]) -> dict[TopicPartition, Reason]:
        """Return why these do not move, as far as the target shows it. One that does not answer shows nothing."""
        rows = {tp: row for tp in stuck if (row := self._ctx.state.get(MirroredTopic, tp[0])) is not None}
        try:
            described = await done_within(
                self._ctx.target.topics({row.target_topic for row in rows.values()}), TARGET_WITHIN_S
            )
        except (ClusterError, TimeoutError):  # a slot that needs the target to act says so
            return {}
        causes: dict[TopicPartition, Reason] = {}
        for (topic, number), row in rows.items():
            seen = described.done.get(row.target_topic)
            if seen is not None and number < len(seen.in_sync):
                causes[topic, number] = why_stalled(row, number, seen.in_sync[number], seen.replicas)
        return causes

    async def _target_ends(self, topics: Mapping[TopicPartition, MirroredTopic]) -> dict[TopicPartition, int | None]:
        """The next offset of each one's copy; None: not answered. Nothing where keys choose among several logs."""
        if self._ctx.settings.data_plane.by_key:
            return {}
        copies = {tp: (topic.target_topic, tp[1]) for tp, topic in topics.items()}
        try:
            ends = await done_within(self._ctx.target.end_offsets(copies.values()), TARGET_WITHIN_S)
        except (ClusterError, TimeoutError):  # a slot that needs the target to act says so
            ends = {}
        return {tp: ends.get(copy) for tp, copy in copies.items()}
