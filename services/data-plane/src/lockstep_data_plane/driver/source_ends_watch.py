"""The check of the source's log ends, and the rows that record them, in a thread of its own.

Nothing else in the process delays that thread. Of delayed topics it also records when each end was first seen.

A failover without the source knows of no record beyond that row.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lockstep_config.flow import client_settings
from lockstep_data_plane.driver.end_history import EndHistory, FirstSeen, ObservedPartition
from lockstep_kafka.admin.admin import Admin, service_admin
from lockstep_kafka.common.asyncio_util import run_unless_set, to_next_tick
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.librdkafka.control_producer import ACTS_WITHIN, ControlProducer, ControlTopicLog
from lockstep_rules.offsets.lag import LogRange, is_of_another_log
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, SeenEnds, SourceEnds

CHECK_INTERVAL_S = 8.0
"""Seconds from the beginning of a check to the end of the next one.

With a tick, the ends in the row are at most ten seconds old.
"""

PARTITIONS_PER_CHECK = 10_000
"""Partitions beyond which the interval grows with their number. A request for so many takes 0.4 s of processor time."""

FREQUENT_CHECK_INTERVAL_S = 2.0
"""Seconds between two checks while a slot with partitions is silent, because then only they show the lag."""

CHECKS_PER_DELAY = 64
"""Checks within the shortest delay of a topic, if that makes them more frequent."""

TICK_S = 1.0

ANSWERS_WITHIN = timedelta(seconds=5)
"""Time after which a leader that does not answer delays the answers of the others no longer."""

ENDS_WITHIN_S = 3.0
"""Seconds that the thread has to end. What it writes after that does not count in a later term."""

MOST_ENDS = 10_000
"""Ends in one row at most: some 550 KB, well below the largest message of a topic (1 MiB by default)."""


@dataclass(frozen=True, slots=True)
class WatchedPartitions:
    """The partitions to check with their selected topics (None: not selected), and whether to check often."""

    partitions: Mapping[TopicPartition, MirroredTopic | None] = field(default_factory=dict)
    often: bool = False


@dataclass(frozen=True, slots=True)
class SourceReading:
    """The answers of the source to one check, or the error in their place."""

    observed: Mapping[TopicPartition, ObservedPartition]
    trouble: ClusterError | None = None


Connect = Callable[[FlowContext], tuple[Admin, ControlProducer]]


def connect(ctx: FlowContext) -> tuple[Admin, ControlProducer]:
    """Return clients of the thread's own for source and target: those of `ctx` belong to its event loop."""
    settings, source, target = ctx.settings, ctx.source, ctx.target
    return (
        service_admin(settings, source.alias, client_settings.source_admin(settings, ctx.service)),
        ControlProducer(
            target.alias,
            client_settings.target_producer(settings, ctx.service),
            within=ACTS_WITHIN,
            access=target.access,
        ),
    )


class SourceEndsWatch:
    """The check of the source in a thread, while `running` lasts.

    The event loop assigns `watched`, and reads `reading`, `asking_since` and `write_trouble`. Each of them refers to an
    object that is not changed any more.
    """

    def __init__(self, ctx: FlowContext, connect: Connect = connect) -> None:
        self._ctx = ctx
        self._connect = connect
        self._history = EndHistory()
        self._first_seen = FirstSeen(ctx.settings.delay_ms)
        self._answer_limit: timedelta | None = ANSWERS_WITHIN
        self._answered_ms: dict[TopicPartition, int] = {}
        """By partition, the Unix milliseconds at which the last check began that the source answered for it."""
        self._last_row = SourceEnds()
        """The row that was written last, by this driver or by the one before."""
        self._future: asyncio.Future[None] | None = None
        self._topic, self._term = "", 0
        self.watched = WatchedPartitions()
        self.reading: SourceReading | None = None
        """The reading of the last check; None before the first."""
        self.asking_since = float("inf")
        """The beginning of the check that has no answer yet, in monotonic seconds; infinite if none is open."""
        self.write_trouble: ClusterError | None = None
        """The error with which the last row was not written."""

    @asynccontextmanager
    async def running(self, watched: WatchedPartitions) -> AsyncIterator[None]:
        """Check as long as the context lasts, and write rows in the present term.

        A row of an earlier term does not count. So a thread that still writes when another replica leads does no harm.
        Raises LeadershipLost.
        """
        ctx = self._ctx
        ctx.must_act()
        self.watched, self.reading, self.asking_since, self.write_trouble = watched, None, float("inf"), None
        self._topic, self._term = ctx.state.topic, ctx.leadership.leading_term(ctx.service)
        loop, stop = asyncio.get_running_loop(), _Stop()
        executor = ThreadPoolExecutor(1, thread_name_prefix=f"source ends {ctx.flow}")
        self._future = loop.run_in_executor(executor, lambda: asyncio.run(self._run(stop)))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait({self._future}, timeout=ENDS_WITHIN_S)
            executor.shutdown(wait=False)

    def check(self) -> None:
        """Raise what has ended the thread, which is a mistake."""
        if self._future is not None and self._future.done():
            self._future.result()

    # -- in the thread -------------------------------------------------------------------------------------------------

    async def _run(self, stop: "_Stop") -> None:
        source, producer = self._connect(self._ctx)
        clock = self._ctx.clock
        self._last_row = self._ctx.state.get(SourceEnds, "current") or SourceEnds()
        self._history.restore(self._last_row, now=clock.monotonic(), wall_ms=clock.wall_ms())
        self._first_seen.restore(self._ctx.state.rows.copy().values())
        try:
            await run_unless_set(stop.begin(), self._run_checks(source, ControlTopicLog(producer, self._topic)))
        finally:
            await producer.stop(within=0.0)
            await source.close()

    async def _run_checks(self, source: Admin, log: ControlTopicLog) -> None:
        clock, began, took_s = self._ctx.clock, float("-inf"), 0.0
        while True:
            watched, now = self.watched, clock.monotonic()
            interval_s = min(
                check_interval_s(len(watched.partitions), took_s),
                delayed_check_interval_s(self._ctx.settings.data_plane.least_delay),
            )
            if now - began >= (FREQUENT_CHECK_INTERVAL_S if watched.often else interval_s):
                began = now
                await self._read(source, log, watched.partitions)
                is_answered = self.reading is not None and self.reading.trouble is None
                took_s = clock.monotonic() - began if is_answered else 0.0
            await asyncio.sleep(to_next_tick(TICK_S))

    async def _read(
        self, source: Admin, log: ControlTopicLog, partitions: Mapping[TopicPartition, MirroredTopic | None]
    ) -> None:
        ctx = self._ctx
        asked_ms, self.asking_since = ctx.clock.wall_ms(), ctx.clock.monotonic()
        try:
            await source.probe()  # a request may wait for a minute, and the slots leave it to us to say so
            observed = await self._ask(source, partitions)
        except ClusterError as trouble:
            self._answer_limit = None  # it may be slow: the next look waits as long as any request
            self.reading, self.asking_since = SourceReading({}, trouble), float("inf")
            return
        self._answer_limit = ANSWERS_WITHIN
        now, wall_ms = ctx.clock.monotonic(), ctx.clock.wall_ms()
        self._history.observe(observed, now)
        self.reading, self.asking_since = SourceReading(observed), float("inf")

        def since_ms(tp: TopicPartition) -> int:
            row = observed[tp].row
            since = self._history.first_seen_ms(tp, -1 if row is None else row.upstream)
            return wall_ms - (0 if since is None else round(now * 1000) - since)

        row = self._row(observed, asked_ms, since_ms)
        self._last_row = row = replace(row, at_ms=wall_ms, term=self._term)
        appends = [self._append(log, row)]
        appends += [self._append_seen(log, seen) for seen in self._first_seen.observe(observed, wall_ms)]
        failures = [failure for failure in await asyncio.gather(*appends, return_exceptions=True) if failure]
        for failure in failures:
            if not isinstance(failure, ClusterError):
                raise failure
        # Slots go on copying meanwhile. Rows that were not written are due at the next check.
        self.write_trouble = next((failure for failure in failures if isinstance(failure, ClusterError)), None)

    async def _append_seen(self, log: ControlTopicLog, row: SeenEnds) -> None:
        await self._append(log, row)
        self._first_seen.mark_written(row)

    async def _append(self, log: ControlTopicLog, row: Row) -> None:
        dated = replace(row, at_ms=self._ctx.clock.wall_ms(), term=self._term)
        await log.append(*dated.encode(), partition=0)

    def _row(
        self,
        observed_partitions: Mapping[TopicPartition, ObservedPartition],
        asked_ms: int,
        since_ms: Callable[[TopicPartition], int],
    ) -> SourceEnds:
        """Return the row of this check. Partitions without an answer have the ends of the row before."""
        silent = [tp for tp, observed in observed_partitions.items() if observed.source is None]
        answered = [tp for tp, observed in observed_partitions.items() if observed.source is not None]
        known_ms = dict.fromkeys(silent, 0) if self._answered_ms else self._last_row.known_ms(silent)
        answered_ms = known_ms | self._answered_ms
        self._answered_ms = {**{tp: answered_ms[tp] for tp in silent}, **dict.fromkeys(answered, asked_ms)}
        unanswered = {
            tp: replace(observed_partitions[tp], source=LogRange(0, end))
            for tp, end in self._last_row.named_ends(silent).items()
        }
        row = source_ends_row({**observed_partitions, **unanswered}, asked_ms, since_ms)
        return with_unanswered(row, {tp: answered_ms[tp] for tp in silent})

    async def _ask(
        self, source: Admin, partitions: Mapping[TopicPartition, MirroredTopic | None]
    ) -> dict[TopicPartition, ObservedPartition]:
        ctx = self._ctx
        # A copy in one step of the interpreter, for the event loop goes on changing the original.
        rows = ctx.state.rows.copy()
        progress = {(row.topic, row.partition): row for row in rows.values() if isinstance(row, PartitionProgress)}
        committed = ctx.settings.data_plane.reads_committed
        ends = await source.reachable_end_offsets(partitions, read_committed=committed, within=self._answer_limit)
        delayed = [tp for tp in ends if ctx.settings.delay_ms(tp[0])]
        # In this order: if both are equal, no transaction was open when the first was read.
        tops = await source.end_offsets(delayed) if committed and delayed else {}
        restarting = [tp for tp in ends if _restarts_copy(progress.get(tp), partitions[tp])]
        starts = await source.begin_offsets(restarting) if restarting else {}
        return {
            tp: ObservedPartition(
                progress.get(tp),
                LogRange(starts.get(tp, 0), ends[tp]) if tp in ends else None,
                topic=topic,
                is_whole=not committed or tops.get(tp) == ends.get(tp, -1),
            )
            for tp, topic in partitions.items()
        }


class _Stop:
    """A request to end for the event loop of another thread, which may not run yet or any more."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_set = False

    def begin(self) -> asyncio.Event:
        """Return the event to wait for in the running loop."""
        self._loop = asyncio.get_running_loop()
        if self._is_set:
            self._event.set()
        return self._event

    def set(self) -> None:
        """Set the event, from any thread."""
        self._is_set = True
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._event.set)
            except RuntimeError:  # it was closed since
                return


def check_interval_s(partitions: int, took_s: float = 0.0) -> float:
    """Return the seconds from one check of so many partitions to the next one.

    The ends that are written become older while the next check goes on. So a check that `took_s` makes the next one
    come earlier, and never later.
    """
    interval_s = CHECK_INTERVAL_S * max(1.0, partitions / PARTITIONS_PER_CHECK)
    return max(interval_s - took_s, FREQUENT_CHECK_INTERVAL_S)


def delayed_check_interval_s(least_delay: timedelta | None) -> float:
    """Return the longest time in seconds from one check to the next one that the shortest delay of a topic allows."""
    if least_delay is None:
        return float("inf")
    return max(FREQUENT_CHECK_INTERVAL_S, least_delay.total_seconds() / CHECKS_PER_DELAY)


def source_ends_row(
    observed_partitions: Mapping[TopicPartition, ObservedPartition],
    asked_ms: int,
    since_ms: Callable[[TopicPartition], int],
) -> SourceEnds:
    """Return the row with those ends that the progress of a partition does not name.

    Args:
        observed_partitions: What the check saw of each partition.
        asked_ms: Unix milliseconds, no later than the first answer.
        since_ms: Returns when an end beyond the partition's oldest missing record was first seen.
    """
    unnamed = []
    for tp, observed in observed_partitions.items():
        row = observed.row
        named = 0 if row is None else max(row.source_end, row.upstream + 1)
        if observed.source is not None and observed.source.end > named:
            unnamed.append((named - observed.source.end, tp, observed.source.end))
    unnamed.sort()
    ends = tuple((*tp, end) for _, tp, end in unnamed[:MOST_ENDS])
    times = tuple(since_ms(tp) for _, tp, _ in unnamed[:MOST_ENDS])
    return SourceEnds(asked_ms=asked_ms, ends=ends, since_ms=times, more=len(unnamed) - len(ends))


def with_unanswered(row: SourceEnds, known_ms: Mapping[TopicPartition, int]) -> SourceEnds:
    """Return the row with the partitions for which the source did not answer.

    Args:
        row: The row of the other partitions.
        known_ms: Unix milliseconds up to which the end of each such partition is known. What does not fit into one row
            counts as left out, for then no end is sure.
    """
    unanswered = tuple((topic, number, at_ms) for (topic, number), at_ms in sorted(known_ms.items()))
    most = MOST_ENDS - len(row.ends)
    return replace(row, unanswered=unanswered[:most], more=row.more + max(0, len(unanswered) - most))


def _restarts_copy(row: PartitionProgress | None, topic: MirroredTopic | None) -> bool:
    """Return whether the copy begins at the source log's first offset, which is to be queried then."""
    return row is None or row.begins == "reset" or is_of_another_log(row, topic)
