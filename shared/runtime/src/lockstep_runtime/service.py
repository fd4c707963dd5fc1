"""A service's process: Faust runs the membership in each flow's group, everything else is plain asyncio (design §4).

One process serves several flows; each flow has a Faust app of its own, bound to its target cluster, in the one event
loop. The apps run without Faust's worker: signals, logging and exit codes are ours. An app lives as long as its
consumer; when that crashes (brokers away for long) the flow begins its next life with a new one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import faust
import faust.app  # Faust imports its parts when they are first used: do it before the loop runs, not in the midst of it
import faust.auth
import faust.transport.drivers.aiokafka
from mode import Service
from mode.supervisors import CrashingSupervisor

from lockstep_config import Configuration, FlowSettings, clients
from lockstep_config.model import Cluster
from lockstep_config.permissions import access_of
from lockstep_protocol.names import COMMANDS_PARTITIONS, commands_topic, service_group
from lockstep_runtime.admin import Admin
from lockstep_runtime.common_metrics import certificate_samples, memory_samples, standing_samples
from lockstep_runtime.context import Clock, FlowContext, FlowService
from lockstep_runtime.door import Door, DoorUnusable
from lockstep_runtime.errors import ClusterTrouble, NotPermitted, ToldToEnd
from lockstep_runtime.flow_runner import FlowRunner, GroupLost
from lockstep_runtime.follow import Record
from lockstep_runtime.leadership import HEARTBEAT_EVERY, SESSION_TIMEOUT, Leadership
from lockstep_runtime.log import FlowLog
from lockstep_runtime.memory import resident
from lockstep_runtime.metrics import Metrics, Sample
from lockstep_runtime.pages import Pages
from lockstep_runtime.rotation import Rotation
from lockstep_runtime.sasl_session import renew_sessions
from lockstep_runtime.tracing import NO_TRACING
from lockstep_runtime.tracing_start import start_tracing

__all__ = ["Place", "serve"]

CLEAN, CRASHED, UNUSABLE, TOLD = 0, 1, 2, 3

METADATA_EVERY_MS = 10_000
"""Who divides the group while the commands topic has no leader, or is too new for the broker that was asked, gives
everybody nothing, and nobody leads until these are asked for anew: for up to five minutes by default."""

LEAVE = 3.0
"""Seconds a Faust app gets to stop; its threads are daemons of a process that is about to end anyway, or of a broker
that is gone."""

ENDS_WITHIN = 9.0
"""Seconds from the first signal to the end of the process, at most."""


LAST_SPANS = 0.8
"""Seconds for the spans of the last moments; they do not hold up the end."""

LOCAL = Door()


@dataclass(frozen=True, slots=True)
class Place:
    """As whom this process runs, and where its pages are. `instance` tells replicas apart and survives restarts."""

    instance: str
    door: Door = LOCAL


class FaustMembership:
    """One life of a Faust app: the commands topic of a flow, consumed in the service's group."""

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner
        self._app = build_app(runner.ctx)
        self._app.on_partitions_assigned.connect(self._assigned)
        self._app.on_partitions_revoked.connect(self._revoked)
        topic = self._app.topic(
            commands_topic(runner.ctx.flow, runner.ctx.settings.group_id), key_serializer="raw", value_serializer="raw"
        )
        self._app.agent(topic, concurrency=1, supervisor_strategy=CrashingSupervisor)(self._commands)

    async def join(self) -> None:
        try:
            await self._app.start()
        except Exception as exc:  # whatever Faust's start raises means the same to us: no membership
            raise self._trouble(exc) from exc

    async def ended(self) -> None:
        await self._app.wait_until_stopped()
        raise self._trouble(self._app.crash_reason)

    async def leave(self) -> None:
        self._give_up_place()
        try:
            await asyncio.wait_for(self._app.stop(), LEAVE)
        except Exception as exc:  # noqa: BLE001 - a consumer that hangs or has crashed; the group finds out by itself
            self._runner.ctx.log.debug("left the group without a word", f"{type(exc).__name__}: {exc}")

    def _trouble(self, reason: BaseException | None) -> ClusterTrouble:
        ctx = self._runner.ctx
        for kind, name in (
            ("group", self._app.conf.id),
            ("topic", commands_topic(ctx.flow, ctx.settings.group_id)),
        ):
            if type(reason).__name__ == f"{kind.capitalize()}AuthorizationFailedError":
                remedy = ctx.target.access.remedy(kind, name, "Read")
                return NotPermitted(ctx.target.alias, "READ", f"{kind} {name}", remedy)
        return GroupLost(ctx.target.alias, self._sentence(reason))

    def _sentence(self, reason: BaseException | None) -> str:
        group = self._app.conf.id
        why = "it ended" if reason is None else f"{type(reason).__name__}: {reason}"
        if "FencedInstance" in why:
            why = f"another process joined as {self._runner.ctx.instance!r}: give each replica its own --instance"
        if "InvalidSessionTimeout" in why:
            why = (
                f"the brokers allow no session of {SESSION_TIMEOUT:.0f} s: set their group.min.session.timeout.ms to "
                f"{SESSION_TIMEOUT * 1000:.0f} or less, and group.max.session.timeout.ms to more"
            )
        return f"cluster {self._runner.ctx.target.alias}: the consumer of group {group} ended: {why}"

    async def _commands(self, stream: Any) -> None:
        # Only hands over: Faust counts an event as done even when this raises.
        async for event in stream.events():
            message = event.message
            at_ms = int((message.timestamp or 0) * 1000)
            record = Record(message.topic, message.partition, message.offset, message.key, message.value, at_ms)
            self._runner.received([record])

    async def _assigned(self, _: Any, assigned: Any, **__: Any) -> None:
        self._listen_to_heartbeats()
        self._runner.heard(self._runner.ctx.clock.monotonic())
        self._runner.assigned(frozenset(tp.partition for tp in assigned))

    async def _revoked(self, _: Any, revoked: Any, **__: Any) -> None:
        await self._runner.revoked()

    def _give_up_place(self) -> None:
        """Let the group know that we go. A static member of aiokafka goes without a word, and its partitions wait for
        its session's end; one without an instance id says so, and the others have them at once. Where nobody shares the
        work nobody waits for the place, and a restart finds it as it was."""
        if len(self._runner.ctx.leadership.held) == COMMANDS_PARTITIONS:
            return
        coordinator = self._coordinator()
        if coordinator is not None:
            coordinator._group_instance_id = None

    def _coordinator(self) -> Any:
        """aiokafka's, or None before the consumer has started (a contract test holds the names)."""
        thread = getattr(self._app.consumer, "_thread", None)
        return getattr(getattr(thread, "_consumer", None), "_coordinator", None)

    def _listen_to_heartbeats(self) -> None:
        """aiokafka tells nobody when its group last answered, so its heartbeat is wrapped (a contract test holds the
        name)."""
        coordinator = self._coordinator()
        if getattr(coordinator, "lockstep_hears", False):
            return
        beat = coordinator._do_heartbeat

        async def heard_beat() -> bool:
            asked = self._runner.ctx.clock.monotonic()
            answered: bool = await beat()
            if answered:
                self._runner.heard(asked)
            return answered

        coordinator._do_heartbeat = heard_beat
        coordinator.lockstep_hears = True


class Unmeasured(faust.Monitor):
    """Faust's monitor without its averages of every second, which nobody reads here."""

    logger = logging.getLogger("faust.sensors")  # as of `App`

    @Service.task
    async def _sampler(self) -> None:
        return


class App(faust.App):
    """A Faust app that writes nothing to disk: without tables its data folder would stay empty, wherever we were
    started."""

    logger = logging.getLogger("faust.app")  # mode would take this module's, which is not one of the silent libraries

    def _create_directories(self) -> None:
        return


def build_app(ctx: FlowContext) -> Any:
    """A Faust app with our settings (the reasons: `style.md` §5): nothing but one group member that follows one
    topic."""
    settings = ctx.settings
    hosts = settings.target.bootstrap.split(",")
    return App(
        service_group(ctx.service, ctx.flow, settings.group_id),
        broker=[f"kafka://{host}" for host in hosts],
        broker_credentials=_credentials(settings),
        broker_client_id=f"{settings.flow}|{ctx.service}",
        broker_session_timeout=SESSION_TIMEOUT,
        broker_rebalance_timeout=15.0,
        broker_heartbeat_interval=HEARTBEAT_EVERY,
        broker_request_timeout=20.0,
        broker_max_poll_interval=300.0,
        consumer_group_instance_id=ctx.instance,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_EVERY_MS,
        store="memory://",
        Monitor=Unmeasured,
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        agent_supervisor=CrashingSupervisor,
        autodiscover=False,
    )


def _credentials(settings: FlowSettings) -> Any:
    connection = clients.aiokafka_connection(settings.target)
    protocol = connection["security_protocol"]
    context = connection.get("ssl_context")
    if "sasl_oauth_token_provider" in connection:
        return faust.auth.OAuthCredentials(oauth_cb=connection["sasl_oauth_token_provider"], ssl_context=context)
    if protocol.startswith("SASL"):
        return faust.SASLCredentials(  # over TLS where there is a context
            mechanism=connection["sasl_mechanism"],
            username=connection["sasl_plain_username"],
            password=connection["sasl_plain_password"],
            ssl_context=context,
        )
    return faust.SSLCredentials(context=context) if protocol == "SSL" else None


class Process:
    """All flows of one service in this process, their pages and their end."""

    def __init__(
        self,
        service: str,
        configuration: Configuration,
        reload: Callable[[], Configuration],
        flows: Sequence[FlowSettings],
        build: Callable[[FlowContext], FlowService],
        place: Place,
        *,
        divided: bool,
        pauses_itself: bool,
    ) -> None:
        self.service = service
        self.place = place
        self.metrics = Metrics()
        self.log = FlowLog(service, "")
        traced = any(settings.tracing for settings in flows)
        self._tracing = start_tracing(service, place.instance, os.environ, self.log) if traced else NO_TRACING
        clock = Clock()
        self.runners: list[FlowRunner] = []
        for settings in flows:
            ctx = FlowContext(
                service,
                settings,
                instance=place.instance,
                source=_admin(settings, settings.source, clients.source_admin(settings, service)),
                target=_admin(settings, settings.target, clients.target_admin(settings, service)),
                leadership=Leadership(service, divided=divided),
                metrics=self.metrics,
                clock=clock,
                divided=divided,
                pauses_itself=pauses_itself,
                tracing=self._tracing,
            )
            self.runners.append(FlowRunner(ctx, build(ctx), FaustMembership))
        self._rotation = Rotation(configuration, reload, self.runners, {s.flow: s for s in flows}, self.log)
        self.metrics.ask(lambda: standing_samples(service, self.runners))
        self.metrics.ask(lambda: memory_samples(service, resident()))
        self.metrics.ask(self._certificate_samples)

    def _certificate_samples(self) -> Iterator[Sample]:
        now = time.time()
        for runner in self.runners:
            yield from certificate_samples(runner.flow, runner.certificates, now)

    def live(self) -> str | None:
        return "; ".join(filter(None, (r.not_live() for r in self.runners))) or None

    def ready(self) -> str | None:
        waiting = [str(r.ctx.flow) for r in self.runners if not r.ready]
        return f"not read yet: the control topics of {', '.join(waiting)}" if waiting else None

    def status(self) -> dict[str, Any]:
        return {
            "service": self.service,
            "instance": self.place.instance,
            "ready": self.ready() is None,
            "configuration": self._rotation.status(),
            "flows": {str(r.ctx.flow): r.status() for r in self.runners},
        }

    async def run(self) -> int:
        """Until a signal or a crash; returns the exit code."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._signalled, name, stop)
        pages = Pages(self.metrics, live=self.live, ready=self.ready, status=self.status, warn=self._about_certificate)
        try:
            address = await pages.open(self.place.door)
        except DoorUnusable as exc:
            self.log.say("cannot start", str(exc), level=logging.ERROR)
            return UNUSABLE
        flows = ", ".join(str(r.ctx.flow) for r in self.runners)
        self.log.say("started", f"{flows} as {self.place.instance}, pages at {address}", address=address)
        for warning in self.place.door.warnings():
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
        self.log.say("ended")
        return code

    def _about_certificate(self, why: str) -> None:
        if why:
            self.log.warn("certificate not taken up", f"{why}; the one of before serves on")
        else:
            self.log.say("certificate taken up", str(self.place.door.certificate))

    async def _flows(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for runner in self.runners:
                tasks.create_task(runner.run())
            tasks.create_task(self._rotation.run())

    def _signalled(self, name: signal.Signals, stop: asyncio.Event) -> None:
        if stop.is_set() and name is signal.SIGINT:
            self.log.warn("ended at once", "second interrupt")
            logging.shutdown()
            os._exit(130)
        if not stop.is_set():
            self.log.say("ending", name.name)
        stop.set()

    def _crash(self, exc: BaseException | None) -> int:
        if (told := _told_to_end(exc)) is not None:
            self.log.say("ended as configured", str(told), level=logging.ERROR)
            return TOLD
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        self.log.failed("crashed", exc or RuntimeError("the flows ended by themselves"))
        return CRASHED


def _told_to_end(exc: BaseException | None) -> ToldToEnd | None:
    if isinstance(exc, BaseExceptionGroup):
        return next((found for one in exc.exceptions if (found := _told_to_end(one)) is not None), None)
    return exc if isinstance(exc, ToldToEnd) else None


def _admin(settings: FlowSettings, cluster: Cluster, conf: Mapping[str, str]) -> Admin:
    return Admin(cluster.alias, conf, settings.admin_timeout, access_of(settings, cluster.alias))


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    """A thread of a library's raised: one line, as for everything else. Faust's consumer thread is cancelled when its
    broker is away at our end; that is no news."""
    cancelled = issubclass(ended.exc_type, asyncio.CancelledError)
    name = ended.thread.name if ended.thread is not None else "?"
    level = logging.DEBUG if cancelled else logging.ERROR
    logging.getLogger(__name__).log(level, "thread %s ended", name, exc_info=ended.exc_value)


def serve(
    service: str,
    configuration: Configuration,
    flows: Sequence[FlowSettings],
    build: Callable[[FlowContext], FlowService],
    place: Place,
    *,
    reload: Callable[[], Configuration],
    divided: bool = False,
    pauses_itself: bool = False,
) -> int:
    """Run `service` for `flows` until SIGTERM or SIGINT and return the exit code: 0 clean, 1 crash, 2 cannot start,
    3 the configuration asks to end (`ToldToEnd`).

    The first signal ends it within 10 s, a second SIGINT at once. `reload` loads the configuration again, as it is by
    then. `divided`: replicas divide the work by commands
    partition (checkpoint); otherwise the one that holds partition 0 does all of it. `pauses_itself`: a paused
    connector's main loop is not ended, it looks itself at what is wanted (the data plane keeps its slots).
    """

    threading.excepthook = _thread_ended
    renew_sessions()

    async def main() -> int:
        process = Process(
            service, configuration, reload, flows, build, place, divided=divided, pauses_itself=pauses_itself
        )
        return await process.run()

    return asyncio.run(main())
