"""The commands that operators ask for in the console. They are asked in the background, and their outcome is published.

A request is answered at once. The commands themselves are in Kafka, so services carry them out although the console
ends meanwhile. A decision about a halted partition consists of several commands. If the console ends between them, the
connector stays stopped: the outcome is `unfinished` then, and the same decision goes on from there.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep_console.actions.command_outcome import (
    DONE,
    FAILED,
    REFUSAL,
    STOP_STEP,
    UNANSWERED,
    CommandOutcome,
    OutcomeStore,
    found_outcome,
    judge,
    step_id,
    stopped_for,
    unfinished_words,
)
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.command_client import ask_all
from lockstep_ops.command_request import CommandReply, CommandRequest, command_request
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.halt_choices import CannotDecide, HaltChoice, offsets_request
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.util.clock import now_ms
from lockstep_state.commands.command_vocabulary import (
    FLOW,
    OFFSETS_ALTER,
    PAUSE,
    RESUME,
    STOP,
    SYNC_GROUPS,
    Connector,
    Scope,
)
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import PartitionProgress

if TYPE_CHECKING:
    from lockstep_console.console import Console
    from lockstep_console.flow_watch import FlowWatch

ANSWERED_WITHIN_S = 30.0
"""The seconds within which services have to answer. One may have to be taken over by another replica first."""

DRAINED_WITHIN_S = 60.0
"""The seconds within which the data plane has to alter an offset. It waits until every slot has drained."""

ANSWERS_NOTHING = b'"answers":""'
"""The bytes of an event that answers no command. Nearly all are such."""

LOOKS_AGAIN_S = 0.2
"""The seconds between two looks at the answers that have come."""

SOURCE = Scope.for_connector(Connector.SOURCE)


class CommandRunner:
    """The commands that were asked in this console. It is a `ConsolePart`."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self.outcomes = OutcomeStore()
        self._deciding: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By flow: one decision at a time stops the connector."""

    def find(self, watch: "FlowWatch", asked_id: str) -> CommandOutcome | None:
        """Return an outcome by its id: one of this console's, or what the events say of one that has ended."""
        kept = self.outcomes.get(watch.name, asked_id)
        return kept or found_outcome(asked_id, watch.name, event_bodies(watch))

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

    def decide(
        self, watch: "FlowWatch", row: PartitionProgress, choice: HaltChoice, verb: str, by: str
    ) -> CommandOutcome:
        """Carry out a choice about a halted partition in the background, and return the outcome, which is still open.

        Raises:
            CannotDecide: No command carries the choice out.
        """
        request = offsets_request(watch.settings, row, choice)
        subject = f"partition:{row.topic}-{row.partition}"
        outcome = self.open_outcome(watch, verb, subject, by, {"offset": choice.begin})
        outcome.sentence = f"The source connector of {watch.name} is stopped first."
        self.spawn(outcome, self._decide(watch, outcome, row, request))
        return outcome

    def spawn(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        """Do the work beside the requests. The outcome is published now, with each answer, and at the end."""
        self.publish(outcome)
        self._console.spawn(f"{outcome.verb} {outcome.subject} of {outcome.flow}", self._followed(outcome, work))

    async def _followed(self, outcome: CommandOutcome, work: Coroutine[Any, Any, None]) -> None:
        looking = asyncio.ensure_future(self._publish_answers(outcome))
        try:
            await work
        except (ClusterError, NewerVersion, CannotUse, CannotDecide) as exc:
            outcome.phase, outcome.sentence = REFUSAL, str(exc)
        except Exception as exc:
            outcome.phase, outcome.sentence = FAILED, f"The console could not do it: {exc}. Its log says more."
            raise
        finally:
            await cancelled([looking])
            self.publish(outcome)

    async def _publish_answers(self, outcome: CommandOutcome) -> None:
        shown = 0
        while True:
            await asyncio.sleep(LOOKS_AGAIN_S)
            if shown != (count := len(outcome.answers)):
                shown = count
                self.publish(outcome)

    async def _ask(self, watch: "FlowWatch", outcome: CommandOutcome) -> None:
        await ask_all(watch.settings, outcome.replies, ANSWERED_WITHIN_S)
        outcome.phase, outcome.sentence = judge(outcome.replies)

    # -- a halted partition --------------------------------------------------------------------------------------------

    async def _decide(
        self, watch: "FlowWatch", outcome: CommandOutcome, row: PartitionProgress, request: Mapping[str, Any]
    ) -> None:
        """Stop the connector, alter the offset, and let the connector be as it was."""
        async with self._deciding[watch.name]:
            await watch.rows.catch_up_now()
            _require_unmoved(row, _present_row(watch, row))
            before = await self._stop(watch, outcome)
            if before is None:
                return
            try:
                await watch.rows.catch_up_now()
                _require_unmoved(row, _present_row(watch, row))
                reply = await self._step(watch, outcome, "alter", OFFSETS_ALTER, request, DRAINED_WITHIN_S)
            except (ClusterError, NewerVersion, CannotDecide) as exc:
                result = REFUSAL, str(exc)
            else:
                result = judge([reply])
            outcome.phase, outcome.sentence = await self._go_on(watch, outcome, before, *result)

    async def _stop(self, watch: "FlowWatch", outcome: CommandOutcome) -> DesiredPhase | None:
        """Stop the source connector, and return what it is to be afterwards, or None if it did not stop.

        A connector that an operator has stopped stays so. One that an unfinished decision has stopped does not.

        Raises:
            ClusterError: The connector is stopped, and the events that say for what are not known.
        """
        before = DesiredStateView(watch.rows.rows, watch.settings.states).connector(Connector.SOURCE)
        if before is DesiredPhase.STOPPED:
            await watch.watched_events.wait_read()
            if watch.watched_events.trouble is not None:
                raise watch.watched_events.trouble.with_traceback(None)
            unfinished = stopped_for(event_bodies(watch))
            return before if unfinished is None else unfinished[1]
        phase, sentence = judge([await self._step(watch, outcome, STOP_STEP[before], STOP)])
        if phase == DONE:
            outcome.sentence = f"The source connector of {watch.name} is stopped. The offset is altered now."
            return before
        later = f". If it is carried out later, resume {SOURCE}" if phase == UNANSWERED else ""
        outcome.phase, outcome.sentence = phase, sentence + later
        return None

    async def _go_on(
        self, watch: "FlowWatch", outcome: CommandOutcome, before: DesiredPhase, phase: str, sentence: str
    ) -> tuple[str, str]:
        """Let the connector be as it was before, and return the phase of the whole decision, and its sentence.

        Args:
            watch: The flow.
            outcome: The outcome, which is still open.
            before: What the connector was before.
            phase: What came of the command that alters the offset.
            sentence: The same in words.
        """
        verb = {DesiredPhase.RUNNING: RESUME, DesiredPhase.PAUSED: PAUSE}.get(before)
        if verb is None:
            return phase, f"{sentence}. {SOURCE} was stopped before, and stays stopped"
        ended, words = judge([await self._step(watch, outcome, verb, verb)])
        if ended == DONE:
            return phase, f"{sentence}; {words}"
        return ended, f"{words}. {unfinished_words(watch.name, is_altered=phase == DONE)}"

    async def _step(
        self,
        watch: "FlowWatch",
        outcome: CommandOutcome,
        step: str,
        verb: str,
        arguments: Mapping[str, Any] | None = None,
        within_s: float = ANSWERED_WITHIN_S,
    ) -> CommandReply:
        """Ask one of the commands of a decision, and return the reply once it is there, or the time is over."""
        identity = step_id(outcome.id, step)
        request = command_request(watch.settings, verb, SOURCE, arguments, by=outcome.by, command_id=identity)
        reply = CommandReply(request)
        outcome.replies.append(reply)
        await ask_all(watch.settings, [reply], within_s)
        return reply


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


def event_bodies(watch: "FlowWatch") -> Sequence[Mapping[str, Any]]:
    """Return the last events of a flow that answer commands, as JSON values, newest first."""
    return [
        event.decoded.detail
        for event in watch.watched_events.events()
        if ANSWERS_NOTHING not in (event.record.value or b"")
    ]


def find_partition(watch: "FlowWatch", scope: Scope) -> PartitionProgress:
    """Return the row of the partition that a decision is about.

    Raises:
        CannotDecide: The scope is no partition, or the flow does not copy it.
    """
    row = watch.rows.rows.get(PartitionProgress(topic=scope.name, partition=max(0, scope.number)).key())
    if scope.number < 0 or not scope.name or not isinstance(row, PartitionProgress):
        raise CannotDecide(f"{scope} is no partition that {watch.name} copies: write partition:TOPIC-NUMBER.")
    return row


def _present_row(watch: "FlowWatch", row: PartitionProgress) -> PartitionProgress:
    """Return the row of the partition as it is now. Raises as `find_partition`."""
    present = watch.rows.rows.get(row.key())
    if not isinstance(present, PartitionProgress):
        raise CannotDecide(f"{row.topic}-{row.partition} has no row any more: look again.")
    return present


def _require_unmoved(seen: PartitionProgress, present: PartitionProgress) -> None:
    """Check that the partition is where it was when the operator decided.

    Raises:
        CannotDecide: It has gone on since, by a policy or another decision.
    """
    wanted = seen.cause.detail("wanted")
    goes_on_at = max(seen.upstream + 1, wanted if isinstance(wanted, int) else 0)
    if present.producer_epoch != seen.producer_epoch or present.upstream >= goes_on_at or present.begins != seen.begins:
        raise CannotDecide(
            f"{seen.topic}-{seen.partition} has gone on since, so nothing was decided: it is {present.phase} at source "
            f"offset {present.upstream}."
        )
