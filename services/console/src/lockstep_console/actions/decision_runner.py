"""Decisions about halted partitions: three commands each, and those that another console has left unfinished.

A decision stops the source connector, alters the offset, and lets the connector be as it was. If the console ends
between them, the connector stays stopped. The row of its desired state says for which decision, so every console of the
file sees it. `TAKEN_UP_AFTER_S` later one of them lets the connector be as it was. What is still halted then is decided
anew, which an operator may also do before.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockstep_console.actions.command_outcome import (
    DECISION,
    DONE,
    REFUSAL,
    UNANSWERED,
    UNFINISHED,
    CommandOutcome,
    judge,
    unfinished_words,
)
from lockstep_console.actions.command_runner import ANSWERED_WITHIN_S, CommandRunner, unfinished_decision
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.command_request import CommandReply, command_request
from lockstep_ops.formatting import in_sentences
from lockstep_ops.halt_choices import CannotDecide, HaltChoice, offsets_request
from lockstep_rules.offsets.decided_place import DecidedPlace
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.commands.command_vocabulary import OFFSETS_ALTER, STOP, Connector, Scope
from lockstep_state.commands.decision_steps import (
    ALTER,
    SOURCE,
    TAKEN_UP,
    VERB_BACK,
    UnfinishedDecision,
    step_id,
    stop_step,
)
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import PartitionProgress

if TYPE_CHECKING:
    from lockstep_console.console import Console
    from lockstep_console.flow_watch import FlowWatch

DRAINED_WITHIN_S = 60.0
"""The seconds within which the data plane has to alter an offset. It waits until every slot has drained."""

TAKEN_UP_AFTER_S = 2 * ANSWERED_WITHIN_S + DRAINED_WITHIN_S + 30.0
"""The seconds after which a decision counts as left unfinished. No console that lives takes so long."""


class DecisionRunner:
    """The decisions of one console. It is a `ConsolePart`; run `take_up_silent` as long as the console lives."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._commands = console.part(CommandRunner)
        self._deciding: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By flow: one decision at a time stops the connector."""
        self._timers: defaultdict[str, LivenessTimer] = defaultdict(LivenessTimer)
        self._taken_up: set[str] = set()
        """The ids of decisions that were taken up. Services carry a command of one id out once."""

    def decide(
        self, watch: "FlowWatch", row: PartitionProgress, choice: HaltChoice, verb: str, by: str
    ) -> CommandOutcome:
        """Carry out a choice about a halted partition in the background, and return the outcome, which is still open.

        Raises:
            CannotDecide: No command carries the choice out.
        """
        request = offsets_request(watch.settings, row, choice)
        subject = f"partition:{row.topic}-{row.partition}"
        outcome = self._commands.open_outcome(watch, verb, subject, by, {"offset": choice.begin})
        outcome.sentence = f"The source connector of {watch.name} is stopped first."
        self._commands.spawn(outcome, self._decide(watch, outcome, row, request))
        return outcome

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
                reply = await self._step(watch, outcome, ALTER, OFFSETS_ALTER, request, DRAINED_WITHIN_S)
            except (ClusterError, NewerVersion, CannotDecide) as exc:
                result = REFUSAL, str(exc)
            else:
                result = judge([reply])
            outcome.phase, outcome.sentence = await self._go_on(watch, outcome, before, *result)

    async def _stop(self, watch: "FlowWatch", outcome: CommandOutcome) -> str | None:
        """Stop the source connector, and return what it is to be afterwards, or None if it did not stop.

        A connector that an operator has stopped stays so. One that an unfinished decision has stopped is stopped for
        this one from now on, so that no console finishes the other one meanwhile.
        """
        before = DesiredStateView(watch.rows.rows, watch.settings.states).connector(Connector.SOURCE).word
        if before == DesiredPhase.STOPPED.word:
            unfinished = unfinished_decision(watch)
            if unfinished is None:
                return before
            before = unfinished.before
        phase, sentence = judge([await self._step(watch, outcome, stop_step(before), STOP)])
        if phase == DONE:
            outcome.sentence = f"The source connector of {watch.name} is stopped. The offset is altered now."
            return before
        later = f"If it is carried out later, a console resumes {SOURCE} then" if phase == UNANSWERED else ""
        outcome.phase, outcome.sentence = phase, in_sentences([sentence, later])
        return None

    async def _go_on(
        self, watch: "FlowWatch", outcome: CommandOutcome, before: str, phase: str, sentence: str
    ) -> tuple[str, str]:
        """Let the connector be as it was before, and return the phase of the whole decision, and its sentence.

        Args:
            watch: The flow.
            outcome: The outcome, which is still open.
            before: What the connector was before.
            phase: What came of the command that alters the offset.
            sentence: The same in words.
        """
        verb = VERB_BACK.get(before)
        if verb is None:
            return phase, in_sentences([sentence, f"{SOURCE} was stopped before, and stays stopped"])
        ended, words = judge([await self._step(watch, outcome, verb, verb)])
        if ended == DONE:
            return phase, in_sentences([sentence, words])
        return UNFINISHED, in_sentences([sentence, words, unfinished_words(watch.name, is_altered=phase == DONE)])

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
        await self._commands.ask_services(watch, outcome, [reply], within_s)
        return reply

    # -- what another console has left ---------------------------------------------------------------------------------

    async def take_up_silent(self) -> None:
        """Finish each decision of the file that was left unfinished, until cancelled."""
        await self._console.watches.look_again("unfinished decision not looked for", self._look)

    def _look(self, watch: "FlowWatch") -> None:
        """Take the decision up that the row of the source connector says was left unfinished, after a while."""
        unfinished = unfinished_decision(watch)
        if watch.rows.trouble is not None or self._deciding[watch.name].locked():
            unfinished = None
        now = asyncio.get_running_loop().time()
        silent_s = self._timers[watch.name].silent_for(unfinished, now)
        if unfinished and silent_s >= TAKEN_UP_AFTER_S and unfinished.id not in self._taken_up:
            self._taken_up.add(unfinished.id)
            self._take_up(watch, unfinished)

    def _take_up(self, watch: "FlowWatch", unfinished: UnfinishedDecision) -> None:
        words = f"the source connector of {watch.name} is {unfinished.before} again"
        self._console.log.warn("decision taken up", f"{unfinished.id} was left unfinished: {words}")
        by = f"console {self._console.identity.instance}"
        former = self._commands.find(watch, unfinished.id)
        outcome = self._commands.open_outcome(watch, DECISION, str(SOURCE), by, asked_id=unfinished.id)
        outcome.earlier_answers = former.answers if former is not None else ()
        outcome.sentence = "A console has ended before its decision was finished. This one finishes it."
        self._commands.spawn(outcome, self._finish(watch, outcome, unfinished))

    async def _finish(self, watch: "FlowWatch", outcome: CommandOutcome, unfinished: UnfinishedDecision) -> None:
        async with self._deciding[watch.name]:
            reply = await self._step(watch, outcome, TAKEN_UP, unfinished.verb_back)
            outcome.phase, sentence = judge([reply])
            then = "What is still halted waits for a decision" if outcome.phase == DONE else ""
            outcome.sentence = in_sentences([sentence, then])


def find_partition(watch: "FlowWatch", scope: Scope) -> PartitionProgress:
    """Return the row of the partition that a decision is about.

    Raises:
        CannotDecide: The scope is no partition, or the flow does not copy it.
    """
    row = watch.rows.rows.get(PartitionProgress.key_of(scope.name, max(0, scope.number)))
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
    if present.producer_epoch != seen.producer_epoch or DecidedPlace.of(seen).is_left(present):
        raise CannotDecide(
            f"{seen.topic}-{seen.partition} has gone on since, so nothing was decided: it is {present.phase} at source "
            f"offset {present.upstream}."
        )
