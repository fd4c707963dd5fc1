"""A service's process: Faust in each flow's group, everything else plain asyncio (`architecture.md` §4).

One process serves several flows, in one event loop.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lockstep_config import Configuration, FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.admin import service_admin
from lockstep_kafka.common.asyncio_util import set_within, without_end
from lockstep_kafka.common.errors import ShutdownRequested, errors_in
from lockstep_kafka.common.tracing import NO_TRACING
from lockstep_runtime.flow.common_metrics import build_samples, certificate_samples, lead_samples, memory_samples
from lockstep_runtime.flow.context import Clock, FlowContext, FlowService
from lockstep_runtime.flow.credential_rotation import CredentialRotation
from lockstep_runtime.http.access import AccessPolicy, PagesUnusable
from lockstep_runtime.http.server import PageServer, certificate_log
from lockstep_runtime.membership.faust_membership import FaustMembership
from lockstep_runtime.membership.flow_runner import FlowRunner
from lockstep_runtime.service.definition import ServiceDefinition
from lockstep_runtime.service.stop_signals import stop_on_signals
from lockstep_runtime.state.leadership import Leadership
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics, Sample
from lockstep_runtime.telemetry.tracing_config import start_tracing
from lockstep_runtime.util.memory import resident
from lockstep_runtime.util.process_restarts import ProcessRestarts

CLEAN, CRASHED, UNUSABLE, SHUTDOWN_REQUESTED = 0, 1, 2, 3

ENDS_WITHIN = 9.0
"""Most seconds from the first signal to the end of the process."""


LAST_SPANS = 0.8
"""Most seconds for sending the last spans at the end."""

LOCAL = AccessPolicy()


@dataclass(frozen=True, slots=True)
class Instance:
    """The identity of this process, and where its pages are.

    `instance` distinguishes replicas and survives restarts.
    """

    instance: str
    access: AccessPolicy = LOCAL


class Process:
    """All flows of one service in this process, their pages and their end."""

    def __init__(
        self,
        definition: ServiceDefinition,
        configuration: Configuration,
        reload: Callable[[], Configuration],
        flows: Sequence[FlowSettings],
        build: Callable[[FlowContext], FlowService],
        identity: Instance,
    ) -> None:
        """Create the runner of each flow.

        Args:
            definition: The service.
            configuration: The configuration that the service has started with.
            reload: Loads the configuration again.
            flows: The settings of the flows to serve.
            build: Makes the FlowService of each flow, as the definition names it.
            identity: The name of the process and its pages.
        """
        service = self.service = definition.name
        self.identity = identity
        self.metrics = Metrics()
        self.log = FlowLog(service, "")
        traced = any(settings.tracing for settings in flows)
        self._tracing = start_tracing(service, identity.instance, os.environ, self.log) if traced else NO_TRACING
        clock = Clock()
        self.runners: list[FlowRunner] = []
        for settings in flows:
            ctx = FlowContext(
                service,
                settings,
                instance=identity.instance,
                source=service_admin(settings, settings.flow.source, client_settings.source_admin(settings, service)),
                target=service_admin(settings, settings.flow.target, client_settings.target_admin(settings, service)),
                leadership=Leadership(service, divided=definition.divided),
                metrics=self.metrics,
                clock=clock,
                divided=definition.divided,
                pauses_itself=definition.pauses_itself,
                tracing=self._tracing,
            )
            self.runners.append(FlowRunner(ctx, build(ctx), FaustMembership))
        self._rotation = CredentialRotation(configuration, reload, self.runners, {s.flow: s for s in flows}, self.log)
        self.metrics.ask(lambda: lead_samples(service, self.runners))
        self.metrics.ask(lambda: memory_samples(service, resident()))
        self.metrics.ask(lambda: build_samples(service))
        self.metrics.ask(self._certificate_samples)

    def _certificate_samples(self) -> Iterator[Sample]:
        now = time.time()
        for runner in self.runners:
            yield from certificate_samples(runner.flow, runner.certificates, now)

    def live(self) -> str | None:
        return "; ".join(filter(None, (r.find_stall() for r in self.runners))) or None

    @property
    def ready_for(self) -> timedelta:
        """Return for how long all flows have been ready; zero if one is not."""
        return min((runner.ready_for for runner in self.runners), default=timedelta())

    def ready(self) -> str | None:
        waiting = [str(r.ctx.flow) for r in self.runners if not r.ready]
        return f"not read yet: the control topics of {', '.join(waiting)}" if waiting else None

    def status(self) -> dict[str, Any]:
        return {
            "service": self.service,
            "instance": self.identity.instance,
            "ready": self.ready() is None,
            "configuration": self._rotation.status(),
            "flows": {str(r.ctx.flow): r.status() for r in self.runners},
        }

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set or a crash, and return the exit code."""
        pages = PageServer(
            self.metrics,
            live=self.live,
            ready=self.ready,
            status=self.status,
            warn=certificate_log(self.log, self.identity.access),
        )
        try:
            address = await pages.open(self.identity.access)
        except PagesUnusable as exc:
            self.log.info("cannot start", str(exc), level=logging.ERROR)
            return UNUSABLE
        flows = ", ".join(str(r.ctx.flow) for r in self.runners)
        self.log.info("started", f"{flows} as {self.identity.instance}, pages at {address}", address=address)
        for warning in self.identity.access.warnings():
            self.log.warn("pages are not on this machine alone", f"{address}: {warning}")
        work = asyncio.create_task(self._flows())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        code = CLEAN
        if work.done():
            code = self._crash(work.exception())
        else:
            work.cancel()
            _, late = await asyncio.wait({work}, timeout=ENDS_WITHIN - 1)
            if late:
                self.log.warn("ended before everything was drained", f"after {ENDS_WITHIN:.0f} s")
        stopping.cancel()
        await pages.close()
        await asyncio.to_thread(self._tracing.end, LAST_SPANS)
        self.log.info("ended")
        return code

    async def _flows(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for runner in self.runners:
                tasks.create_task(without_end(f"flow {runner.flow}", runner.run()))
            tasks.create_task(without_end("the watch over credentials", self._rotation.run()))

    def _crash(self, exc: BaseException | None) -> int:
        errors = list(errors_in(exc))
        for requested in errors:
            if isinstance(requested, ShutdownRequested):
                self.log.info("ended as configured", str(requested), level=logging.ERROR)
                return SHUTDOWN_REQUESTED
        self.log.failed("crashed", errors[0] if errors else RuntimeError("the flows ended by themselves"))
        return CRASHED


def _thread_ended(arguments: threading.ExceptHookArgs) -> None:
    """Log in one line that a library's thread ended with an exception.

    Faust's consumer thread is cancelled when its broker is away at our end, which is logged at debug.
    """
    cancelled = issubclass(arguments.exc_type, asyncio.CancelledError)
    name = arguments.thread.name if arguments.thread is not None else "?"
    level = logging.DEBUG if cancelled else logging.ERROR
    logging.getLogger(__name__).log(level, "thread %s ended", name, exc_info=arguments.exc_value)


def serve(process: str, factories: Sequence[Callable[[], Process]]) -> int:
    """Run all services of this process until SIGTERM or SIGINT, and return the exit code.

    The codes are 0: ended cleanly. 1: crash. 2: cannot start. 3: the configuration asks to end (`ShutdownRequested`).
    The first signal ends the process within 10 s, a second SIGINT at once. A service that crashes ends a process that
    has no other. Beside others it starts again by itself.

    Args:
        process: The name of the process in the log.
        factories: Make the services.
    """
    threading.excepthook = _thread_ended
    return asyncio.run(_serve(FlowLog(process, ""), factories))


async def _serve(log: FlowLog, factories: Sequence[Callable[[], Process]]) -> int:
    stop = stop_on_signals(log)
    if len(factories) == 1:
        return await factories[0]().run(stop)
    async with asyncio.TaskGroup() as tasks:
        services = [tasks.create_task(keep_running(make, stop)) for make in factories]
    return max(task.result() for task in services)


async def keep_running(make: Callable[[], Process], stop: asyncio.Event) -> int:
    """Start a service of a shared process again after each crash, and return its exit code (`restarts.md`).

    Any other end of it ends the other services too: it sets `stop`.
    """
    loop, restarts = asyncio.get_running_loop(), ProcessRestarts()
    while True:
        process, began = make(), loop.time()
        code = await process.run(stop)
        if code != CRASHED or stop.is_set():
            stop.set()
            return code
        delay = restarts.next_delay(timedelta(seconds=loop.time() - began), process.ready_for)
        process.log.warn("starting again", f"in {delay.total_seconds():g} s" if delay else "at once")
        if await set_within(stop, delay.total_seconds()):
            return CLEAN
