"""Our membership in a service's group: a Faust app of the flow's own, bound to its target (`architecture.md` §4).

The apps run without Faust's worker: signals, logging and exit codes are ours. An app lives as long as its consumer;
when that crashes (brokers away for long) the flow begins its next life with a new one.
"""

import asyncio
from typing import Any

from lockstep_kafka.common.asyncio_util import done_within, unless_set
from lockstep_kafka.common.errors import ClusterError, NotPermitted
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.membership.faust_app import build_app
from lockstep_runtime.membership.flow_runner import FlowRunner
from lockstep_runtime.membership.group_watch import GroupLost, InstanceTaken
from lockstep_runtime.state.leadership import SESSION_TIMEOUT
from lockstep_state.names import COMMANDS_PARTITIONS, commands_topic

JOIN = 60.0
"""Seconds a Faust app gets to start. It fails by itself, and sooner, where no broker answers."""

UNKNOWN_MEMBER = ""
"""aiokafka's `member_id` once the coordinator has answered a heartbeat with UNKNOWN_MEMBER_ID."""

LEAVE = 3.0
"""Seconds a Faust app gets to stop. Its threads are daemons of a process that is about to end anyway, or of a broker
that is gone."""


class FaustMembership:
    """One life of a Faust app: the commands topic of a flow, consumed in the service's group."""

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner
        self._app = build_app(runner.ctx, self._listen, None if runner.joins_anew else runner.ctx.instance)
        self._left = False
        self._found: ClusterError | None = None
        """What has ended the membership, if the consumer's thread was the first to see it."""
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._app.on_partitions_assigned.connect(self._assigned)
        self._app.on_partitions_revoked.connect(self._revoked)
        topic = self._app.topic(
            commands_topic(runner.ctx.flow, runner.ctx.settings.group_id), key_serializer="raw", value_serializer="raw"
        )
        self._app.follow(topic, self._commands)

    async def join(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await done_within(unless_set(self._over, self._app.start()), JOIN)
        except Exception as exc:  # every error of Faust's start means the same to us: no membership
            raise self._found or self._trouble(exc) from exc
        if self._found is not None:
            raise self._found

    async def ended(self) -> None:
        await unless_set(self._over, self._app.wait_until_stopped())
        raise self._found or self._trouble(self._app.crash_reason)

    async def leave(self) -> None:
        self._left = True
        self._give_up_place()
        self._go_without_the_thread()
        try:
            await done_within(self._app.stop(), LEAVE)
        except Exception as exc:  # noqa: BLE001 - a consumer that hangs or has crashed; the group finds out by itself
            self._runner.ctx.log.debug("left the group without a word", f"{type(exc).__name__}: {exc}")

    def _trouble(self, reason: BaseException | None) -> ClusterError:
        ctx = self._runner.ctx
        for kind, name in (
            ("group", self._app.conf.id),
            ("topic", commands_topic(ctx.flow, ctx.settings.group_id)),
        ):
            if type(reason).__name__ == f"{kind.capitalize()}AuthorizationFailedError":
                remedy = ctx.target.access.remedy(kind, name, "Read")
                return NotPermitted(ctx.target.alias, "READ", f"{kind} {name}", remedy)
        if "FencedInstance" in f"{type(reason).__name__}: {reason}":
            return self._instance_taken()
        return GroupLost(ctx.target.alias, self._sentence(reason))

    def _instance_taken(self) -> InstanceTaken:
        return InstanceTaken(self._runner.ctx.target.alias, self._app.conf.id, self._runner.ctx.instance)

    def _sentence(self, reason: BaseException | None) -> str:
        group = self._app.conf.id
        why = "it ended" if reason is None else f"{type(reason).__name__}: {reason}"
        if "InvalidSessionTimeout" in why:
            why = (
                f"the brokers allow no session of {SESSION_TIMEOUT:.0f} s: set their group.min.session.timeout.ms to "
                f"{SESSION_TIMEOUT * 1000:.0f} or less, and group.max.session.timeout.ms to more"
            )
        return f"cluster {self._runner.ctx.target.alias}: the consumer of group {group} ended: {why}"

    async def _commands(self, stream: Any) -> None:
        # Only hands over: Faust counts an event as done even when this raises.
        async for event in stream.events():
            if self._left:
                continue  # a next life has its own membership, which gets them too
            message = event.message
            at_ms = int((message.timestamp or 0) * 1000)
            record = Record(message.topic, message.partition, message.offset, message.key, message.value, at_ms)
            self._runner.receive_commands([record])

    async def _assigned(self, _: Any, assigned: Any, **__: Any) -> None:
        if self._left:
            return
        self._runner.on_heartbeat(self._runner.ctx.clock.monotonic())
        self._runner.assigned(frozenset(tp.partition for tp in assigned))

    async def _revoked(self, _: Any, revoked: Any, **__: Any) -> None:
        if not self._left:
            await self._runner.revoked()

    def _end_from_thread(self, trouble: ClusterError) -> None:
        self._found = self._found or trouble
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._over.set)

    def _give_up_place(self) -> None:
        """Let the group know that we leave. A static member of aiokafka leaves without a request, and its partitions
        wait for its session's end. A member without an instance id sends one, and the others have its partitions at
        once. If no other member shares the work, none waits for the place, and a restart finds it as it was."""
        if len(self._runner.ctx.leadership.held) == COMMANDS_PARTITIONS:
            return
        coordinator = self._coordinator()
        if coordinator is not None:
            coordinator._group_instance_id = None

    def _go_without_the_thread(self) -> None:
        """A Faust app that stops blocks while it waits for its consumer's thread, and our loop with it. It blocks for
        as long as aiokafka takes to close connections, and for ever where that hangs. The thread ends without us."""
        worker = getattr(self._thread(), "_thread", None)
        if worker is not None:
            worker.stop = lambda: None

    def _coordinator(self) -> Any:
        """aiokafka's, or None before the consumer has started (a contract test holds the names)."""
        return getattr(getattr(self._thread(), "_consumer", None), "_coordinator", None)

    def _thread(self) -> Any:
        """The service in which Faust's consumer lives, or None before it has started."""
        return getattr(self._app.consumer, "_thread", None)

    def _listen(self, consumer: Any) -> None:
        self._listen_to_group(consumer._coordinator)
        consumer._fetcher._fetch_task.add_done_callback(self._reading_ended)

    def _reading_ended(self, reading: "asyncio.Task[None]") -> None:
        """End the membership with aiokafka's fetcher. When that fails, the member goes on in its group, and gets no
        command any more."""
        if not reading.cancelled() and (error := reading.exception()) is not None and not self._left:
            self._end_from_thread(self._trouble(error.__cause__ or error))

    def _listen_to_group(self, coordinator: Any) -> None:
        """aiokafka does not report when its group last answered, nor that another member has taken its place. So its
        heartbeat is wrapped (a contract test holds the names).

        It raises an error of the group in the read that waits at that moment, and does nothing until then. Faust reads
        the records by another way. If nothing waits, as before the first assignment, the error is lost. The member
        sends no heartbeat and does not join again. So the method that gives the error away is wrapped too.
        """
        beat, push = coordinator._do_heartbeat, coordinator._push_error_to_user

        async def heard_beat() -> bool:
            asked = self._runner.ctx.clock.monotonic()
            answered: bool = await beat()
            if answered and not self._left:
                self._runner.on_heartbeat(asked)
            elif answered:
                return answered
            elif coordinator.member_id == UNKNOWN_MEMBER and (self._left or self._runner.ctx.group_is_current):
                # The session has not ended, so our place went to a member that joined under our instance's name. To
                # join under it again would put that one out, which would put us out, and so on.
                coordinator._group_instance_id = None
                self._end_from_thread(self._instance_taken())
            return answered

        def heard_error(error: BaseException) -> Any:
            self._end_from_thread(self._trouble(error))
            return push(error)

        coordinator._do_heartbeat = heard_beat
        coordinator._push_error_to_user = heard_error
