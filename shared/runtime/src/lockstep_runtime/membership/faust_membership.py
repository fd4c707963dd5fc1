"""Membership in a service's group: a Faust app for each session of a flow, on its target (`architecture.md` §4).

The apps run without Faust's worker: signals, logging and exit codes are ours. An app ends with its consumer. When
that crashes because brokers are away for long, the flow begins its next session with a new app.
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
"""Longest time in seconds for the start of a Faust app. It fails by itself, and sooner, if no broker answers."""

UNKNOWN_MEMBER = ""
"""aiokafka's `member_id` after the coordinator has answered a heartbeat with UNKNOWN_MEMBER_ID."""

LEAVE = 3.0
"""Longest time in seconds for the stop of a Faust app.

Its threads are daemons of a process that is about to end anyway, or of a broker that is gone.
"""


class FaustMembership:
    """The membership of one session: the commands topic of a flow, consumed in the service's group."""

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner
        self._app = build_app(runner.ctx, self._listen, None if runner.joins_anew else runner.ctx.instance)
        self._left = False
        self._error: ClusterError | None = None
        """The error that has ended the membership, if the consumer's thread was the first to see it."""
        self._ended = asyncio.Event()
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
            await done_within(unless_set(self._ended, self._app.start()), JOIN)
        except Exception as exc:  # every error of Faust's start means the same to us: no membership
            raise self._error or self._trouble(exc) from exc
        if self._error is not None:
            raise self._error

    async def ended(self) -> None:
        await unless_set(self._ended, self._app.wait_until_stopped())
        raise self._error or self._trouble(self._app.crash_reason)

    async def leave(self) -> None:
        self._left = True
        self._release_instance_id()
        self._detach_thread()
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
        sentence = "it ended" if reason is None else f"{type(reason).__name__}: {reason}"
        if "InvalidSessionTimeout" in sentence:
            sentence = (
                f"the brokers allow no session of {SESSION_TIMEOUT:.0f} s: set their group.min.session.timeout.ms to "
                f"{SESSION_TIMEOUT * 1000:.0f} or less, and group.max.session.timeout.ms to more"
            )
        return f"cluster {self._runner.ctx.target.alias}: the consumer of group {group} ended: {sentence}"

    async def _commands(self, stream: Any) -> None:
        # Only hands over: Faust counts an event as done even when this raises.
        async for event in stream.events():
            if self._left:
                continue  # a next session has its own membership, which gets them too
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
        self._error = self._error or trouble
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended.set)

    def _release_instance_id(self) -> None:
        """Let the group know that this member leaves, if other members share the work.

        A static member of aiokafka leaves without a request, and its partitions wait for the end of its session. A
        member without an instance id sends LeaveGroup, and the others get its partitions at once. If no other member
        shares the work, the instance id stays, and a restart finds its partitions as they were.
        """
        if len(self._runner.ctx.leadership.held) == COMMANDS_PARTITIONS:
            return
        coordinator = self._coordinator()
        if coordinator is not None:
            coordinator._group_instance_id = None

    def _detach_thread(self) -> None:
        """Keep the stop of the Faust app from waiting for its consumer's thread.

        That wait would block the event loop for as long as aiokafka takes to close connections, and for ever if that
        hangs. The thread ends by itself.
        """
        worker = getattr(self._thread(), "_thread", None)
        if worker is not None:
            worker.stop = lambda: None

    def _coordinator(self) -> Any:
        """Return aiokafka's coordinator, or None before the consumer has started (a contract test holds the names)."""
        return getattr(getattr(self._thread(), "_consumer", None), "_coordinator", None)

    def _thread(self) -> Any:
        """Return the service that Faust's consumer runs in, or None before it has started."""
        return getattr(self._app.consumer, "_thread", None)

    def _listen(self, consumer: Any) -> None:
        self._listen_to_group(consumer._coordinator)
        consumer._fetcher._fetch_task.add_done_callback(self._on_fetcher_ended)

    def _on_fetcher_ended(self, fetching: "asyncio.Task[None]") -> None:
        """End the membership with aiokafka's fetcher.

        When the fetcher fails, the member stays in its group, and gets no command any more.
        """
        if not fetching.cancelled() and (error := fetching.exception()) is not None and not self._left:
            self._end_from_thread(self._trouble(error.__cause__ or error))

    def _listen_to_group(self, coordinator: Any) -> None:
        """Wrap aiokafka's heartbeat and its method that gives errors to the user (a contract test holds the names).

        aiokafka does not report when its group last answered, nor that another member has taken its place. It raises
        an error of the group in the read that waits at that moment. Faust reads the records by another way. If
        nothing waits, as before the first assignment, the error is lost: the member sends no heartbeat and does not
        join again.
        """
        do_heartbeat, push = coordinator._do_heartbeat, coordinator._push_error_to_user

        async def send_heartbeat() -> bool:
            sent_at = self._runner.ctx.clock.monotonic()
            answered: bool = await do_heartbeat()
            if answered and not self._left:
                self._runner.on_heartbeat(sent_at)
            elif answered:
                return answered
            elif coordinator.member_id == UNKNOWN_MEMBER and (self._left or self._runner.ctx.group_is_current):
                # The group session has not ended, so another member joined with the same instance id. To join with it
                # again would fence that member, which would fence this one, and so on.
                coordinator._group_instance_id = None
                self._end_from_thread(self._instance_taken())
            return answered

        def push_error(error: BaseException) -> Any:
            self._end_from_thread(self._trouble(error))
            return push(error)

        coordinator._do_heartbeat = send_heartbeat
        coordinator._push_error_to_user = push_error
