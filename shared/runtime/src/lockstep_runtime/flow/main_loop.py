"""The main loop of one service in one flow, as long as it is wanted: gated, begun anew when asked, restarts counted.

It knows nothing of leadership: it is run while we lead, and cancelled when we stand down.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, LeadershipLost, errors_in
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.state.leadership import leader_label
from lockstep_runtime.util.auto_restart import auto_restart_for, count_failure, is_spent, is_unlimited, reset_count
from lockstep_state.commands.command_vocabulary import RESTART, Scope
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Restarts, Row, Wanted

EXPECTED = (ClusterError, LeadershipLost, asyncio.CancelledError)


class MainLoop:
    """`run` is the service's main loop, `rest` what it does while its connector is stopped."""

    def __init__(
        self,
        ctx: FlowContext,
        run: Callable[[], Awaitable[None]],
        rest: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._ctx = ctx
        self._run = run
        self._rest = rest
        self._scope = Scope.for_connector(ctx.connector)
        self._changed = asyncio.Event()
        self._allowed = auto_restart_for(ctx.connector, ctx.settings.auto_restart)
        ctx.state.listen(self._saw)

    def _saw(self, row: Row) -> None:
        if isinstance(row, Wanted):
            self._changed.set()

    async def run_forever(self) -> None:
        """For ever: the main loop while its connector is to run. What it raises gets out, a ClusterError after it
        was counted where restarts are limited."""
        ctx = self._ctx
        while True:
            await self._may_start()
            began, asked = ctx.clock.monotonic(), self._asked
            try:
                await self._until_unwanted(asked)
            except BaseException as exc:
                trouble = next((one for one in errors_in(exc) if isinstance(one, ClusterError)), None)
                if trouble is not None:
                    await self._count(ctx.clock.monotonic() - began, trouble.to_reason())
                raise
            ctx.periodic.reset()

    @property
    def _asked(self) -> tuple[str, ...]:
        return self._ctx.desired_state.restarts(self._scope)

    async def _may_start(self) -> None:
        ctx = self._ctx
        said = False
        while True:
            self._changed.clear()
            row = self._restarts()
            spent = is_spent(row, self._asked)
            if ctx.should_run and not spent:
                break
            if not said:
                if not ctx.should_run:
                    ctx.periodic.troubles.forget_all()  # nothing is retried here until it is resumed
                word = f"failed: {row.reason}" if spent else ctx.desired_state.describe(ctx.connector)
                ctx.log.info("not running", f"{ctx.connector.value} is {word}")
                said = True
            if self._rest is not None and self._has_idle_work():
                await self._while(self._has_idle_work, self._rest)
            else:
                await self._changed.wait()
        if row.cause:
            await ctx.state.write_if_changed(reset_count(row, self._asked))
        if said:
            ctx.log.info("running again", ctx.connector.value)

    async def _until_unwanted(self, asked: tuple[str, ...]) -> None:
        """The main loop, until it is no longer to run, or to begin anew; it has drained when this returns."""
        await self._while(lambda: self._ctx.should_run and self._asked == asked, self._run)

    async def _while(self, wanted: Callable[[], bool], work: Callable[[], Awaitable[None]]) -> None:
        """Some work for as long as it is wanted; it has drained when this returns. Raises what it raises."""
        running = asyncio.ensure_future(work())
        try:
            while True:
                self._changed.clear()
                if not wanted():
                    break
                news = asyncio.ensure_future(self._changed.wait())
                try:
                    # Work that returns has nothing more to do, which is no reason to begin it again.
                    await asyncio.wait(
                        {news} if running.done() else {news, running}, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    news.cancel()
                if running.done():
                    await running
        finally:
            await _drained(running)

    def _has_idle_work(self) -> bool:
        """Whether what there is to do while it is stopped is to be done now."""
        wanted = self._ctx.desired_state.connector(self._ctx.connector)
        return wanted is DesiredPhase.STOPPED and not is_spent(self._restarts(), self._asked)

    def _restarts(self) -> Restarts:
        ctx = self._ctx
        share = min(ctx.leadership.leading(), default=0)
        owner = leader_label(ctx.service, share, divided=ctx.divided)
        return ctx.state.get(Restarts, owner, "service") or Restarts(owner=owner)

    async def _count(self, worked_s: float, cause: Reason) -> None:
        if is_unlimited(self._allowed):
            return
        ctx = self._ctx
        row = count_failure(self._restarts(), self._allowed, worked_s, cause, self._asked)
        await ctx.state.write_if_changed(row)
        if is_spent(row, self._asked):
            then = f"waits for the command {RESTART} {self._scope}"
            text = f"{ctx.connector.value}, {ctx.service}: {format_sentence(cause)}; {then}"
            await ctx.event("ServiceFailed", str(self._scope), text, cause=cause, failures=row.count)


async def _drained(running: asyncio.Future[None]) -> None:
    """End it and wait. A mistake of ours on the way out is raised after any end. A drain that could not say goodbye is
    none: the cluster is away, or another instance leads."""
    await cancelled([running])
    left = None if running.cancelled() else running.exception()
    if left is not None and not all(isinstance(one, EXPECTED) for one in errors_in(left)):
        raise left
