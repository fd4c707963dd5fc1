"""The outcome of what an operator asked for in the console: what was asked, and what came of it. Pure.

A console keeps the last outcomes in memory. After its end they are in the events topic: the answer to a command has its
id. A command that consists of several has theirs begin with its own, and a dot: `ID.stop-running`.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep_ops.command_request import REFUSED, CommandReply, exit_code
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import in_sentences
from lockstep_state.commands.decision_steps import SOURCE, UnfinishedDecision
from lockstep_state.events import event_words

RUNNING, DONE, FAILED = "running", "done", "failed"
REFUSAL, UNANSWERED, UNFINISHED = "refused", "unanswered", "unfinished"
PHASES = (RUNNING, DONE, FAILED, REFUSAL, UNANSWERED, UNFINISHED)
"""Phases of an outcome. Unfinished: the console ended between two commands of a decision."""

MOST_OUTCOMES = 200
"""Outcomes that a console keeps."""

DECISION = "decision"
"""The verb of a decision of which only the row of the connector that it has stopped is known."""


@dataclass(slots=True, kw_only=True)
class CommandOutcome:
    """Something that was asked, with what has come of it until now. Its time is Unix milliseconds."""

    id: str
    flow: str
    verb: str
    subject: str
    by: str
    at_ms: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    phase: str = RUNNING
    sentence: str = ""
    replies: list[CommandReply] = field(default_factory=list)
    """The commands that were asked of services, in order."""
    earlier_answers: Sequence[Mapping[str, Any]] = ()
    """Answers that were found in the events topic, if the console that asked has ended."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further values for programs, such as the refusals of a switch."""

    @property
    def answers(self) -> Sequence[Mapping[str, Any]]:
        """Return each answer of a service, in order."""
        heard = [
            {"verb": body["verb"], **answer}
            for body in (reply.as_json() for reply in self.replies)
            for answer in body["answers"]
        ]
        return [*self.earlier_answers, *heard]

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values. The fields of `CommandReply.as_json` are of all commands together."""
        return {
            "id": self.id,
            "flow": self.flow,
            "verb": self.verb,
            "subject": self.subject,
            "arguments": dict(self.arguments),
            "by": self.by,
            "at_ms": self.at_ms,
            "phase": self.phase,
            "sentence": self.sentence,
            "answers": list(self.answers),
            "missing": sorted({name for reply in self.replies for name in reply.missing}),
            "trouble": in_sentences(reply.trouble for reply in self.replies),
            "steps": [{**reply.as_json(), "lines": _reply_lines(reply)} for reply in self.replies],
            **self.details,
        }


def judge(replies: Sequence[CommandReply]) -> tuple[str, str]:
    """Return the phase of commands that were asked, and the sentences that say what came of them.

    If a service refuses or does not answer, the sentences are about those commands alone.
    """
    code = exit_code(replies)
    phase = {Exit.FINE: DONE, Exit.TROUBLE: REFUSAL}.get(code, UNANSWERED)
    concerned = [reply for reply in replies if code is Exit.FINE or exit_code([reply]) is not Exit.FINE]
    return phase, in_sentences(line for reply in concerned for line in _reply_lines(reply))


def _reply_lines(reply: CommandReply) -> list[str]:
    """Return a line for each service that was asked, without the name of the flow."""
    return [line.removeprefix(f"{reply.request.flow}  ") for line in reply.as_lines()]


def _outcome_id(answers: str) -> str:
    """Return the id of the outcome that a command with this id belongs to."""
    return answers.partition(".")[0]


def found_outcome(
    asked_id: str, flow: str, events: Iterable[Mapping[str, Any]], unfinished: UnfinishedDecision | None = None
) -> CommandOutcome | None:
    """Return the outcome of a command whose console has ended, from the events that answer it.

    Args:
        asked_id: The id of the outcome.
        flow: The name of the flow.
        events: The last events as JSON values, newest first. Those of a decision may be older.
        unfinished: The decision for which the source connector is stopped now, if there is one.
    """
    answers = [
        event for event in reversed(list(events)) if _outcome_id(str(event.get("answers", ""))) == asked_id != ""
    ]
    unfinished = unfinished if unfinished is not None and unfinished.id == asked_id else None
    if answers:
        asked = answers[0]
    elif unfinished is not None:  # its events are not kept any more
        asked = {"subject": str(SOURCE), "at_ms": unfinished.since_ms, "detail": {"verb": DECISION}}
    else:
        return None
    request = asked.get("detail") or {}
    details = [dict(event.get("detail") or {}) for event in answers]
    refused = any(event.get("kind") == REFUSED for event in answers)
    phase = UNFINISHED if unfinished else REFUSAL if refused else DONE
    is_altered = any(event.get("kind") == "OffsetsAltered" for event in answers)
    words = [unfinished_words(flow, is_altered=is_altered)] if unfinished else []
    return CommandOutcome(
        id=asked_id,
        flow=flow,
        verb=str(request.get("verb", "")),
        subject=str(asked.get("subject", "")),
        by=str(request.get("by", "")),
        at_ms=int(asked.get("at_ms", 0)),
        phase=phase,
        sentence=in_sentences([*(_answer_words(event) for event in answers), *words]),
        earlier_answers=[
            {
                "verb": detail.get("verb", ""),
                "service": event.get("service", ""),
                "kind": event.get("kind", ""),
                "at_ms": event.get("at_ms", 0),
                "detail": detail,
            }
            for event, detail in zip(answers, details, strict=True)
        ],
    )


def unfinished_words(flow: str, *, is_altered: bool) -> str:
    """Return how a decision is finished whose console has ended, or could not resume the connector.

    Args:
        flow: The name of the flow.
        is_altered: Whether the offset is known to be altered.
    """
    offset = "The offset is altered. The" if is_altered else "The"
    then = "" if is_altered else " What is still halted then is decided anew."
    return (
        f"{offset} source connector of {flow} is still stopped, so nothing is copied. A console that runs finishes it "
        f"within three minutes, or resume {SOURCE} now.{then}"
    )


def _answer_words(event: Mapping[str, Any]) -> str:
    detail = event.get("detail") or {}
    if event.get("kind") == REFUSED:
        return f"{event.get('service')}: refused: {detail.get('reason', 'without a reason')}"
    return f"{event.get('service')}: {event_words(str(event.get('kind', '')))}"


class OutcomeStore:
    """The last outcomes of a console, oldest first."""

    def __init__(self, most: int = MOST_OUTCOMES) -> None:
        self._most = most
        self._outcomes: OrderedDict[str, CommandOutcome] = OrderedDict()

    def add(self, outcome: CommandOutcome) -> None:
        """Keep an outcome. The oldest one that has ended makes room."""
        self._outcomes[outcome.id] = outcome
        while len(self._outcomes) > self._most:
            ended = (name for name, kept in self._outcomes.items() if kept.phase != RUNNING)
            self._outcomes.pop(next(ended, next(iter(self._outcomes))))

    def rename(self, outcome: CommandOutcome, asked_id: str) -> None:
        """Keep an outcome under another id from now on."""
        self._outcomes.pop(outcome.id, None)
        outcome.id = asked_id
        self.add(outcome)

    def get(self, flow: str, asked_id: str) -> CommandOutcome | None:
        """Return the outcome with this id in a flow, or None if it is not kept."""
        outcome = self._outcomes.get(asked_id)
        return outcome if outcome is not None and outcome.flow == flow else None

    def has(self, asked_id: str) -> bool:
        """Return whether an outcome with this id is kept, whatever its flow is."""
        return asked_id in self._outcomes

    def of_flow(self, flow: str) -> list[CommandOutcome]:
        """Return the outcomes of a flow, newest first."""
        return [outcome for outcome in reversed(self._outcomes.values()) if outcome.flow == flow]
