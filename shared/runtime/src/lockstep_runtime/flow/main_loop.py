"""The main loop of one service in one flow: started, ended and started again as its desired state says.

It knows nothing of leadership: it runs while the replica leads, and is cancelled when the replica stands down.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, LeadershipLost, errors_in
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.state.leadership import leader_label
from lockstep_runtime.util.auto_restart import auto_restart_for, is_spent, record_failure, reset_count
from lockstep_state.commands.command_vocabulary import RESTART, Scope
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import DesiredState, Restarts, Row

EXPECTED = (ClusterError, LeadershipLost, asyncio.CancelledError)


class MainLoop:
    """Run a service's main loop while its connector is to run, and count its restarts."""

    def __init__(
        self,
        ctx: FlowContext,
        run: Callable[[], Awaitable[None]],
        idle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Take the main loop `run`, and the work `idle` that the service has while its connector is stopped."""
        self._ctx = ctx
        self._run = run
        self._idle = idle
        self._scope = Scope.for_connector(ctx.connector)
        self._changed = asyncio.Event()
        self._allowed = auto_restart_for(ctx.connector, ctx.settings.auto_restart)
        ctx.state.listen(self._on_row)

    def _on_row(self, row: Row) -> None:
        if isinstance(row, DesiredState):
            self._changed.set()

    async def run_forever(self) -> None:
        """Run the main loop while its connector is to run, until cancelled.

        What the main loop raises gets out. A ClusterError is counted before, if restarts are limited.
        """
        ctx = self._ctx
        while True:
            await self._wait_until_startable()
            began, requested = ctx.clock.monotonic(), self._requested
            try:
                await self._run_until_unwanted(requested)
            except BaseException as exc:
                trouble = next((error for error in errors_in(exc) if isinstance(error, ClusterError)), None)
                if trouble is not None:
                    await self._record_failure(ctx.clock.monotonic() - began, trouble.to_reason())
                raise
            ctx.periodic.reset()

    @property
    def _requested(self) -> tuple[str, ...]:
        return self._ctx.desired_state.restarts(self._scope)

    async def _wait_until_startable(self) -> None:
        ctx = self._ctx
        is_logged = False
        while True:
            self._changed.clear()
            row = self._restarts()
            spent = is_spent(row, self._requested)
            if ctx.should_run and not spent:
                break
            if not is_logged:
                if not ctx.should_run:
                    ctx.periodic.troubles.forget_all()  # nothing is retried here until it is resumed
                state = f"failed: {row.reason}" if spent else ctx.desired_state.describe(ctx.connector)
                ctx.log.info("not running", f"{ctx.connector.value} is {state}")
                is_logged = True
            if self._idle is not None and self._has_idle_work():
                await self._run_while(self._has_idle_work, self._idle)
            else:
                await self._changed.wait()
        if row.cause:
            await ctx.state.write_if_changed(reset_count(row, self._requested))
        if is_logged:
            ctx.log.info("running again", ctx.connector.value)

    async def _run_until_unwanted(self, requested: tuple[str, ...]) -> None:
        """Run the main loop until it is to end or to start again; it has drained when this returns."""
        await self._run_while(lambda: self._ctx.should_run and self._requested == requested, self._run)

    async def _run_while(self, is_wanted: Callable[[], bool], work: Callable[[], Awaitable[None]]) -> None:
        """Run some work while `is_wanted` is true; it has drained when this returns. Raises what the work raises."""
        task = asyncio.ensure_future(work())
        try:
            while True:
                self._changed.clear()
                if not is_wanted():
                    break
                change = asyncio.ensure_future(self._changed.wait())
                try:
                    # Work that returns has nothing more to do, which is no reason to begin it again.
                    await asyncio.wait({change} if task.done() else {change, task}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
                if task.done():
                    await task
        finally:
            await _drain(task)

    def _has_idle_work(self) -> bool:
        phase = self._ctx.desired_state.connector(self._ctx.connector)
        return phase is DesiredPhase.STOPPED and not is_spent(self._restarts(), self._requested)

    def _restarts(self) -> Restarts:
        ctx = self._ctx
        share = min(ctx.leadership.leading(), default=0)
        owner = leader_label(ctx.service, share, divided=ctx.divided)
        return ctx.state.get(Restarts, owner, "service") or Restarts(owner=owner)

    async def _record_failure(self, worked_s: float, cause: Reason) -> None:
        ctx = self._ctx
        row = await record_failure(
            ctx.state.write_if_changed, self._restarts(), self._allowed, worked_s, cause, self._requested
        )
        if row is not None:
            consequence = f"waits for the command {RESTART} {self._scope}"
            text = f"{ctx.connector.value}, {ctx.service}: {format_sentence(cause)}; {consequence}"
            await ctx.event("ServiceFailed", str(self._scope), text, cause=cause, failures=row.count)


async def _drain(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait for its end.

    A drain that fails because the cluster is away, or because another instance leads, counts as done. Any other error
    of the drain is raised.
    """
    await cancelled([task])
    error = None if task.cancelled() else task.exception()
    if error is not None and not all(isinstance(cause, EXPECTED) for cause in errors_in(error)):
        raise error
