"""The driver of one flow: it assigns the mirrored partitions to slots and keeps the slots running.

It copies no record. It reads the progress of each partition from the state topic, as every service does.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from lockstep_config.keys.spark_settings import is_local
from lockstep_data_plane.admin.legacy_group import LegacyGroupFollower
from lockstep_data_plane.admin.offset_admin import OffsetAdmin
from lockstep_data_plane.driver.flow_origin import FlowOrigin, create_topics
from lockstep_data_plane.driver.lag_recorder import LagRecorder
from lockstep_data_plane.driver.load_balancer import LoadBalancer, assign
from lockstep_data_plane.driver.metrics_collector import MetricsCollector, SlotRun
from lockstep_data_plane.driver.orphaned_slots import OrphanedSlots
from lockstep_data_plane.driver.pending_ends import PendingEnds
from lockstep_data_plane.driver.replica_monitor import ReplicaMonitor
from lockstep_data_plane.driver.slot_runs import SlotRuns
from lockstep_data_plane.driver.slot_supervisor import SlotSupervisor
from lockstep_data_plane.driver.source_monitor import SourceMonitor
from lockstep_data_plane.driver.switch_metrics import SwitchMetrics
from lockstep_data_plane.driver.verify_supervisor import VerifySupervisor
from lockstep_data_plane.provenance.origin_events import OriginRecorder, restore_origins
from lockstep_data_plane.slot.desired_partitions import closed_slots, has_failed, resting_partitions, starts_asked
from lockstep_data_plane.slot.slot_spec import slot_count
from lockstep_data_plane.spark.flow_transforms import FlowTransforms
from lockstep_data_plane.spark.session import SparkSession
from lockstep_data_plane.verify.partition_share import copied_partitions
from lockstep_kafka.common.asyncio_util import set_within, to_next_tick, without_end
from lockstep_kafka.common.errors import ClusterError, LeadershipLost, ShutdownRequested
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import (
    AclStatus,
    Assignment,
    DesiredState,
    FlowPulse,
    GroupStatus,
    LagBlock,
    LegacyGroup,
    MirroredTopic,
    Origin,
    PartitionProgress,
    Row,
    SeenEnds,
    SlotStatus,
    SourceEnds,
    SourceGroupsStatus,
    Transform,
    Verification,
    VerifiedPartition,
    WorstLags,
)

DRAINS_WITHIN_S = 4.0
TICK_S = 1.0
SOURCE_CHECK_EVERY_S = REBALANCE_EVERY_S = 10.0


class Driver:
    """The data plane of one flow, as `lockstep_runtime.service.service` runs it.

    The drivers of all flows in a process share one Spark session.
    """

    wants: ClassVar[frozenset[type[Row]]] = frozenset(
        {Assignment, LegacyGroup, MirroredTopic, Origin, PartitionProgress, SeenEnds, SlotStatus, SourceEnds, Transform}
        | {Verification, VerifiedPartition, AclStatus, FlowPulse, GroupStatus, SourceGroupsStatus, LagBlock, WorstLags}
    )

    def __init__(self, ctx: FlowContext, spark: SparkSession, log_level: str, log_format: str) -> None:
        self.ctx = ctx
        self.spark = spark
        self._max_slots = slot_count(ctx.settings)
        self._origin = FlowOrigin(ctx)
        log = log_level, log_format
        self._transforms = FlowTransforms(ctx, spark)
        self._runs = SlotRuns(ctx, self._origin, self._transforms, log, beside_driver=is_local(spark.master))
        self._target_away_at = float("-inf")
        self._running: dict[int, SlotSupervisor] = {}
        self._changed = asyncio.Event()
        self._collector = MetricsCollector(ctx, self._runs_of_slots)
        self._source_monitor = SourceMonitor(ctx, self._collector, self._max_slots)
        self._lag_recorder = LagRecorder(ctx, self._collector)
        self._replicas = ReplicaMonitor(ctx)
        SwitchMetrics(ctx, self._collector, self._replicas)
        self._offset_admin = OffsetAdmin(ctx)
        self._verify_supervisor = VerifySupervisor(
            ctx, spark, lambda slot: replace(self._runs.next(slot), verifies=True)
        )
        self._orphaned_slots = OrphanedSlots(ctx, lambda: self._running, lambda: self._origin.settings, self._drain)
        self._pending_ends = PendingEnds()
        self._origins = OriginRecorder(ctx)
        self._balancer = LoadBalancer()
        self._rebalanced_at = float("-inf")
        legacy = ctx.settings.data_plane.legacy
        self._legacy_group = None if legacy is None else LegacyGroupFollower(ctx, legacy)
        self._aborts_on_refusal = legacy is not None and legacy.abort_on_send_failure
        self._refused_row: PartitionProgress | None = None
        ctx.state.listen(self._on_row)

    # -- what the runtime asks -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        self._runs.lead()
        await self._transforms.compile()
        async with self._verify_supervisor.running(), self._offset_admin.copying():
            await self._copy()

    async def run_while_stopped(self) -> None:
        """Verify, and let killed slots find out where their copies end. Offsets may be altered. Never returns."""
        self._runs.lead()
        await self._transforms.compile()
        async with self._verify_supervisor.running():
            await self._orphaned_slots.stop()
            await self._drain()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(without_end("awaiting the source", self._await_source_answers()))
                await self._run_end_searches()

    async def _run_end_searches(self) -> None:
        while True:
            if self._pending_ends.any_pending(self.ctx.state.rows):
                async with self._offset_admin.copying():
                    await self._search_pending_ends()
            await self._release_dead_slots()
            self._changed.clear()
            await set_within(self._changed, to_next_tick(TICK_S))

    async def _await_source_answers(self) -> None:
        """Query the source about partitions whose end of the copy only the source knows. Never returns."""
        while True:
            await asyncio.sleep(SOURCE_CHECK_EVERY_S)
            if unlocated := self._pending_ends.partitions_to_query(self.ctx.state.rows, self.ctx.clock.monotonic()):
                with suppress(ClusterError):
                    await self.ctx.source.probe()
                    self._pending_ends.note_source_answers(await self.ctx.source.end_offsets(unlocated))
                    self._changed.set()

    async def _search_pending_ends(self) -> None:
        """Run slots that only locate, until no stopped slot has a pending end or a change of offsets waits.

        A change of offsets does not wait for the search, because it may be the way out where nothing can be found.
        """
        try:
            await self._restore_progress()
            await self._origin.take_last()
            await self._plan(begins=False)
            while self._running and not self._offset_admin.awaited:
                await self._check_slots()
                await set_within(self._changed, to_next_tick(TICK_S))
                if self._changed.is_set():
                    self._changed.clear()
                    await self._plan(begins=False)
        finally:
            await self._drain()

    async def _copy(self) -> None:
        ctx = self.ctx
        try:
            await self._orphaned_slots.stop()
            self._target_away_at = ctx.clock.monotonic()  # of slots that went on nothing was heard meanwhile
            await create_topics(ctx, ctx.target)
            await self._restore_progress()
            self._origins.begin()
            if ctx.settings.data_plane.tasks_max is None:
                ctx.log.info("slots", f"tasks.max is not set: at most {self._max_slots} slots, one per core")
            ctx.log.info("spark ready", await self.spark.address() or "its pages are off")
            self._refused_row = None  # what a row said before our time is tried again
            async with self._origin.confirmed():
                while True:
                    if self._legacy_group is not None:
                        await self._legacy_group.wait_until_empty(self._origin.producer_id)
                    self._changed.set()
                    async with self._source_monitor.running(), self._lag_recorder.running():
                        await self._keep_slots()
                    await self._drain()
        finally:
            self._collector.reset()
            if not ctx.is_acting and self._legacy_group is None:
                # We lost the lead. A legacy flow's slots end then: only its driver sees when others join the group.
                self._orphaned_slots.start()
            else:
                await self._drain()
            if self._legacy_group is not None:
                await self._legacy_group.last_commit()

    async def _keep_slots(self) -> None:
        """Keep the slots running for ever, or in a legacy flow until its group has members.

        Raises:
            ShutdownRequested: The target refused a record, and `lockstep.legacy.abort.on.send.failure` is true.
        """
        while self._legacy_group is None or not await self._legacy_group.has_members():
            await self._origins.record_if_due()
            if self._changed.is_set():
                self._changed.clear()
                await self._plan()
            await self._check_slots()
            self._origin.check()
            self._source_monitor.check()
            self._lag_recorder.check()
            await self._replicas.observe_if_due()
            await self._rebalance()
            if self._legacy_group is not None:
                await self._legacy_group.commit_if_due()
            if self._refused_row is not None and self._aborts_on_refusal:
                name = f"{self._refused_row.topic}-{self._refused_row.partition}"
                text = f"{name}: {self._refused_row.reason}; ended, as lockstep.legacy.abort.on.send.failure=true asks"
                raise ShutdownRequested(text)
            await set_within(self._changed, to_next_tick(TICK_S))

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return await self._offset_admin.carry_out(command) or await self._verify_supervisor.carry_out(command, scope)

    def status(self) -> Mapping[str, Any]:
        partitions = self.ctx.state.all(PartitionProgress)
        lags = self._collector.lags().values()
        lag_records = [lag.records for lag in lags if lag is not None]
        return {
            "slots": {
                str(r.slot): {
                    "run": r.spec.run if r.spec else "",
                    "restarts": r.restarts,
                    "partitions": len(self._assignment(r.slot).partitions),
                }
                for r in self._running.values()
            },
            **({} if self._legacy_group is None else {"legacy": self._legacy_group.status()}),
            "producer_id": self._origin.producer_id,
            "partitions": len(partitions),
            "lag_records": sum(lag_records) if len(lag_records) == len(lags) else None,
            "lag_unknown": len(lags) - len(lag_records),
            "states": self._collector.states(),
            "paused": len(resting_partitions(self.ctx.state.rows, partitions, self.ctx.settings.states)),
            "halted": {f"{p.topic}-{p.partition}": p.reason for p in partitions if p.phase == "halted"},
        }

    async def _restore_progress(self) -> None:
        """Write the rows of partitions and slots again if the state topic lost them.

        No slot runs at this time. A row that is behind is good enough, because a slot resumes from the target's log.
        """
        if count := await self.ctx.state.restore(
            lambda row: isinstance(row, PartitionProgress | SeenEnds | SlotStatus)
        ):
            self.ctx.log.warn("rows written again", f"{count} of slots, of the former {self.ctx.state.topic}")
        await restore_origins(self.ctx)

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _on_row(self, row: Row) -> None:
        if isinstance(row, PartitionProgress) and row.phase == "halted" and row.case == "refused":
            self._refused_row = row
            self._changed.set()
        elif isinstance(row, MirroredTopic | DesiredState):
            self._changed.set()

    def _runs_of_slots(self) -> dict[int, SlotRun]:
        return {slot: SlotRun(r.spec.run, r.restarts) for slot, r in self._running.items() if r.spec is not None}

    def _assignment(self, slot: int) -> Assignment:
        return self.ctx.state.get(Assignment, str(slot)) or Assignment(slot=slot)

    async def _plan(
        self, present: Mapping[int, Sequence[TopicPartition]] | None = None, *, begins: bool = True
    ) -> None:
        """Assign the mirrored partitions to slots, and start a job for each slot with work.

        Args:
            present: The partitions that each slot is to keep. None: those that it has now.
            begins: Whether partitions of a legacy flow may begin at the group's offsets.
        """
        ctx = self.ctx
        mirrored = copied_partitions(ctx.state.all(MirroredTopic), by_key=ctx.settings.data_plane.by_key)
        if begins and self._legacy_group is not None and not await self._legacy_group.start_partitions(mirrored):
            return
        rows = ctx.state.all(Assignment)
        self._collector.follow(mirrored)
        assigned = {row.slot: row.partitions for row in rows} if present is None else present
        closed, moves = closed_slots(ctx.state.rows, self._max_slots), not self._origin.reads_back
        plan = assign(mirrored, self._max_slots, assigned, self._collector.byte_rates(), closed, moves=moves)
        changed = [
            Assignment(slot=r.slot, generation=r.generation + 1, ending=True)
            for r in rows
            if r.slot >= self._max_slots and r.partitions
        ]
        starting: list[tuple[int, bool]] = []
        for slot, partitions in plan.items():
            row, running = self._assignment(slot), self._running.get(slot)
            stopped = ctx.desired_state.slot(slot) is DesiredPhase.STOPPED
            if running is not None and (
                stopped is not running.only_locates
                or not partitions
                or running.starts_asked != starts_asked(ctx.state.rows, slot)
            ):
                running.stop()
            ending = stopped or not partitions or (running is not None and running.ending)
            if row.partitions != partitions or (partitions and row.ending != ending):
                changed.append(
                    Assignment(slot=slot, generation=row.generation + 1, partitions=partitions, ending=ending)
                )
            searches_ends = stopped and self._pending_ends.pending(ctx.state.rows, slot, partitions)
            if running is None and (searches_ends or not ending) and not has_failed(ctx.state.rows, slot):
                starting.append((slot, searches_ends))
        # Together: one after the other takes seconds for many slots and a far target.
        await ctx.state.write_all(changed)
        for slot, searches_ends in starting:
            started = SlotSupervisor(ctx, self.spark, slot, self._runs.next, only_locates=searches_ends)
            started.task.add_done_callback(lambda _: self._changed.set())
            self._running[slot] = started

    async def _rebalance(self) -> None:
        """Let two slots exchange a partition if their load has been uneven for `PATIENCE_S`."""
        ctx = self.ctx
        now = ctx.clock.monotonic()
        if now - self._rebalanced_at < REBALANCE_EVERY_S or self._origin.reads_back:
            return
        self._rebalanced_at = now
        closed = closed_slots(ctx.state.rows, self._max_slots)
        assigned = {slot: self._assignment(slot).partitions for slot in range(self._max_slots) if slot not in closed}
        if better := self._balancer.plan(assigned, self._collector.byte_rates(), now):
            moved = sorted(tp for slot, partitions in better.items() for tp in partitions if tp not in assigned[slot])
            ctx.log.info("slots evened out", f"{', '.join(f'{topic}-{number}' for topic, number in moved)} change over")
            await self._plan({slot: self._assignment(slot).partitions for slot in closed} | dict(better))

    async def _check_slots(self) -> None:
        """Check each slot for late starts and silence, and account for the jobs that have ended.

        Raises what has ended a supervisor by mistake.
        """
        ctx = self.ctx
        self._verify_supervisor.check(crowded=any(running.health.late for running in self._running.values()))
        if ctx.periodic.troubles.now:
            self._target_away_at = ctx.clock.monotonic()
        for slot, running in list(self._running.items()):
            if running.task.done():
                del self._running[slot]
                running.task.result()
                partitions, only_locates = self._assignment(slot).partitions, running.only_locates
                self._pending_ends.note_job_end(
                    ctx.state.rows, slot, partitions, ctx.clock.monotonic(), only_locates=only_locates
                )
                self._changed.set()
                continue
            await running.check(self._target_away_at)
        await self._release_dead_slots()

    async def _release_dead_slots(self) -> None:
        """Write the row of a released slot for each slot that was killed and has no partitions."""
        ctx = self.ctx
        if rows := list(self._pending_ends.release_rows(ctx.state.rows, self._running, ctx.clock.monotonic())):
            ctx.must_act()
            await ctx.state.write_all(rows)

    async def _drain(self) -> None:
        """Ask every slot to end, wait for `DRAINS_WITHIN_S`, and cancel the jobs that still run.

        If another replica leads by now, the jobs are cancelled at once, because its assignments must not be changed.
        """
        running, self._running = list(self._running.values()), {}
        for r in running:
            r.stop()
            r.task.add_done_callback(self._log_end)  # whatever interrupts the drain
        tasks = {r.task for r in running}
        if not tasks:
            return
        try:
            async with asyncio.timeout(DRAINS_WITHIN_S):
                rows = [self._assignment(r.slot) for r in running]
                await self.ctx.state.write_all(replace(r, generation=r.generation + 1, ending=True) for r in rows)
                await asyncio.wait(tasks)
        except (LeadershipLost, TimeoutError, ClusterError):
            self.ctx.log.warn("slots cancelled", "not drained; the next ones continue from the target's log")
        for r in running:
            if not r.task.done() and r.spec is not None:
                await self.spark.cancel(r.spec)
            r.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _log_end(self, task: asyncio.Task[None]) -> None:
        """Log the error of a slot that is drained. The next leader learns of a Spark that has ended by itself."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.ctx.log.warn(f"{task.get_name()} ended", str(error))
