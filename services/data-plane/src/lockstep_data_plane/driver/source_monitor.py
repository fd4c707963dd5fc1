"""What the driver itself sees of both clusters' logs. Whether the source can be reached, how far partitions are behind,
and which do not move though there is more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from lockstep_data_plane.driver.lag_estimator import ObservedPartition
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.slot.desired_state import desired_partitions
from lockstep_protocol.lag import NOT_ASKED, LogRange, is_of_another_log
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.reason import NO_REASON, Reason
from lockstep_protocol.reason_catalogue import format_sentence
from lockstep_protocol.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, SourceEnds
from lockstep_protocol.stalled_copy import why_stalled
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.util.asyncio_util import cancelled, done_within, to_next_tick
from lockstep_runtime.util.errors import ClusterError


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


CHECK_INTERVAL_S = 8.0
"""From the beginning of a look to that of the next one. With a tick, and a request that takes its time, the ends that
are written down are at most ten seconds old. Nothing else that the process does changes that: a failover knows of no
later record."""

PARTITIONS_A_LOOK = 10_000
"""For more partitions the interval grows with their number: a request for so many takes some 0.4 s of processor."""

FREQUENT_CHECK_INTERVAL_S = 2.0
"""While a slot that has partitions has just fallen silent: then only this shows how far behind they are."""

TICK_S = 1.0

ANSWERS_WITHIN = timedelta(seconds=5)
"""A leader that does not answer within this time does not hold up what the others say."""

TARGET_WITHIN_S = 3.0
"""A target that does not answer within so many seconds does not hold up the next look at the source."""

STUCK_AFTER_S = 60.0

TROUBLE = "watching the source"
WRITING = "writing the source's ends"

MOST_ENDS = 10_000
"""Ends that one row names: some 550 KB, well below the largest message of a topic (1 MiB by default)."""


class SourceMonitor:
    """Of one flow, whose slots are those below `slots`."""

    def __init__(self, ctx: FlowContext, collector: MetricsCollector, slots: int) -> None:
        self._ctx = ctx
        self._collector = collector
        self._slots = slots
        self._stall_detector = CopyStallDetector()
        self._checked_at = float("-inf")
        self._within: timedelta | None = ANSWERS_WITHIN
        self._answered_ms: dict[TopicPartition, int] = {}
        """For each partition, when the last look began in which the source answered about it."""
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
        while True:
            await self.observe_if_due()
            await asyncio.sleep(to_next_tick(TICK_S))

    async def observe_if_due(self) -> None:
        """Observe the source every `look_interval_s`, and every two seconds while a slot has just fallen silent. A
        source that cannot be reached is said and tried again."""
        ctx = self._ctx
        now = ctx.clock.monotonic()
        often = self._collector.unheard
        interval_s = FREQUENT_CHECK_INTERVAL_S if often else look_interval_s(len(self._collector.selected()))
        if now - self._checked_at < interval_s:
            return
        self._checked_at = now
        try:
            await ctx.source.probe()  # a request may wait for a minute, and the slots leave it to us to say so
            await self._observe(now)
        except ClusterError as trouble:
            if trouble.alias != ctx.source.alias:
                raise
            self._collector.estimator.lost()
            self._within = None  # it may be slow: the next look waits as long as any request
            ctx.rounds.troubles.began(TROUBLE, trouble)
        else:
            self._within = ANSWERS_WITHIN
            ctx.rounds.troubles.over(TROUBLE)

    async def _observe(self, now: float) -> None:
        """Ask the clusters themselves how far their logs go: a slot that does not move cannot say that it should."""
        ctx = self._ctx
        ordered = {
            tp: order
            for row in ctx.state.all(Assignment)
            if row.slot < self._slots
            for tp, order in desired_partitions(ctx.state.rows, row.slot, row.partitions, ctx.settings.states).items()
        }
        selected = self._collector.selected()
        known = {(p.topic, p.partition): p for p in ctx.state.all(PartitionProgress)}
        asked = {**dict.fromkeys(ordered), **selected}
        committed = ctx.settings.data_plane.isolation_level == "read_committed"
        self._collector.estimator.asks(ctx.clock.monotonic())  # each request may wait for a minute
        asked_ms = ctx.clock.wall_ms()
        ends = await ctx.source.reachable_end_offsets(asked, read_committed=committed, within=self._within)
        starts = await ctx.source.begin_offsets([tp for tp in ends if _restarts_copy(known.get(tp), selected.get(tp))])
        there = await self._target_ends({tp: topic for tp, topic in selected.items() if tp in known and tp in ends})
        resting = {tp for tp, order in ordered.items() if order.resting_reason}
        rows = [known[tp] for tp in ordered if tp in known]
        found, over = self._stall_detector.check(rows, ends, now, resting)
        seen = {
            tp: ObservedPartition(
                known.get(tp),
                LogRange(starts.get(tp, 0), ends[tp]) if tp in ends else None,
                there.get(tp, NOT_ASKED),
                selected.get(tp),
            )
            for tp in asked
        }
        estimator = self._collector.estimator
        before = ctx.state.get(SourceEnds, "current") or SourceEnds()
        estimator.recall(before, now=ctx.clock.monotonic(), wall_ms=ctx.clock.wall_ms())
        self._collector.on_observed(self._stall_detector.stuck, seen, resting)
        silent = [tp for tp in asked if tp not in ends]
        known_ms = dict.fromkeys(silent, 0) if self._answered_ms else before.known_ms(silent)
        answered_ms = known_ms | self._answered_ms
        self._answered_ms = {**{tp: answered_ms[tp] for tp in silent}, **dict.fromkeys(ends, asked_ms)}
        row = source_ends_row({**before.named_ends(silent), **ends}, known, asked_ms, self._since_ms)
        await self._write_ends(with_unanswered(row, {tp: answered_ms[tp] for tp in silent}))
        await self._report(found, over, known, ends)

    def _since_ms(self, tp: TopicPartition, row: PartitionProgress | None) -> int:
        clock = self._ctx.clock
        return self._collector.estimator.since_ms(tp, row, now=clock.monotonic(), wall_ms=clock.wall_ms())

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

    async def _write_ends(self, row: SourceEnds) -> None:
        """Slots go on copying while it cannot be written, so the driver does not end for it."""
        ctx = self._ctx
        ctx.must_act()
        try:
            await ctx.state.write(row)
        except ClusterError as trouble:
            ctx.rounds.troubles.began(WRITING, trouble)
        else:
            ctx.rounds.troubles.over(WRITING)

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


def look_interval_s(partitions: int) -> float:
    """Return how many seconds are from one look at the ends of so many logs to the next one. It depends on nothing
    else."""
    return CHECK_INTERVAL_S * max(1.0, partitions / PARTITIONS_A_LOOK)


def source_ends_row(
    ends: Mapping[TopicPartition, int],
    progress: Mapping[TopicPartition, PartitionProgress],
    asked_ms: int,
    since_ms: Callable[[TopicPartition, PartitionProgress | None], int],
) -> SourceEnds:
    """Return those ends that the progress of a partition does not name. `asked_ms`: no later than the first answer.
    `since_ms`: as `LagEstimator.since_ms`."""
    named = {tp: max(row.source_end, row.upstream + 1) for tp, row in progress.items()}
    unnamed = sorted(
        ((tp, end) for tp, end in ends.items() if end > named.get(tp, 0)),
        key=lambda one: (named.get(one[0], 0) - one[1], one[0]),
    )
    rows = tuple((topic, number, end) for (topic, number), end in unnamed[:MOST_ENDS])
    times = tuple(since_ms(tp, progress.get(tp)) for tp, _ in unnamed[:MOST_ENDS])
    return SourceEnds(asked_ms=asked_ms, ends=rows, since_ms=times, more=len(unnamed) - len(rows))


def with_unanswered(row: SourceEnds, known_ms: Mapping[TopicPartition, int]) -> SourceEnds:
    """Return the row of a look in which the source did not answer about some partitions. `known_ms`: up to when their
    ends are known. Too many for one row count as left out, for then no end is sure."""
    unanswered = tuple((topic, number, at_ms) for (topic, number), at_ms in sorted(known_ms.items()))
    room = MOST_ENDS - len(row.ends)
    return replace(row, unanswered=unanswered[:room], more=row.more + max(0, len(unanswered) - room))


def _restarts_copy(row: PartitionProgress | None, topic: MirroredTopic | None) -> bool:
    """Whether all that the source's log has is still to be copied, so that its first offset matters."""
    return row is None or row.begins == "reset" or is_of_another_log(row, topic)
