"""Commands of an operator: carried out once by whoever leads, each answered by an event with its id (design §4).

Nothing is remembered but what lies in Kafka. A new leader reads all commands and all answers first and carries out
what has no answer; afterwards commands come from the group. A command may so be carried out twice when its leader
ends between act and answer: verbs are idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lockstep_protocol.commands import Command, decode_command
from lockstep_protocol.events import decode_event
from lockstep_runtime.context import Answer, FlowContext
from lockstep_runtime.errors import ClusterTrouble
from lockstep_runtime.follow import Record

__all__ = ["CommandDesk"]

REFRESH = "refresh"


class CommandDesk:
    """The commands of one flow, as one service sees them."""

    def __init__(self, ctx: FlowContext, carry_out: Callable[[Command], Awaitable[Answer | None]]) -> None:
        self._ctx = ctx
        self._carry_out = carry_out
        self._taken: set[str] = set()
        self._answered: set[str] = set()
        self._inbox: asyncio.Queue[Command] = asyncio.Queue()

    def answered(self, records: Sequence[Record]) -> None:
        """Fold events: those that answer a command in our name."""
        for record in records:
            # Nearly no event answers anything; do not parse the others.
            if record.value is None or b'"answers":""' in record.value:
                continue
            try:
                event = decode_event(record.value)
            except (ValueError, TypeError) as exc:
                self._ctx.log.debug("event ignored", f"offset {record.offset}: {exc}")
                continue
            if event.answers and event.service == self._ctx.service:
                self._answered.add(event.answers)

    def received(self, records: Sequence[Record]) -> None:
        """Take in commands, old or new; what is not for us, known already or malformed is dropped."""
        for record in records:
            if record.value is None:
                continue
            try:
                command = decode_command(record.value)
            except (ValueError, TypeError) as exc:
                self._ctx.log.warn("command ignored", f"partition {record.partition} offset {record.offset}: {exc}")
                continue
            if not self._ours(record.partition, command) or command.id in self._taken:
                continue
            self._taken.add(command.id)
            self._inbox.put_nowait(command)

    def _ours(self, partition: int, command: Command) -> bool:
        if self._ctx.divided:
            return command.service in ("", self._ctx.service)
        # What goes to everybody in another partition is about a group, and meant for who divides groups.
        return command.service == self._ctx.service or (not command.service and partition == 0)

    async def serve(self) -> None:
        """Carry out and answer, one at a time, for ever."""
        while True:
            command = await self._inbox.get()
            if command.id in self._answered:
                continue
            try:
                kind, reason, detail = await self._judge(command)
            except ClusterTrouble as trouble:
                kind, reason, detail = "CommandRefused", str(trouble), {}
            text = f"{command.verb} {command.subject}".strip() + (f": {reason}" if reason else "")
            extra = {"reason": reason} if reason else {}
            await self._ctx.event(
                kind,
                command.subject,
                text,
                answers=command.id,
                loud=bool(reason),
                verb=command.verb,
                **extra,
                **detail,
            )

    async def _judge(self, command: Command) -> tuple[str, str, dict[str, object]]:
        if command.verb == REFRESH:
            await self._ctx.rounds.refresh()
            return "Refreshed", "", {}
        try:
            answer = await self._carry_out(command)
        except ValueError as exc:
            return "CommandRefused", str(exc), {}
        if answer is None:
            return "CommandRefused", f"{self._ctx.service} knows no command {command.verb!r} (it knows {REFRESH!r})", {}
        return answer.kind, "", dict(answer.detail)
