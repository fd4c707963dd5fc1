"""Membership in a service's group: a Faust app for each session of a flow, on its target (`architecture.md` §4).

The apps run without Faust's worker: signals, logging and exit codes are ours. An app ends with its consumer. When
that crashes because brokers are away for long, the flow begins its next session with a new app.
"""

import asyncio
from typing import Any

from lockstep_kafka.common.asyncio_util import done_within, run_unless_set
from lockstep_kafka.common.errors import ClusterError, NotPermitted
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.membership.faust_app import build_app
from lockstep_runtime.membership.faust_overrides import listen_to_group, send_leave_group_on_stop, stop_without_thread
from lockstep_runtime.membership.flow_runner import FlowRunner
from lockstep_runtime.membership.group_watch import GroupLost, InstanceTaken
from lockstep_runtime.state.leadership import SESSION_TIMEOUT
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.names import COMMANDS_PARTITIONS, commands_topic

JOIN = 60.0
"""Longest time in seconds for the start of a Faust app. It fails by itself, and sooner, if no broker answers."""

LEAVE = 3.0
"""Longest time in seconds for the stop of a Faust app.

Its threads are daemons of a process that is about to end anyway, or of a broker that is gone.
"""


class FaustMembership:
    """The membership of one session: the commands topic of a flow, consumed in the service's group."""

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner
        self._app = build_app(runner.ctx, self._listen, None if runner.rejoins else runner.ctx.instance)
        self._has_left = False
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
            await done_within(run_unless_set(self._ended, self._app.start()), JOIN)
        except Exception as exc:  # every error of Faust's start means the same to us: no membership
            raise self._error or self._trouble(exc) from exc
        if self._error is not None:
            raise self._error

    async def ended(self) -> None:
        await run_unless_set(self._ended, self._app.wait_until_stopped())
        raise self._error or self._trouble(self._app.crash_reason)

    async def leave(self) -> None:
        self._has_left = True
        self._release_instance_id()
        stop_without_thread(self._app)
        try:
            await done_within(self._app.stop(), LEAVE)
        except Exception as exc:  # noqa: BLE001 - a consumer that hangs or has crashed; the group finds out by itself
            self._runner.ctx.log.debug("left the group without a word", f"{type(exc).__name__}: {exc}")

    def _trouble(self, reason: BaseException | None, unnamed_code: int = 0) -> ClusterError:
        ctx = self._runner.ctx
        for kind, name in (
            ("group", self._app.conf.id),
            ("topic", commands_topic(ctx.flow, ctx.settings.group_id)),
        ):
            if type(reason).__name__ == f"{kind.capitalize()}AuthorizationFailedError":
                remedy = ctx.target.access.remedy(kind, name, "Read")
                return NotPermitted(ctx.target.alias, "READ", f"{kind} {name}", remedy)
        return GroupLost(ctx.target.alias, self._sentence(reason, unnamed_code))

    def _instance_taken(self) -> InstanceTaken:
        return InstanceTaken(self._runner.ctx.target.alias, self._app.conf.id, self._runner.ctx.instance)

    def _sentence(self, reason: BaseException | None, unnamed_code: int) -> str:
        group = self._app.conf.id
        sentence = "it ended" if reason is None else f"{type(reason).__name__}: {reason}"
        if unnamed_code:
            sentence = error_name(unnamed_code)
        if "InvalidSessionTimeout" in sentence:
            sentence = (
                f"the brokers allow no session of {SESSION_TIMEOUT:.0f} s: set their group.min.session.timeout.ms to "
                f"{SESSION_TIMEOUT * 1000:.0f} or less, and group.max.session.timeout.ms to more"
            )
        return f"cluster {self._runner.ctx.target.alias}: the consumer of group {group} ended: {sentence}"

    async def _commands(self, stream: Any) -> None:
        # Only hands over: Faust counts an event as done even when this raises.
        async for event in stream.events():
            if self._has_left:
                continue  # a next session has its own membership, which gets them too
            message = event.message
            at_ms = int((message.timestamp or 0) * 1000)
            record = Record(message.topic, message.partition, message.offset, message.key, message.value, at_ms)
            self._runner.receive_commands([record])

    async def _assigned(self, _: Any, assigned: Any, **__: Any) -> None:
        if self._has_left:
            return
        self._runner.on_heartbeat(self._runner.ctx.clock.monotonic())
        self._runner.assigned(frozenset(tp.partition for tp in assigned))

    async def _revoked(self, _: Any, revoked: Any, **__: Any) -> None:
        if not self._has_left:
            await self._runner.revoked()

    def _end_from_thread(self, trouble: ClusterError) -> None:
        self._error = self._error or trouble
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended.set)

    def _release_instance_id(self) -> None:
        """Let the group know that this member leaves, if other members share the work.

        They get its partitions at once. If no other member shares the work, the instance id stays, and a restart finds
        its partitions as they were.
        """
        if len(self._runner.ctx.leadership.held) != COMMANDS_PARTITIONS:
            send_leave_group_on_stop(self._app)

    def _listen(self, consumer: Any) -> None:
        listen_to_group(consumer, self)

    # -- what the group says, in the thread of Faust's consumer (`faust_overrides.GroupListener`) ----------------------

    def now(self) -> float:
        return self._runner.ctx.clock.monotonic()

    def heartbeat_answered(self, asked_at: float) -> None:
        if not self._has_left:
            self._runner.on_heartbeat(asked_at)

    def instance_id_is_taken(self) -> bool:
        if not self._has_left and not self._runner.ctx.group_is_current:
            return False
        self._end_from_thread(self._instance_taken())
        return True

    def group_failed(self, error: BaseException, unnamed_code: int) -> None:
        is_taken = unnamed_code == KafkaErrorCode.FENCED_INSTANCE_ID
        self._end_from_thread(self._instance_taken() if is_taken else self._trouble(error, unnamed_code))

    def reading_failed(self, error: BaseException) -> None:
        if not self._has_left:
            self._end_from_thread(self._trouble(error))
