"""A command of an operator and its answers: who is asked, who has answered, and the exit code."""

import os
import pwd
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep_config import FlowSettings
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_ops.services import SERVICES
from lockstep_runtime.util.clock import now_ms
from lockstep_state.commands.command import Command, decode_command
from lockstep_state.commands.command_vocabulary import Scope, answering_services
from lockstep_state.events import Event, event_words
from lockstep_state.names import Flow

REFUSED = "CommandRefused"


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command for one flow.

    `services` are those whose answers are awaited. `absent` are those that would answer but have no work in this
    flow, by the file.
    """

    flow: Flow
    command: Command
    scope: Scope
    services: frozenset[str]
    absent: frozenset[str] = frozenset()
    commands_partition: int = 0


def command_scope(text: str) -> Scope:
    """Return the scope that is written on the command line.

    Raises:
        CannotUse: It is no scope.
    """
    try:
        return Scope.parse(text)
    except ValueError as exc:
        raise CannotUse(str(exc)) from exc


def operator_name() -> str:
    """Return the name of the operating system's user, or `uid N` if the user has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def command_request(
    settings: FlowSettings,
    verb: str,
    scope: Scope,
    arguments: Mapping[str, Any] | None = None,
    *,
    commands_partition: int | None = None,
    by: str | None = None,
    command_id: str = "",
) -> CommandRequest:
    """Return a new request, with the services that answer it.

    Args:
        settings: The flow.
        verb: The verb.
        scope: The scope.
        arguments: The command's arguments.
        commands_partition: The partition of the replica that is meant. None: that of the scope.
        by: The name of the person who asks. None: the user of this process (`operator_name`).
        command_id: The id of the command. "": a new one.

    Raises:
        CannotUse: The verb is not for such a scope, or no service would answer, or read the command.
    """
    try:
        services = answering_services(verb, scope)
    except ValueError as exc:
        raise CannotUse(str(exc)) from exc
    answering = frozenset(name for name in services if SERVICES[name](settings))
    if not answering:
        raise CannotUse(
            f"{settings.flow}: {' and '.join(sorted(services))} would carry out {verb} {scope}, and by this file "
            "has nothing to do in the flow"
        )
    command = Command(
        id=command_id or str(uuid.uuid4()),
        verb=verb,
        subject=str(scope),
        at_ms=now_ms(),
        arguments=dict(arguments or {}),
        by=operator_name() if by is None else by,
    )
    try:
        decode_command(command.encode_value())
    except ValueError as exc:
        raise CannotUse(f"no service would read the command: {exc}") from exc
    partition = scope.commands_partition if commands_partition is None else commands_partition
    return CommandRequest(settings.flow, command, scope, answering, services - answering, partition)


@dataclass(slots=True)
class CommandReply:
    """The answers that were heard so far. Feed it every event; one fed twice changes nothing."""

    request: CommandRequest
    heard: dict[str, Event] = field(default_factory=dict)
    """The first answer of each service."""
    members: dict[str, int] = field(default_factory=dict)
    """The replicas that were found in the groups of services that did not answer."""
    trouble: str = ""
    """The reason why no service could be asked. Then nothing is known of what was done."""
    denied: bool = False
    """The cluster answered, and did not let us ask."""

    def add_event(self, event: Event) -> None:
        if event.answers == self.request.command.id and event.service in self.request.services:
            self.heard.setdefault(event.service, event)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the services that have not answered."""
        return tuple(sorted(self.request.services - self.heard.keys()))

    @property
    def refusals(self) -> tuple[Event, ...]:
        return tuple(event for event in self.heard.values() if event.kind == REFUSED)

    def as_json(self) -> dict[str, Any]:
        """Return as JSON values what was asked, each answer, and who did not answer."""
        command = self.request.command
        return {
            "flow": str(self.request.flow),
            "verb": command.verb,
            "subject": command.subject,
            "id": command.id,
            "answers": [
                {"service": name, "kind": event.kind, "at_ms": event.at_ms, "detail": event.detail}
                for name, event in sorted(self.heard.items())
            ],
            "missing": list(self.missing),
            "trouble": self.trouble,
        }

    def as_lines(self) -> list[str]:
        """Return a line for each service that was asked."""
        if self.trouble:
            return [f"{self.request.flow}  {self.trouble}"]
        return [self._line(name) for name in sorted(self.request.services)]

    def _line(self, service: str) -> str:
        command, event = self.request.command, self.heard.get(service)
        head = f"{self.request.flow}  {service}: "
        if event is None:
            return head + f"no answer to {command.verb}. {self._advice(service)}"
        if event.kind == REFUSED:
            return head + f"refused: {event.detail.get('reason', 'without a reason')}"
        scope, wanted = event.detail.get("scope"), event.detail.get("wanted")
        if scope and wanted:
            return head + f"{event_words(event.kind)}, {scope} is to be {wanted}"
        count = event.detail.get("entries")
        return head + event_words(event.kind) + ("" if count is None else f", {count} of them")

    def _advice(self, service: str) -> str:
        later = "The command is kept for 7 days and carried out when it is there"
        match self.members.get(service):
            case None:
                return f"Look at its log and its /ready page. {later}."
            case 0:
                return f"No replica of it runs for this flow: start it. {later}."
            case count:
                replicas = "1 replica runs" if count == 1 else f"{count} replicas run"
                return f"{replicas} and did not answer in time: look at its log and its /ready page. {later}."


def exit_code(replies: Sequence[CommandReply]) -> Exit:
    """Return 0 if everybody did as asked, 1 if somebody refused, 3 if somebody did not answer."""
    if any(reply.refusals or reply.denied for reply in replies):
        return Exit.TROUBLE
    return Exit.NO_ANSWER if any(reply.missing for reply in replies) else Exit.FINE
