"""One slot's job, kept alive. It starts again with back-off whenever it ends unasked, as often as
`lockstep.auto.restart.*` allows. The job of a stopped slot only starts until it has written down where its copies
end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

from lockstep_data_plane.driver.metrics import SLOT_RESTARTS
from lockstep_data_plane.slot.desired_state import slot_restarts, slot_scope, starts_asked
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.session import SlotFailed, SparkSession
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import LeadershipLost
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.util.auto_restart import auto_restart_for, count_failure, is_spent, is_unlimited, reset_count
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.commands.command_vocabulary import RESTART, Connector
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import SlotStatus

STARTS_WITHIN_S = 20.0
FIRST_WORD_WITHIN_S = 180.0
"""Counted from when Spark has begun the task. An executor first fetches and unpacks its Python, and a slot reads the
whole state topic before its first report."""

FROZEN_AFTER_S = 30.0
DRAINS_ALONE_WITHIN_S = 10.0
"""How long a slot that is to end, alone, gets to drain: an operator who ends it by hand may do so because it hangs."""


def not_started(slot: str, occupancy: str, *, is_at_work: bool, free_cores: int) -> str:
    """Return the sentence about a slot that is late: Spark has no core for it, or it has one and is slow.

    A slot `is_at_work` from when Spark has begun its task: it holds a core then, and none needs to be free.
    """
    late = f"{slot} has not started within {STARTS_WITHIN_S:.0f} s"
    if is_at_work or free_cores > 0:
        return f"{late}, although Spark has a core for it ({occupancy}): it is slow, look at the load of its machines"
    return (
        f"{late} and does as soon as a core is free for it ({occupancy}): give Spark more cores, or set tasks.max to "
        "fewer slots"
    )


class SlotProblem(Enum):
    """LATE: it waits for a place, and will start. FROZEN, UNDRAINED: its task is to be ended."""

    LATE = "late"
    FROZEN = "frozen"
    UNDRAINED = "undrained"


class SlotHealth:
    """Of one run, which began at `since`; all times are seconds of a clock that does not go back. Each ailment is
    reported once. A run that was late may freeze later; one that froze is not reported again."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._timer = LivenessTimer()
        self._reported: set[SlotProblem] = set()
        self._before_its_first_word = LivenessTimer()
        self._wordless_s = 0.0
        self.started_at: float | None = None
        """When it was first heard."""
        self.silent_s = 0.0
        """For how long nothing was heard of it, of a run that froze."""

    @property
    def late(self) -> bool:
        """Whether it was late and has still said nothing: then `at_work` wants to know."""
        return SlotProblem.LATE in self._reported and self.started_at is None

    def at_work(self, is_at_work: bool, now: float) -> None:
        """Whether Spark has begun its task, of one that has said nothing."""
        self._wordless_s = self._before_its_first_word.silent_for(is_at_work or None, now)

    def check(self, said: SlotStatus | None, now: float, troubled_at: float) -> SlotProblem | None:
        """What is newly wrong. `said`: its last status, None as long as it has said nothing. `troubled_at`: when the
        target was last away; a slot cannot say then that it lives, so silence counts from there."""
        silent_s = self._timer.silent_for(said, now)
        limit = FROZEN_AFTER_S
        if said is not None and self.started_at is None:
            self.started_at = now
        if said is None:
            if now - self._since > STARTS_WITHIN_S and SlotProblem.LATE not in self._reported:
                return self._report(SlotProblem.LATE)
            silent_s, limit = self._wordless_s, FIRST_WORD_WITHIN_S
        if min(silent_s, now - troubled_at) <= limit or SlotProblem.FROZEN in self._reported:
            return None
        self.silent_s = silent_s
        return self._report(SlotProblem.FROZEN)

    def check_ending(self, stop_requested_at: float, now: float) -> SlotProblem | None:
        """What is newly wrong with a slot that was asked to end at `stop_requested_at`."""
        if now - stop_requested_at <= DRAINS_ALONE_WITHIN_S or SlotProblem.UNDRAINED in self._reported:
            return None
        return self._report(SlotProblem.UNDRAINED)

    def _report(self, ailment: SlotProblem) -> SlotProblem:
        self._reported.add(ailment)
        return ailment


HEARD_WITHIN_S = 5.0
"""How long the last reports of a slot may take to arrive. A report that has not by then is checked once more."""


class SlotSupervisor:
    """Of one slot, until it is asked to end or has failed too often; `task` is done then."""

    def __init__(
        self,
        ctx: FlowContext,
        spark: SparkSession,
        slot: int,
        new_spec: Callable[[int], SlotSpec],
        *,
        only_locates: bool = False,
    ) -> None:
        """`new_spec`: who the next run of a slot is. `only_locates`: its assignment says that it ends, and it copies
        nothing: it finds out where the copies end that were killed, however long that takes."""
        self._ctx = ctx
        self._spark = spark
        self._new_spec = new_spec
        self._allowed = auto_restart_for(Connector.SOURCE, ctx.settings.auto_restart)
        self.slot = slot
        self.spec: SlotSpec | None = None
        self.health = SlotHealth(0.0)
        """Of the present run."""
        self.restarts = 0
        self._failures = ctx.metrics.series(SLOT_RESTARTS, str(ctx.flow), str(slot))
        self.stop_requested_at: float | None = None
        """When it was asked to end (`Clock.monotonic`)."""
        self.asked = starts_asked(ctx.state.rows, slot)
        """The new starts that had been asked for when it began."""
        self.only_locates = only_locates
        self._stop_requested = asyncio.Event()
        self.task = asyncio.create_task(self._keep(), name=f"slot {slot}")

    @property
    def ending(self) -> bool:
        return self.only_locates or self._stop_requested.is_set()

    def stop(self) -> None:
        """Let it not be started again. The assignment ends the running job."""
        if not self._stop_requested.is_set():
            self.stop_requested_at = self._ctx.clock.monotonic()
            self._stop_requested.set()

    async def check(self, troubled_at: float) -> None:
        """Say what is newly wrong with the present run, and end one that is frozen or does not drain. `troubled_at`:
        when the target was last away, of which a slot's silence says nothing."""
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
        said = status if status is not None and status.run == spec.run else None
        if said is None and health.late:
            health.at_work(await self._spark.is_at_work(spec), ctx.clock.monotonic())
        ailment = health.check(said, ctx.clock.monotonic(), troubled_at)
        if ailment is SlotProblem.LATE:
            spark = self._spark
            is_at_work, free_cores = await spark.is_at_work(spec), await spark.free_cores()
            text = not_started(slot, await spark.occupancy(), is_at_work=is_at_work, free_cores=free_cores)
            await ctx.event("SlotNotStarted", slot, text, slot=self.slot)
        elif ailment is SlotProblem.FROZEN:
            text = f"{slot} has said nothing for {health.silent_s:.0f} s; ending its task, another takes over"
            await ctx.event("SlotFrozen", slot, text, slot=self.slot, run=spec.run)
            await self._spark.cancel(spec)

    async def _keep(self) -> None:
        with suppress(LeadershipLost):  # the next leader starts another
            await self._start_again_and_again()

    async def _start_again_and_again(self) -> None:
        ctx = self._ctx
        tries = slot_restarts(ctx.state.rows, self.slot)
        if tries.cause:
            await ctx.state.write_if_changed(reset_count(tries, self.asked))
        backoff = Backoff(limit=30.0, at_once=1)  # records wait, and a slot that was killed has nothing wrong with it
        while not self._stop_requested.is_set():
            self.spec = self._new_spec(self.slot)
            self.health = SlotHealth(ctx.clock.monotonic())
            say = ctx.log.warn
            try:
                await self._spark.run_slot(self.spec)
                if self.ending:
                    await self._wait_released(self.spec)
                    return
                say, cause = ctx.log.info, ReasonCode.ENDED_BY_ITSELF.to_reason()
            except SlotFailed as exc:
                cause = ReasonCode.REPORTED.to_reason(text=str(exc))
            if self._stop_requested.is_set():
                return
            reason = format_sentence(cause)
            if not ctx.is_acting:
                say(f"slot {self.slot} ended", f"{reason}; the next leader starts another", slot=self.slot)
                return
            self.restarts += 1
            self._failures.increase()
            backoff.worked(self._copied_s())
            wait = backoff.next()
            spent = await self._count(cause)
            then = f"waits for the command {RESTART} {slot_scope(self.slot)}"
            when = f"starting again in {wait:.1f} s" if wait else "starting again at once"
            await ctx.event(
                "SlotFailed",
                f"slot {self.slot}",
                f"slot {self.slot}: {reason}; {then if spent else when}",
                slot=self.slot,
                run=self.spec.run,
                cause=cause,
                restarts=self.restarts,
                waits=spent,
            )
            if spent:
                return
            await set_within(self._stop_requested, wait)
            if not ctx.is_acting:
                return

    async def _wait_released(self, spec: SlotSpec) -> None:
        """Its last words are behind all that it has written down, which has reached us then as well."""
        state = self._ctx.state
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARD_WITHIN_S):
                while (said := state.get(SlotStatus, str(self.slot))) is None or said.run == spec.run:
                    if said is not None and said.phase == "released":
                        return
                    await state.changed(state.position)

    async def _count(self, cause: Reason) -> bool:
        """Write the failure down where they are limited; whether it was one too many."""
        if is_unlimited(self._allowed):
            return False
        known = slot_restarts(self._ctx.state.rows, self.slot)
        row = count_failure(known, self._allowed, self._copied_s(), cause, self.asked)
        await self._ctx.state.write_if_changed(row)
        return is_spent(row, self.asked)

    def _copied_s(self) -> float:
        """For how long its last run has been at work: since it said so first, zero if it never did."""
        started_at = self.health.started_at
        return 0.0 if started_at is None else self._ctx.clock.monotonic() - started_at
