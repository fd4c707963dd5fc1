"""Carry out an operator's commands: the leader does each once and answers it by an event (`architecture.md` §4).

All memory is in Kafka. A new leader reads all commands and all answers first, and carries out what has no answer.
Afterwards commands come from the group. If a leader ends between the act and the answer, a command may be carried out
twice: verbs are idempotent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lockstep_config.keys.python_classes import ClassFailed
from lockstep_kafka.common.errors import ClusterError, RefusedCommand
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.flow.periodic import RoundInterrupted
from lockstep_runtime.state.desired_state import AT_ONCE, CopyEnds, DesiredPhase, apply_verb, unknown_subject
from lockstep_state.commands import command_vocabulary
from lockstep_state.commands.command import Command, decode_command
from lockstep_state.commands.command_vocabulary import (
    OFFSETS_ALTER,
    OFFSETS_RESET,
    REFRESH,
    RESUME,
    STOP_BEFORE,
    VERBS,
    Connector,
    Scope,
    ScopeKind,
)
from lockstep_state.events import decode_event
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.row import MalformedRow, NewerVersion

LONGEST_DETAIL = 10_000
"""Most characters of a value in a refusal, which may repeat the command: an answer has to fit into a record."""


class CommandHandler:
    """The commands of one flow, as one service sees them."""

    def __init__(self, ctx: FlowContext, carry_out: Callable[[Command, Scope], Awaitable[Answer | None]]) -> None:
        self._ctx = ctx
        self._carry_out = carry_out
        self._accepted: set[str] = set()
        self._answered: set[str] = set()
        self._inbox: asyncio.Queue[Command] = asyncio.Queue()

    def fold_answers(self, records: Sequence[Record]) -> None:
        """Fold events, and remember the commands that this service has answered.

        An event of a newer release is passed over. A command that it answers is carried out once more.
        """
        for record in records:
            # Nearly no event answers anything; do not parse the others.
            if record.value is None or b'"answers":""' in record.value:
                continue
            try:
                event = decode_event(record.value)
            except (MalformedRow, NewerVersion) as exc:
                self._ctx.unreadable.pass_over(record, exc, stays=False)
                continue
            if event.answers and event.service == self._ctx.service:
                self._answered.add(event.answers)

    def receive_commands(self, records: Sequence[Record]) -> None:
        """Queue commands of this service that are not known yet.

        A command that is malformed, or of a newer release, is passed over, because it stays in the topic for days. A
        replica of that release answers it.
        """
        for record in records:
            if record.value is None:
                continue
            try:
                command = decode_command(record.value)
            except (MalformedRow, NewerVersion) as exc:
                self._ctx.unreadable.pass_over(record, exc, stays=False)
                continue
            if not self._is_for_service(record.partition, command) or command.id in self._accepted:
                continue
            self._accepted.add(command.id)
            self._inbox.put_nowait(command)

    def _is_for_service(self, partition: int, command: Command) -> bool:
        if command.service:
            return command.service == self._ctx.service
        # A command without a service in another partition is about a group: for services that divide their work.
        if partition != 0 and not self._ctx.divided:
            return False
        try:
            return self._ctx.service in command_vocabulary.answering_services(
                command.verb, Scope.parse(command.subject)
            )
        except ValueError:
            return True  # its service is unknown, so each refuses it

    async def serve(self) -> None:
        """Carry out and answer commands, one at a time, until cancelled.

        A command that may wait for a cluster that does not answer (`waits_for_clusters`) holds up no other: a failover
        asks for its steps while services still wait for the source.
        """
        async with asyncio.TaskGroup() as waiting:
            while True:
                command = await self._inbox.get()
                if command.id in self._answered:
                    continue
                verb = VERBS.get(command.verb)
                if verb is not None and verb.waits_for_clusters:
                    waiting.create_task(self._carry_out_and_answer(command))
                else:
                    await self._carry_out_and_answer(command)

    async def _carry_out_and_answer(self, command: Command) -> None:
        cause = NO_REASON
        try:
            answer = await self._answer(command)
        except (ClusterError, ClassFailed, RefusedCommand) as trouble:
            answer, cause = Answer("CommandRefused"), _shortened(trouble.to_reason())
        except ValueError as trouble:
            answer = Answer("CommandRefused")
            cause = _shortened(ReasonCode.COMMAND_REFUSED.to_reason(text=str(trouble)))
        text = f"{command.verb} {command.subject}".strip() + (f": {format_sentence(cause)}" if cause else "")
        sender: dict[str, Any] = {"by": command.by} if command.by else {}
        await self._ctx.event(
            answer.kind,
            command.subject,
            text,
            answers=command.id,
            verb=command.verb,
            cause=cause,
            **sender,
            **answer.detail,
        )

    async def _answer(self, command: Command) -> Answer:
        ctx, verb = self._ctx, command.verb
        scope = Scope.parse(command.subject)
        services = command_vocabulary.answering_services(verb, scope)
        if ctx.service not in services:
            words = {
                "verb": verb,
                "scope": str(scope),
                "service": ctx.service,
                "services": " and ".join(sorted(services)),
            }
            raise RefusedCommand(ReasonCode.NOT_FOR_SERVICE.to_reason(**words))
        if verb == REFRESH:
            await self._refresh()
            return Answer(VERBS[verb].answer)
        if VERBS[verb].changes_desired_state:
            return await self._change_desired_state(command, scope)
        if (
            verb in (OFFSETS_ALTER, OFFSETS_RESET)
            and ctx.desired_state.connector(scope.connector) is not DesiredPhase.STOPPED
        ):
            # Connect's own rule: a running connector would overwrite the altered offsets.
            raise RefusedCommand(ReasonCode.NOT_STOPPED.to_reason(connector=scope.name))
        if (answer := await self._carry_out(command, scope)) is None:
            raise RefusedCommand(ReasonCode.VERB_NOT_SERVED.to_reason(service=ctx.service, verb=verb))
        return answer

    async def _refresh(self) -> None:
        """Run all rounds now.

        Raises:
            RefusedCommand: The connector is not to run, or its work has ended meanwhile.
            LeadershipLost: Another replica leads now, which carries the command out.
        """
        ctx = self._ctx
        self._require_running()
        try:
            await ctx.periodic.refresh()
        except RoundInterrupted as interrupted:
            ctx.must_act()  # else the next leader carries it out
            self._require_running()
            raise RefusedCommand(ReasonCode.WORK_ENDED.to_reason(connector=ctx.connector.value)) from interrupted

    def _require_running(self) -> None:
        ctx = self._ctx
        if not ctx.should_run:
            code = ReasonCode.NOT_RUNNING if ctx.desired_state.stated_phase(ctx.connector) else ReasonCode.NOT_RESUMED
            raise RefusedCommand(
                code.to_reason(connector=ctx.connector.value, wanted=ctx.desired_state.describe(ctx.connector))
            )

    async def _change_desired_state(self, command: Command, scope: Scope) -> Answer:
        """Write the row of the desired state. The status of the service that obeys shows when it is done."""
        ctx = self._ctx
        subject = Scope.for_connector(ctx.connector) if scope.kind is ScopeKind.FLOW else scope
        if doubt := unknown_subject(command.verb, subject, ctx.state.rows):
            raise RefusedCommand(doubt)
        stated = ctx.desired_state.stated_phase(ctx.connector)
        if command.verb == RESUME and subject.kind is ScopeKind.CONNECTOR and stated is not None:
            words = {"connector": ctx.connector.value, "wanted": stated.phase, "key": stated.key}
            raise RefusedCommand(ReasonCode.STATED_IN_FILE.to_reason(**words))
        if command.verb == STOP_BEFORE and subject.connector is not Connector.SOURCE:
            raise ValueError(f"{subject} copies no records, so it has no end to stop at")
        ends = CopyEnds.from_arguments(command.arguments) if command.verb == STOP_BEFORE else AT_ONCE
        row = apply_verb(ctx.desired_state.row(subject), command.verb, command.id, ends)
        await ctx.state.write_if_changed(row)
        return Answer(VERBS[command.verb].answer, {"scope": row.scope, "wanted": row.phase})


def _shortened(cause: Reason) -> Reason:
    values = ((name, value[:LONGEST_DETAIL] if isinstance(value, str) else value) for name, value in cause.details)
    return Reason(cause.code, tuple(values))
