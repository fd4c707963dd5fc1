"""The commands that operators ask for in the console. They are asked in the background, and their outcome is published.

A request is answered at once. The commands themselves are in Kafka, so services carry them out although the console
ends meanwhile.
"""

import asyncio
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep_console.actions.command_outcome import (
    FAILED,
    REFUSAL,
    CommandOutcome,
    OutcomeStore,
    found_outcome,
    judge,
)
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.command_client import ask_all
from lockstep_ops.command_request import CommandReply, CommandRequest, command_request
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.formatting import as_sentence
from lockstep_ops.halt_choices import CannotDecide
from lockstep_runtime.util.clock import now_ms
from lockstep_state.commands.command_vocabulary import FLOW, SYNC_GROUPS, Scope
from lockstep_state.commands.decision_steps import SOURCE_KEY, UnfinishedDecision, step_id, unfinished_in
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.row import NewerVersion

if TYPE_CHECKING:
    from lockstep_console.console import Console
    from lockstep_console.flow_watch import FlowWatch

ANSWERED_WITHIN_S = 30.0
"""The seconds within which services have to answer. One may have to be taken over by another replica first."""

ANSWERS_NOTHING = b'"answers":""'
"""The bytes of an event that answers no command. Nearly all are such."""


class CommandRunner:
    """The commands that were asked in this console. It is a `ConsolePart`."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self.outcomes = OutcomeStore()
        self._works: dict[str, asyncio.Task[None]] = {}
        """The tasks that go on, by the id of their outcome."""

    def find(self, watch: "FlowWatch", asked_id: str) -> CommandOutcome | None:
        """Return an outcome by its id: one of this console's, or what the events say of one that has ended."""
        kept = self.outcomes.get(watch.name, asked_id)
        return kept or found_outcome(asked_id, watch.name, _event_bodies(watch), unfinished_decision(watch))

    def open_outcome(
        self,
        watch: "FlowWatch",
        verb: str,
        subject: str,
        by: str,
        arguments: Mapping[str, Any] | None = None,
        asked_id: str = "",
    ) -> CommandOutcome:
        """Return the outcome of something that is asked now, and keep it."""
        outcome = CommandOutcome(
            id=asked_id or uuid.uuid4().hex,
            flow=watch.name,
            verb=verb,
            subject=subject,
            by=by,
            at_ms=now_ms(),
            arguments=arguments or {},
        )
        self.outcomes.add(outcome)
        return outcome

    def publish(self, outcome: CommandOutcome) -> None:
        """Show the outcome as it is now to every browser."""
        self._console.changes.publish("command", outcome.flow, outcome.as_json())

    def ask(
        self, watch: "FlowWatch", verb: str, scope: Scope, by: str, arguments: Mapping[str, Any] | None = None
    ) -> CommandOutcome:
        """Ask services in the background, and return the outcome, which is still open.

        Raises:
            CannotUse: The verb is not for such a scope, or no service would answer.
        """
        asked_id = uuid.uuid4().hex
        requests = requests_for(watch, verb, scope, by, arguments, asked_id)
        outcome = self.open_outcome(watch, verb, str(scope), by, arguments, asked_id)
        outcome.replies = [CommandReply(request) for request in requests]
        outcome.sentence = "The services are asked."
        self.spawn(outcome, self._ask(watch, outcome))
        return outcome

    def spawn(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        """Do the work beside the requests. The outcome is published now, with each answer, and at the end."""
        self.publish(outcome)
        name = f"{outcome.verb} {outcome.subject} of {outcome.flow}"
        task = self._works[outcome.id] = self._console.spawn(name, self._followed(outcome, work))
        task.add_done_callback(lambda _: self._works.pop(outcome.id, None))

    async def wait_ended(self, outcome: CommandOutcome, within_s: float) -> None:
        """Return when nothing more comes of an outcome, or after `within_s` seconds."""
        if (task := self._works.get(outcome.id)) is not None:
            await asyncio.wait({task}, timeout=within_s)

    async def ask_services(
        self, watch: "FlowWatch", outcome: CommandOutcome, replies: Sequence[CommandReply], within_s: float
    ) -> None:
        """Ask services, and publish the outcome with each answer. Raises as `ask_all`."""
        await ask_all(watch.settings, replies, within_s, lambda: self.publish(outcome))

    async def _followed(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ClusterError, NewerVersion, CannotUse, CannotDecide) as exc:
            outcome.phase, outcome.sentence = REFUSAL, as_sentence(str(exc))
        except Exception as exc:
            outcome.phase, outcome.sentence = FAILED, f"The console could not do it: {exc}. Its log says more."
            raise
        finally:
            self.publish(outcome)

    async def _ask(self, watch: "FlowWatch", outcome: CommandOutcome) -> None:
        await self.ask_services(watch, outcome, outcome.replies, ANSWERED_WITHIN_S)
        outcome.phase, outcome.sentence = judge(outcome.replies)


def requests_for(
    watch: "FlowWatch",
    verb: str,
    scope: Scope,
    by: str,
    arguments: Mapping[str, Any] | None = None,
    asked_id: str = "",
) -> Sequence[CommandRequest]:
    """Return the commands that a verb consists of, with ids that belong to `asked_id`. Raises as `command_request`."""
    settings = watch.settings
    if verb != SYNC_GROUPS:
        return [command_request(settings, verb, scope, arguments, by=by, command_id=asked_id)]
    if scope != FLOW:
        raise CannotUse(f"{SYNC_GROUPS} is for a flow only")
    return [
        command_request(
            settings,
            verb,
            scope,
            {"share": share, "source": True, "rewind": False},
            commands_partition=share,
            by=by,
            command_id=step_id(asked_id, f"share-{share}") if asked_id else "",
        )
        for share in range(COMMANDS_PARTITIONS)
    ]


def _event_bodies(watch: "FlowWatch") -> Sequence[Mapping[str, Any]]:
    """Return the last events of a flow that answer commands, as JSON values, newest first."""
    return [
        event.decoded.detail
        for event in watch.watched_events.events()
        if ANSWERS_NOTHING not in (event.record.value or b"")
    ]


def unfinished_decision(watch: "FlowWatch") -> UnfinishedDecision | None:
    """Return the decision for which the source connector of a flow is stopped now, if there is one."""
    return unfinished_in(watch.rows.find(SOURCE_KEY))
