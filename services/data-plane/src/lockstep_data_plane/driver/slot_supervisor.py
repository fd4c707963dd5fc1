"""The supervision of one slot's Spark job.

A job that ends without being asked to starts again with back-off, as often as `lockstep.auto.restart.*` allows. The job
of a stopped slot only locates: it starts until it has written down where its copies end.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

from lockstep_data_plane.driver.metrics import SLOT_RESTARTS
from lockstep_data_plane.slot.desired_partitions import slot_restarts, slot_scope, starts_asked
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.session import SlotFailed, SparkSession
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import LeadershipLost
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.util.auto_restart import auto_restart_for, record_failure, reset_count
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.commands.command_vocabulary import RESTART, Connector
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import SlotStatus

STARTS_WITHIN_S = 20.0
FIRST_REPORT_WITHIN_S = 180.0
"""Seconds from when Spark has begun the task until the slot's first report.

An executor first fetches and unpacks its Python, and a slot reads the whole state topic before it reports.
"""

FROZEN_AFTER_S = 30.0
DRAINS_ALONE_WITHIN_S = 10.0
"""Seconds that one slot gets to drain if it alone is to end. An operator may end it because it hangs."""


def not_started_text(slot: str, occupancy: str, *, is_task_running: bool, free_cores: int) -> str:
    """Return the sentence about a late slot: either Spark has no free core for it, or the slot is slow.

    A slot whose task runs holds a core already, so no core needs to be free for it.
    """
    late = f"{slot} has not started within {STARTS_WITHIN_S:.0f} s"
    if is_task_running or free_cores > 0:
        return f"{late}, although Spark has a core for it ({occupancy}): it is slow, look at the load of its machines"
    return (
        f"{late} and does as soon as a core is free for it ({occupancy}): give Spark more cores, or set tasks.max to "
        "fewer slots"
    )


class SlotProblem(Enum):
    """A problem of a run.

    A LATE run waits for a core and will start. The task of a FROZEN or UNDRAINED run is to be ended.
    """

    LATE = "late"
    FROZEN = "frozen"
    UNDRAINED = "undrained"


class SlotHealth:
    """The liveness of one run of a slot, which began at `since`.

    All times are seconds of a monotonic clock. Each problem is returned once. A late run may freeze later.
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._timer = LivenessTimer()
        self._problems: set[SlotProblem] = set()
        self._unreported_timer = LivenessTimer()
        self._unreported_s = 0.0
        self.started_at: float | None = None
        """The time of the run's first report; None: it has not reported yet."""
        self.silent_s = 0.0
        """The seconds without a report after which the run was found frozen."""

    @property
    def late(self) -> bool:
        """Return whether the run was late and has still not reported.

        Then `note_task` is to be called before `check`.
        """
        return SlotProblem.LATE in self._problems and self.started_at is None

    def note_task(self, is_task_running: bool, now: float) -> None:
        """Note whether Spark runs the task of a slot that has not reported yet."""
        self._unreported_s = self._unreported_timer.silent_for(is_task_running or None, now)

    def check(self, status: SlotStatus | None, now: float, target_away_at: float) -> SlotProblem | None:
        """Return a problem of the run that was not returned before.

        A slot cannot report while the target is away, so its silence counts from `target_away_at` at the earliest.

        Args:
            status: The last report of the run; None: it has not reported yet.
            now: The present time.
            target_away_at: When the target was last away.
        """
        silent_s = self._timer.silent_for(status, now)
        limit = FROZEN_AFTER_S
        if status is not None and self.started_at is None:
            self.started_at = now
        if status is None:
            if now - self._since > STARTS_WITHIN_S and SlotProblem.LATE not in self._problems:
                return self._note(SlotProblem.LATE)
            silent_s, limit = self._unreported_s, FIRST_REPORT_WITHIN_S
        if min(silent_s, now - target_away_at) <= limit or SlotProblem.FROZEN in self._problems:
            return None
        self.silent_s = silent_s
        return self._note(SlotProblem.FROZEN)

    def check_ending(self, stop_requested_at: float, now: float) -> SlotProblem | None:
        """Return UNDRAINED once, if the slot was asked to end more than `DRAINS_ALONE_WITHIN_S` ago."""
        if now - stop_requested_at <= DRAINS_ALONE_WITHIN_S or SlotProblem.UNDRAINED in self._problems:
            return None
        return self._note(SlotProblem.UNDRAINED)

    def _note(self, problem: SlotProblem) -> SlotProblem:
        self._problems.add(problem)
        return problem


LAST_REPORT_WITHIN_S = 5.0
"""Seconds that the last report of a slot may take to arrive.

If it comes later, the slot's ends are searched once more.
"""


class SlotSupervisor:
    """The supervisor of one slot. `task` is done once the slot was asked to end, or has failed too often.

    Attributes:
        spec: The present run, or the last one; None before the first.
        health: The liveness of the present run.
        restarts: How often a run has ended without being asked to.
        stop_requested_at: When the slot was asked to end (`Clock.monotonic`); None: it was not.
        starts_asked: The number of starts that operators had asked for when the supervisor began.
    """

    def __init__(
        self,
        ctx: FlowContext,
        spark: SparkSession,
        slot: int,
        new_spec: Callable[[int], SlotSpec],
        *,
        only_locates: bool = False,
    ) -> None:
        """Start to supervise the slot.

        Args:
            ctx: The flow.
            spark: The Spark session that runs the job.
            slot: The number of the slot.
            new_spec: Returns the specification of the next run.
            only_locates: Whether the slot is stopped. It copies nothing then, and its job ends once the ends are
                located.
        """
        self._ctx = ctx
        self._spark = spark
        self._new_spec = new_spec
        self._allowed = auto_restart_for(Connector.SOURCE, ctx.settings.auto_restart)
        self.slot = slot
        self.spec: SlotSpec | None = None
        self.health = SlotHealth(0.0)
        self.restarts = 0
        self._failures = ctx.metrics.series(SLOT_RESTARTS, str(ctx.flow), str(slot))
        self.stop_requested_at: float | None = None
        self.starts_asked = starts_asked(ctx.state.rows, slot)
        self.only_locates = only_locates
        self._stop_requested = asyncio.Event()
        self.task = asyncio.create_task(self._supervise(), name=f"slot {slot}")

    @property
    def ending(self) -> bool:
        return self.only_locates or self._stop_requested.is_set()

    def stop(self) -> None:
        """Start no further run. The assignment ends the present one."""
        if not self._stop_requested.is_set():
            self.stop_requested_at = self._ctx.clock.monotonic()
            self._stop_requested.set()

    async def check(self, target_away_at: float) -> None:
        """Report a new problem of the present run, and cancel a run that is frozen or does not drain.

        Args:
            target_away_at: When the target was last away (`Clock.monotonic`). A slot cannot report at such a time.
        """
        ctx, spec, health, slot = self._ctx, self.spec, self.health, f"slot {self.slot}"
        if spec is None:
            return
        if self.stop_requested_at is not None:
            if health.check_ending(self.stop_requested_at, ctx.clock.monotonic()) is not None:
                text = f"{slot} has not drained within {DRAINS_ALONE_WITHIN_S:.0f} s; the next one continues"
                ctx.log.warn("slot cancelled", f"{text} from the target's log", slot=self.slot)
                await self._spark.cancel(spec)
            return
        status = ctx.state.get(SlotStatus, str(self.slot))
        status = status if status is not None and status.run == spec.run else None
        if status is None and health.late:
            health.note_task(await self._spark.is_task_running(spec), ctx.clock.monotonic())
        problem = health.check(status, ctx.clock.monotonic(), target_away_at)
        if problem is SlotProblem.LATE:
            spark = self._spark
            is_task_running, free_cores = await spark.is_task_running(spec), await spark.free_cores()
            text = not_started_text(
                slot, await spark.occupancy(), is_task_running=is_task_running, free_cores=free_cores
            )
            await ctx.event("SlotNotStarted", slot, text, slot=self.slot)
        elif problem is SlotProblem.FROZEN:
            text = f"{slot} has said nothing for {health.silent_s:.0f} s; ending its task, another takes over"
            await ctx.event("SlotFrozen", slot, text, slot=self.slot, run=spec.run)
            await self._spark.cancel(spec)

    async def _supervise(self) -> None:
        with suppress(LeadershipLost):  # the next leader starts another
            await self._run_with_restarts()

    async def _run_with_restarts(self) -> None:
        ctx = self._ctx
        tries = slot_restarts(ctx.state.rows, self.slot)
        if tries.cause:
            await ctx.state.write_if_changed(reset_count(tries, self.starts_asked))
        backoff = Backoff(limit=30.0, at_once=1)  # records wait, and a slot that was killed has nothing wrong with it
        while not self._stop_requested.is_set():
            self.spec = self._new_spec(self.slot)
            self.health = SlotHealth(ctx.clock.monotonic())
            log_failure = ctx.log.warn
            try:
                await self._spark.run_slot(self.spec)
                if self.ending:
                    await self._wait_released(self.spec)
                    return
                log_failure, cause = ctx.log.info, ReasonCode.ENDED_BY_ITSELF.to_reason()
            except SlotFailed as exc:
                cause = ReasonCode.REPORTED.to_reason(text=str(exc))
            if self._stop_requested.is_set():
                return
            reason = format_sentence(cause)
            if not ctx.is_acting:
                log_failure(f"slot {self.slot} ended", f"{reason}; the next leader starts another", slot=self.slot)
                return
            self.restarts += 1
            self._failures.increase()
            backoff.forget_failures(self._uptime_s())
            wait = backoff.next()
            is_final = await self._record_failure(cause)
            consequence = f"waits for the command {RESTART} {slot_scope(self.slot)}"
            when = f"starting again in {wait:.1f} s" if wait else "starting again at once"
            await ctx.event(
                "SlotFailed",
                f"slot {self.slot}",
                f"slot {self.slot}: {reason}; {consequence if is_final else when}",
                slot=self.slot,
                run=self.spec.run,
                cause=cause,
                restarts=self.restarts,
                waits=is_final,
            )
            if is_final:
                return
            await set_within(self._stop_requested, wait)
            if not ctx.is_acting:
                return

    async def _wait_released(self, spec: SlotSpec) -> None:
        """Wait until the row of the run says that it is released, `LAST_REPORT_WITHIN_S` at most.

        The row follows all progress of the run in the state topic, so that has been read then as well.
        """
        state = self._ctx.state
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_REPORT_WITHIN_S):
                while (status := state.get(SlotStatus, str(self.slot))) is None or status.run == spec.run:
                    if status is not None and status.phase == "released":
                        return
                    await state.changed(state.position)

    async def _record_failure(self, cause: Reason) -> bool:
        """Count the failure if restarts are limited, and return whether it was the last one that is allowed."""
        state = self._ctx.state
        restarts = slot_restarts(state.rows, self.slot)
        row = await record_failure(
            state.write_if_changed, restarts, self._allowed, self._uptime_s(), cause, self.starts_asked
        )
        return row is not None

    def _uptime_s(self) -> float:
        """Return the seconds since the first report of the last run; 0.0 if it never reported."""
        started_at = self.health.started_at
        return 0.0 if started_at is None else self._ctx.clock.monotonic() - started_at
