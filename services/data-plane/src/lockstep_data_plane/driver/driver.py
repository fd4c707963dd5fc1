"""The driver of one flow: follows what is to be mirrored, assigns partitions to slots, keeps the slots running.

It moves no record. How far each partition is, it reads from the state topic like everybody else.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from lockstep_data_plane.admin.legacy_group import LegacyGroupFollower
from lockstep_data_plane.admin.offset_admin import OffsetAdmin
from lockstep_data_plane.driver.flow_origin import FlowOrigin, create_topics
from lockstep_data_plane.driver.leaderless_slots import LeaderlessSlots
from lockstep_data_plane.driver.load_balancer import LoadBalancer, assign, mirrored_partitions
from lockstep_data_plane.driver.metrics_collector import MetricsCollector, SlotRun
from lockstep_data_plane.driver.replica_monitor import ReplicaMonitor
from lockstep_data_plane.driver.slot_ends import SlotEnds
from lockstep_data_plane.driver.slot_runs import SlotRuns
from lockstep_data_plane.driver.slot_supervisor import SlotSupervisor
from lockstep_data_plane.driver.source_monitor import SourceMonitor
from lockstep_data_plane.driver.switch_metrics import SwitchMetrics
from lockstep_data_plane.driver.verify_supervisor import VerifySupervisor
from lockstep_data_plane.provenance.origin_events import OriginRecorder, restore_origins
from lockstep_data_plane.slot.desired_state import closed_slots, has_failed, resting_partitions, starts_asked
from lockstep_data_plane.slot.slot_spec import slot_count
from lockstep_data_plane.spark.session import SparkSession
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
    FlowPulse,
    GroupStatus,
    LegacyGroup,
    MirroredTopic,
    Origin,
    PartitionProgress,
    Row,
    SlotStatus,
    SourceEnds,
    SourceGroupsStatus,
    Verification,
    VerifiedPartition,
    Wanted,
)

DRAINS_WITHIN_S = 4.0
TICK_S = 1.0
SOURCE_ASKED_EVERY_S = WEIGH_EVERY_S = 10.0


class Driver:
    """A flow's data plane, for `lockstep_runtime.service.service`. One Spark for all flows of the process."""

    wants: ClassVar[frozenset[type[Row]]] = frozenset(
        {Assignment, LegacyGroup, MirroredTopic, Origin, PartitionProgress, SlotStatus, SourceEnds, Verification}
        | {VerifiedPartition, AclStatus, FlowPulse, GroupStatus, SourceGroupsStatus}  # whether clients can move
    )

    def __init__(self, ctx: FlowContext, spark: SparkSession, log_level: str, log_format: str) -> None:
        self.ctx = ctx
        self.spark = spark
        self._limit = slot_count(ctx.settings)
        self._origin = FlowOrigin(ctx)
        beside = spark.master.startswith("local")
        self._runs = SlotRuns(ctx, self._origin, (log_level, log_format), beside_driver=beside)
        self._troubled_at = float("-inf")
        self._running: dict[int, SlotSupervisor] = {}
        self._changed = asyncio.Event()
        self._collector = MetricsCollector(ctx, self._runs_of_slots)
        self._source_watch = SourceMonitor(ctx, self._collector, self._limit)
        self._replicas = ReplicaMonitor(ctx)
        SwitchMetrics(ctx, self._collector, self._replicas)
        self._placing = OffsetAdmin(ctx)
        self._verify = VerifySupervisor(ctx, spark, lambda slot: replace(self._runs.next(slot), verifies=True))
        self._leaderless = LeaderlessSlots(ctx, lambda: self._running, lambda: self._origin.settings, self._drain)
        self._ends = SlotEnds()
        self._origins = OriginRecorder(ctx)
        self._balance = LoadBalancer()
        self._weighed_at = float("-inf")
        legacy = ctx.settings.data_plane.legacy
        self._group = None if legacy is None else LegacyGroupFollower(ctx, legacy)
        self._aborts = legacy is not None and legacy.abort_on_send_failure
        self._refused: PartitionProgress | None = None
        ctx.state.listen(self._on_row)

    # -- what the runtime asks -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        self._runs.lead()
        async with self._verify.running(), self._placing.copying():
            await self._copy()

    async def run_while_stopped(self) -> None:
        self._runs.lead()
        async with self._verify.running():
            await self._search_ends()

    async def _search_ends(self) -> None:
        """While it is stopped: slots that were killed find out where their copies end. Offsets may be altered then."""
        await self._leaderless.stop()
        await self._drain()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(without_end("awaiting the source", self._await_source()))
            await self._keep_locating()

    async def _keep_locating(self) -> None:
        while True:
            if self._ends.owing(self.ctx.state.rows):
                async with self._placing.copying():
                    await self._locate()
            await self._release_orphans()
            self._changed.clear()
            await set_within(self._changed, to_next_tick(TICK_S))

    async def _await_source(self) -> None:
        """Notice about which partitions the source answers that alone knows where copies end. Never returns."""
        while True:
            await asyncio.sleep(SOURCE_ASKED_EVERY_S)
            if wanted := self._ends.unanswered(self.ctx.state.rows, self.ctx.clock.monotonic()):
                with suppress(ClusterError):
                    await self.ctx.source.probe()
                    self._ends.source_answers(await self.ctx.source.end_offsets(wanted))
                    self._changed.set()

    async def _locate(self) -> None:
        """Until no stopped slot has anything left to find out, or offsets are to be changed. Such a change does not
        wait, because it may be the way out where nothing can be found out."""
        try:
            await self._restore_progress()
            await self._origin.take_last()
            await self._plan(begins=False)
            while self._running and not self._placing.awaited:
                await self._watch()
                await set_within(self._changed, to_next_tick(TICK_S))
                if self._changed.is_set():
                    self._changed.clear()
                    await self._plan(begins=False)
        finally:
            await self._drain()

    async def _copy(self) -> None:
        ctx = self.ctx
        try:
            await self._leaderless.stop()
            self._troubled_at = ctx.clock.monotonic()  # of slots that went on nothing was heard meanwhile
            await create_topics(ctx, ctx.target)
            await self._restore_progress()
            self._origins.begin()
            if ctx.settings.data_plane.tasks_max is None:
                ctx.log.info("slots", f"tasks.max is not set: at most {self._limit} slots, one per core")
            ctx.log.info("spark ready", await self.spark.address() or "its pages are off")
            self._refused = None  # what a row said before our time is tried again
            async with self._origin.confirmed():
                while True:
                    if self._group is not None:
                        await self._group.until_free(self._origin.producer_id)
                    self._changed.set()
                    async with self._source_watch.running():
                        await self._keep_slots()
                    await self._drain()
        finally:
            self._collector.reset()
            if not ctx.acting and self._group is None:
                # We lost the lead. A legacy flow's slots end then: only its driver sees when others join the group.
                self._leaderless.start()
            else:
                await self._drain()
            if self._group is not None:
                await self._group.last_commit()

    async def _keep_slots(self) -> None:
        """For ever; of a legacy flow until somebody is in its group. Raises ShutdownRequested."""
        while self._group is None or not await self._group.occupied():
            await self._origins.record_if_due()
            if self._changed.is_set():
                self._changed.clear()
                await self._plan()
            await self._watch()
            self._origin.check()
            self._source_watch.check()
            await self._replicas.observe_if_due()
            await self._even_out()
            if self._group is not None:
                await self._group.commit_if_due()
            if self._refused is not None and self._aborts:
                name = f"{self._refused.topic}-{self._refused.partition}"
                text = f"{name}: {self._refused.reason}; ended, as lockstep.legacy.abort.on.send.failure=true asks"
                raise ShutdownRequested(text)
            await set_within(self._changed, to_next_tick(TICK_S))

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return await self._placing.carry_out(command) or await self._verify.carry_out(command, scope)

    def status(self) -> Mapping[str, Any]:
        partitions = self.ctx.state.all(PartitionProgress)
        lags = self._collector.lags().values()
        known = [lag.records for lag in lags if lag is not None]
        return {
            "slots": {
                str(r.slot): {
                    "run": r.spec.run if r.spec else "",
                    "restarts": r.restarts,
                    "partitions": len(self._assignment(r.slot).partitions),
                }
                for r in self._running.values()
            },
            **({} if self._group is None else {"legacy": self._group.status()}),
            "producer_id": self._origin.producer_id,
            "partitions": len(partitions),
            "lag_records": sum(known) if len(known) == len(lags) else None,
            "lag_unknown": len(lags) - len(known),
            "states": self._collector.states(),
            "paused": len(resting_partitions(self.ctx.state.rows, partitions, self.ctx.settings.states)),
            "halted": {f"{p.topic}-{p.partition}": p.reason for p in partitions if p.phase == "halted"},
        }

    # -- beginning -----------------------------------------------------------------------------------------------------

    async def _restore_progress(self) -> None:
        """Write again the rows of slots that the state topic lost. No slot runs now. A row that is behind is as good as
        any."""
        if count := await self.ctx.state.restore(lambda row: isinstance(row, PartitionProgress | SlotStatus)):
            self.ctx.log.warn("rows written again", f"{count} of slots, of the former {self.ctx.state.topic}")
        await restore_origins(self.ctx)

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _on_row(self, row: Row) -> None:
        refused = isinstance(row, PartitionProgress) and row.phase == "halted" and row.case == "refused"
        if isinstance(row, PartitionProgress) and refused:
            self._refused = row
        if refused or isinstance(row, MirroredTopic | Wanted):
            self._changed.set()

    def _runs_of_slots(self) -> dict[int, SlotRun]:
        return {slot: SlotRun(r.spec.run, r.restarts) for slot, r in self._running.items() if r.spec is not None}

    def _assignment(self, slot: int) -> Assignment:
        return self.ctx.state.get(Assignment, str(slot)) or Assignment(slot=slot)

    async def _plan(
        self, present: Mapping[int, Sequence[TopicPartition]] | None = None, *, begins: bool = True
    ) -> None:
        """Assign what is mirrored now, and see that each slot with work has a job. `present`: who is to have what,
        where that is not who has it now. `begins`: partitions may begin to be copied."""
        ctx = self.ctx
        wanted = mirrored_partitions(ctx.state.all(MirroredTopic), by_key=ctx.settings.data_plane.by_key)
        if begins and self._group is not None and not await self._group.place(wanted):
            return
        rows = ctx.state.all(Assignment)
        self._collector.follow(wanted)
        held = {row.slot: row.partitions for row in rows} if present is None else present
        closed, moves = closed_slots(ctx.state.rows, self._limit), not self._origin.reads_back
        plan = assign(wanted, self._limit, held, self._collector.byte_rates(), closed, moves=moves)
        due = [Assignment(slot=r.slot, generation=r.generation + 1, ending=True) for r in rows if self._is_extra(r)]
        starting: list[tuple[int, bool]] = []
        for slot, partitions in plan.items():
            row, running = self._assignment(slot), self._running.get(slot)
            stopped = ctx.wanted.slot(slot) is DesiredPhase.STOPPED
            if running is not None and (
                stopped is not running.only_locates
                or not partitions
                or running.asked != starts_asked(ctx.state.rows, slot)
            ):
                running.stop()
            ending = stopped or not partitions or (running is not None and running.ending)
            if row.partitions != partitions or (partitions and row.ending != ending):
                due.append(Assignment(slot=slot, generation=row.generation + 1, partitions=partitions, ending=ending))
            owes = stopped and self._ends.owed(ctx.state.rows, slot, partitions)
            if running is None and (owes or not ending) and not has_failed(ctx.state.rows, slot):
                starting.append((slot, owes))
        await ctx.state.write_all(due)  # together: one after the other takes seconds for many slots and a far target
        for slot, owes in starting:
            started = SlotSupervisor(ctx, self.spark, slot, self._runs.next, only_locates=owes)
            started.task.add_done_callback(lambda _: self._changed.set())
            self._running[slot] = started

    def _is_extra(self, row: Assignment) -> bool:
        """Whether there is no such slot any more, and it has partitions still."""
        return row.slot >= self._limit and bool(row.partitions)

    async def _even_out(self) -> None:
        """Let two slots exchange a partition when what they move has been uneven for long."""
        ctx = self.ctx
        now = ctx.clock.monotonic()
        if now - self._weighed_at < WEIGH_EVERY_S or self._origin.reads_back:
            return
        self._weighed_at = now
        closed = closed_slots(ctx.state.rows, self._limit)
        held = {slot: self._assignment(slot).partitions for slot in range(self._limit) if slot not in closed}
        if better := self._balance.plan(held, self._collector.byte_rates(), now):
            moved = sorted(tp for slot, partitions in better.items() for tp in partitions if tp not in held[slot])
            ctx.log.info("slots evened out", f"{', '.join(f'{topic}-{number}' for topic, number in moved)} change over")
            await self._plan({slot: self._assignment(slot).partitions for slot in closed} | dict(better))

    async def _watch(self) -> None:
        """Slots that do not start, slots that froze, and mistakes of ours in keeping them."""
        ctx = self.ctx
        self._verify.check(crowded=any(running.health.late for running in self._running.values()))
        if ctx.rounds.troubles.now:
            self._troubled_at = ctx.clock.monotonic()
        for slot, running in list(self._running.items()):
            if running.task.done():
                del self._running[slot]
                running.task.result()
                partitions, only_locates = self._assignment(slot).partitions, running.only_locates
                self._ends.ended(ctx.state.rows, slot, partitions, ctx.clock.monotonic(), only_locates=only_locates)
                self._changed.set()
                continue
            await running.check(self._troubled_at)
        await self._release_orphans()

    async def _release_orphans(self) -> None:
        """Release slots that were killed and have nothing to copy any more."""
        ctx = self.ctx
        if rows := list(self._ends.orphaned_rows(ctx.state.rows, self._running, ctx.clock.monotonic())):
            ctx.must_act()
            await ctx.state.write_all(rows)

    # -- ending --------------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Tell every slot to end and wait for it; what has not ended by then is cancelled. When somebody else leads
        now, they are cancelled at once: the assignments are not ours to change."""
        running, self._running = list(self._running.values()), {}
        for r in running:
            r.stop()
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
