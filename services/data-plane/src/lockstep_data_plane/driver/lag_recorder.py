"""The recorder of a flow's lag: a row for each ten minutes of the last day, which the driver writes while it leads."""

import asyncio
from contextlib import AbstractAsyncContextManager

from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_kafka.common.asyncio_util import BesideTask
from lockstep_kafka.common.errors import ClusterError
from lockstep_rules.offsets.lag_history import (
    SAMPLE_MS,
    WORST_SAMPLE_MS,
    block_of,
    sample_of,
    with_sample,
    with_worst,
)
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.rows.state_rows import LagBlock, Row, WorstLags

TROUBLE = "writing the history of the lag"

BEHIND_BOUNDARY_MS = 10
"""Milliseconds after the beginning of ten seconds at which the sample is taken: a timer may end a little early."""


class LagRecorder:
    """The samples of one flow. What a leader before this one wrote in the same ten minutes goes on.

    A sample that cannot be written is not kept: while the target is away the lag is unknown anyway.
    """

    def __init__(self, ctx: FlowContext, collector: MetricsCollector) -> None:
        self._ctx = ctx
        self._collector = collector
        self._counted: tuple[float, int] | None = None
        """When the last sample was taken, in monotonic seconds, and the records that were counted by then."""
        self._worst_minute = -1
        self._task = BesideTask("record the lag", self._run)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Take a sample each ten seconds as long as the context lasts."""
        return self._task.running()

    def check(self) -> None:
        """Raise what has ended the task of `running`: LeadershipLost, or a mistake."""
        self._task.check()

    async def _run(self) -> None:
        self._counted, self._worst_minute = None, -1
        while True:
            wait_ms = SAMPLE_MS - self._ctx.clock.wall_ms() % SAMPLE_MS
            await asyncio.sleep((wait_ms + BEHIND_BOUNDARY_MS) / 1000)
            await self._record()

    async def _record(self) -> None:
        troubles = self._ctx.periodic.troubles
        try:
            await self._ctx.state.write_all(self.take_sample())
        except ClusterError as trouble:
            troubles.record_failure(TROUBLE, trouble)
        else:
            troubles.record_success(TROUBLE)

    def take_sample(self) -> list[Row]:
        """Return the rows that change with the lag of this moment."""
        state, clock = self._ctx.state, self._ctx.clock
        now_ms = clock.wall_ms()
        number = str(block_of(now_ms)[0])
        lags = {
            tp: None if lag is None else (round(lag.seconds * 1000), lag.records)
            for tp, lag in self._collector.lags().items()
        }
        sample = sample_of(lags.values(), self._records_per_s())
        rows: list[Row] = [with_sample(state.get(LagBlock, number), now_ms, sample)]
        if now_ms // WORST_SAMPLE_MS != self._worst_minute:
            self._worst_minute = now_ms // WORST_SAMPLE_MS
            longest = {tp: None if lag is None else lag[0] for tp, lag in lags.items()}
            worst = with_worst(state.get(WorstLags, number), now_ms, longest)
            rows += [worst] if worst.partitions else []
        return [row for row in rows if state.differs(row)]

    def _records_per_s(self) -> int | None:
        """Return the records a second since the last sample; None: this is the first one."""
        now, records = self._ctx.clock.monotonic(), self._collector.copied_records
        counted, self._counted = self._counted, (now, records)
        if counted is None or now <= counted[0]:
            return None
        return round((records - counted[1]) / (now - counted[0]))
