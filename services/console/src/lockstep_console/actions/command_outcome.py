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
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_state.commands.command_vocabulary import Connector, Scope
from lockstep_state.events import event_words

RUNNING, DONE, FAILED = "running", "done", "failed"
REFUSAL, UNANSWERED, UNFINISHED = "refused", "unanswered", "unfinished"
"""Phases of an outcome. Unfinished: the console ended between two commands of a decision."""

MOST_OUTCOMES = 200
"""Outcomes that a console keeps."""

STOP_STEP = {DesiredPhase.RUNNING: "stop-running", DesiredPhase.PAUSED: "stop-paused"}
"""The name of the command that stops a connector for a decision, by what the connector was before."""

SOURCE = str(Scope.for_connector(Connector.SOURCE))


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
            "trouble": "; ".join(dict.fromkeys(filter(None, (reply.trouble for reply in self.replies)))),
            "steps": [{**reply.as_json(), "lines": reply.as_lines()} for reply in self.replies],
            **self.details,
        }


def judge(replies: Sequence[CommandReply]) -> tuple[str, str]:
    """Return the phase of commands that were asked, and the sentence that says what came of them."""
    code = exit_code(replies)
    phase = {Exit.FINE: DONE, Exit.TROUBLE: REFUSAL}.get(code, UNANSWERED)
    concerned = [reply for reply in replies if code is Exit.FINE or exit_code([reply]) is not Exit.FINE]
    lines = [line.removeprefix(f"{reply.request.flow}  ") for reply in concerned for line in reply.as_lines()]
    return phase, "; ".join(dict.fromkeys(lines))


def step_id(outcome_id: str, step: str) -> str:
    """Return the id of one of the commands that a decision consists of."""
    return f"{outcome_id}.{step}"


def _outcome_id(answers: str) -> str:
    """Return the id of the outcome that a command with this id belongs to."""
    return answers.partition(".")[0]


def stopped_for(events: Iterable[Mapping[str, Any]]) -> tuple[str, DesiredPhase] | None:
    """Return the decision for which the source connector is stopped since, and what the connector was before.

    Args:
        events: Events as JSON values, newest first.

    Returns:
        None if no decision has stopped it last.
    """
    for event in events:
        if event.get("service") != Connector.SOURCE.owner or event.get("subject") not in (SOURCE, "flow", ""):
            continue
        if event.get("kind") not in ("Stopped", "Resumed", "Paused", "EndsSet"):
            continue
        identity, _, step = str(event.get("answers", "")).partition(".")
        before = {name: phase for phase, name in STOP_STEP.items()}.get(step)
        return (identity, before) if event["kind"] == "Stopped" and before is not None else None
    return None


def found_outcome(asked_id: str, flow: str, events: Iterable[Mapping[str, Any]]) -> CommandOutcome | None:
    """Return the outcome of a command whose console has ended, from the events that answer it.

    Args:
        asked_id: The id of the outcome.
        flow: The name of the flow.
        events: Events as JSON values, newest first.
    """
    events = list(events)
    answers = [event for event in reversed(events) if _outcome_id(str(event.get("answers", ""))) == asked_id != ""]
    if not answers:
        return None
    first, details = answers[0], [dict(event.get("detail") or {}) for event in answers]
    refusals = [detail for event, detail in zip(answers, details, strict=True) if event.get("kind") == REFUSED]
    open_stop = stopped_for(events)
    phase = REFUSAL if refusals else DONE
    sentence = "; ".join(dict.fromkeys(_answer_words(event) for event in answers))
    if open_stop is not None and open_stop[0] == asked_id:
        is_altered = any(event.get("kind") == "OffsetsAltered" for event in answers)
        phase, sentence = UNFINISHED, f"{sentence}. {unfinished_words(flow, is_altered=is_altered)}"
    return CommandOutcome(
        id=asked_id,
        flow=flow,
        verb=str(details[0].get("verb", "")),
        subject=str(first.get("subject", "")),
        by=str(details[0].get("by", "")),
        at_ms=int(first.get("at_ms", 0)),
        phase=phase,
        sentence=sentence,
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
        is_altered: Whether the offset is altered already.
    """
    what = "The offset is altered" if is_altered else "Nothing is altered"
    how = f"resume {SOURCE}" if is_altered else f"decide anew, which goes on from here, or resume {SOURCE}"
    return f"{what}, and the source connector of {flow} is still stopped, so nothing is copied: {how}"


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

    def get(self, flow: str, asked_id: str) -> CommandOutcome | None:
        """Return the outcome with this id in a flow, or None if it is not kept."""
        outcome = self._outcomes.get(asked_id)
        return outcome if outcome is not None and outcome.flow == flow else None

    def of_flow(self, flow: str) -> list[CommandOutcome]:
        """Return the outcomes of a flow, newest first."""
        return [outcome for outcome in reversed(self._outcomes.values()) if outcome.flow == flow]
