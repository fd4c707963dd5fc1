"""Lead a service in a flow: claim the lead, work while leading, stand down.

It also reports a lead that changes more often than restarts explain.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

from lockstep_kafka.common.asyncio_util import set_within, to_next_tick, without_end
from lockstep_kafka.common.errors import LeadershipLost, errors_in
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.command_handler import CommandHandler
from lockstep_runtime.flow.context import FlowContext, FlowService, IdleWork
from lockstep_runtime.flow.main_loop import MainLoop
from lockstep_runtime.state.leadership import leader_label
from lockstep_runtime.telemetry.process_end import replace_process
from lockstep_runtime.util.task_restarts import TaskRestarts
from lockstep_state.names import commands_topic, events_topic
from lockstep_state.rows.state_rows import Leader

PERIOD_S = 60.0
"""Seconds over which changes of the lead are counted."""

OFTEN = 5
"""Changes within the period beyond which a warning is written. A rolling restart of three replicas makes three."""


class LeadChanges:
    """Count claims by label: one label for the service, or one for each share of its work (`leader_label`)."""

    def __init__(self) -> None:
        self._claims: dict[str, deque[tuple[float, str]]] = {}
        self._reported_at = float("-inf")

    def count(self, label: str, instance: str, now: float) -> None:
        """Count that an instance claimed the lead at `now`, in seconds of a clock that does not go back."""
        claims = self._claims.setdefault(label, deque())
        claims.append((now, instance))
        while now - claims[0][0] > PERIOD_S:
            claims.popleft()

    def find_frequent(self, instance: str, now: float) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Yield each label that changed more than `OFTEN` times within the period and was last claimed by `instance`.

        A label comes with the number of changes and the instances, last one first. One period has one report: where
        replicas divide the work, all shares change together, one after the other.
        """
        if now - self._reported_at < PERIOD_S:
            return
        for label, claims in self._claims.items():
            recent = [name for claimed_at, name in claims if now - claimed_at <= PERIOD_S]
            if len(recent) <= OFTEN or recent[-1] != instance:
                continue
            self._reported_at = now
            yield label, len(recent), tuple(dict.fromkeys(reversed(recent)))


TICK = 1.0
"""Seconds between two checks of our own lead when nothing happens."""

DRAIN = 5.0
"""Seconds a main loop gets to end after it was cancelled, before others go on without it."""

ENDS_WITHIN = 60.0
"""Seconds after which a cancelled main loop that has not ended takes its process with it.

It may still act, and no other begins beside it.
"""


class LeaderLoop:
    """Run the main loop of a service and its commands while this replica leads."""

    def __init__(self, ctx: FlowContext, service: FlowService, work_name: str) -> None:
        """Take the service, and the name `work_name` of a trouble of all of its work."""
        self.ctx = ctx
        self._service = service
        self._work_name = work_name
        self._main_loop = MainLoop(
            ctx, service.run, service.run_while_stopped if isinstance(service, IdleWork) else None
        )
        self._woken = asyncio.Event()
        self._leading: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        """A main loop that was cancelled, and may not have ended yet."""
        self._handler: CommandHandler | None = None
        self.acting_since = float("inf")
        """The monotonic time since when the main loop runs; infinity: it does not."""
        self._changes = LeadChanges()
        self._superseded_at = float("-inf")
        """The monotonic time of the last claim by another instance on a partition that this one holds."""

    def wake(self) -> None:
        """Let `run` check at once: the assignment has changed."""
        self._woken.set()

    def receive_commands(self, records: Sequence[Record]) -> None:
        """Take commands that came through the group."""
        if self._handler is not None:
            self._handler.receive_commands(records)

    def read_claim(self, label: str, instance: str, offset: int, *, new: bool) -> None:
        """Take a leader row that was read. `new`: it was not in the topic before this replica was ready."""
        ctx, now = self.ctx, self.ctx.clock.monotonic()
        unclaimed = ctx.leadership.unclaimed_partitions()
        ctx.leadership.read_claim(label, instance, offset)
        if ctx.leadership.unclaimed_partitions() != unclaimed:
            self._superseded_at = now
        if new:
            self._changes.count(label, instance, now)
        self._woken.set()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Claim what the group has assigned, work in `tasks` while leading, and stand down when not leading."""
        ctx = self.ctx
        while True:
            self._woken.clear()
            # A process that was frozen would claim its partitions from its successor, which would claim them back, and
            # so on. So it claims only what the group has confirmed since the other claim.
            confirmed = ctx.group_is_current and (ctx.heartbeat_at or 0.0) >= self._superseded_at
            for partition in ctx.leadership.unclaimed_partitions() if confirmed else ():
                await self._claim(partition)
            for label, times, instances in self._changes.find_frequent(ctx.instance, ctx.clock.monotonic()):
                text = f"{label} {times} times within {PERIOD_S:.0f} s, last by {', '.join(instances)}"
                await ctx.event("LeadChangesOften", label, text, times=times, instances=list(instances))
            if ctx.is_acting and self._leading is None and (self._ending is None or self._ending.done()):
                self._ending = None
                term_text = f"term {ctx.leadership.term(min(ctx.leadership.leading()))}"
                ctx.log.info("leading", f"{ctx.instance}, {term_text}", term=ctx.term)
                self._leading = tasks.create_task(self._run_while_leading())
            elif not ctx.is_acting and self._leading is not None:
                await self.stand_down(self._why_not_acting())
            await set_within(self._woken, to_next_tick(TICK))

    async def _claim(self, partition: int) -> None:
        ctx = self.ctx
        label = leader_label(ctx.service, partition, divided=self.ctx.divided)
        row = Leader(service=label, instance=ctx.instance)
        # Term 0 means none, so the first record of a topic cannot be one.
        term = await ctx.state.claim(row) or await ctx.state.claim(row)
        ctx.leadership.claimed(partition, term)

    def _why_not_acting(self) -> str:
        ctx = self.ctx
        if ctx.group_is_current:
            return "another replica leads now"
        if ctx.heartbeat_at is None:
            return "the group's coordinator has not answered yet"
        silent_s = ctx.clock.monotonic() - ctx.heartbeat_at
        return f"no answer of the group's coordinator on {ctx.flow.target} for {silent_s:.0f} s"

    async def stand_down(self, reason: str) -> None:
        """End acting before this returns, within `DRAIN` seconds, and log the `reason`.

        A main loop that takes longer is waited for before another begins.
        """
        task, self._leading = self._leading, None
        self._handler = None
        if task is None:
            return
        if not task.done():
            self.ctx.log.info("standing down", f"{self.ctx.instance}: {reason}")
            self._ending = task
            task.cancel()
            _, late = await asyncio.wait({task}, timeout=DRAIN)
            if late:
                self.ctx.log.warn(
                    "main loop did not end in time", f"after {DRAIN:.0f} s; no other begins before it has"
                )
                asyncio.get_running_loop().call_later(ENDS_WITHIN - DRAIN, self._require_end, task)
        self.ctx.periodic.reset()

    def _require_end(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            subject = f"the main loop of {self.ctx.service} {self.ctx.flow}"
            replace_process(
                self.ctx.log, f"{subject} did not end within {ENDS_WITHIN:.0f} s, so its process is replaced"
            )

    async def _run_while_leading(self) -> None:
        """Run the service's main loop, and its commands beside it, until cancelled."""
        ctx = self.ctx
        restarts = TaskRestarts(
            lambda error: ctx.periodic.troubles.record_failure(self._work_name, error), ctx.clock.monotonic
        )
        await restarts.run_forever(self._run_main_loop)

    async def _run_main_loop(self) -> None:
        self.acting_since = self.ctx.clock.monotonic()
        try:
            await self.ctx.restore_rows()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(without_end("the command handler", self._serve_commands()))
                tasks.create_task(without_end("the main loop", self._main_loop.run_forever()))
        except* LeadershipLost as group:
            # `run` cancels this task, unless the group answers again before it checks.
            self.ctx.log.debug("stood down", str(next(errors_in(group))))
            self._woken.set()
        finally:
            self.acting_since = float("inf")

    async def _serve_commands(self) -> None:
        """Carry out commands: first those in the topic without an answer, then those that come through the group."""
        ctx, settings, client = self.ctx, self.ctx.settings, self.ctx.service
        handler = self._handler = CommandHandler(ctx, self._service.command)
        events, commands = events_topic(ctx.flow, settings.group_id), commands_topic(ctx.flow, settings.group_id)
        partitions = ctx.leadership.held
        try:
            await target_follower(settings, client, events, handler.fold_answers).replay()
            await target_follower(settings, client, commands, handler.receive_commands, partitions=partitions).replay()
            await handler.serve()
        finally:
            self._handler = None
