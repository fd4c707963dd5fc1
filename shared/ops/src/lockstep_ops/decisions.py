"""The decisions that an operator has to take in a flow. Pure.

They are about one that was begun and not finished, about halted partitions, and about parts that failed too often.

Everything else goes on by itself, or is wrong outside of Lockstep: it is among the troubles of the report.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from lockstep_ops.command_words import CommandWords, choice_words, command_words
from lockstep_ops.halt_choices import HaltChoice, halt_choices
from lockstep_ops.status.report import PartitionLine, Report
from lockstep_state.commands import decision_steps
from lockstep_state.commands.command_vocabulary import RESTART, Scope, ScopeKind
from lockstep_state.commands.decision_steps import find_unfinished
from lockstep_state.names import Flow
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import PartitionProgress, Restarts, Row

HALTED_PARTITION, FAILED_SERVICE, FAILED_SLOT = "halted-partition", "failed-service", "failed-slot"
UNFINISHED = "unfinished-decision"
"""The kinds of decisions."""

UNDER_WAY_MS = 15_000
"""Milliseconds for which a decision counts as under way. Most take less."""

RANGE = ("wanted", "source_start", "source_end", "first", "last", "target_wanted", "target_end")
"""The details of a reason that are offsets. They come in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to decide: the command that does it, and what it does and loses in words.

    `line` is the line of configuration that does it, if no command does.
    """

    verb: str
    subject: str
    words: CommandWords
    arguments: Mapping[str, Any] = field(default_factory=dict)
    line: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        return {
            "verb": self.verb,
            "subject": self.subject,
            "arguments": dict(self.arguments),
            "line": self.line,
            **self.words.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that does not go on until an operator decides.

    `subject` is a scope, such as `partition:orders-0`. `since_ms` is when it was written down; 0: not known. `range`
    has the offsets that matter, by name.
    """

    flow: str
    kind: str
    subject: str
    since_ms: int
    case: str
    sentence: str
    range: Mapping[str, int]
    choices: tuple[Choice, ...]
    code: str = ""
    """The code of its reason, which `lockstep explain` knows; "": it has none."""

    def as_json(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        plain = {name: value for name, value in asdict(self).items() if name != "choices"}
        return {**plain, "choices": [choice.as_json() for choice in self.choices]}


def decisions(report: Report, rows: Mapping[str, Row], most: int | None = None) -> tuple[Decision, ...]:
    """Return what waits for a decision.

    An unfinished one is the first. Then come services, slots, and partitions in the order of their names.

    Args:
        report: The report of the flow.
        rows: The rows that the report is of, by key.
        most: Most partitions of which the decision is made. To make one costs, and each partition may have one.
    """
    flow = Flow.parse(report.flow)
    halted = islice(_halted(report, rows), most)
    return (*_of_parts(flow, report, rows), *(_halted_partition(flow, line, row) for line, row in halted))


def count_decisions(report: Report, rows: Mapping[str, Row]) -> int:
    """Return how many decisions there are, without making those of partitions."""
    return sum(1 for _ in _of_parts(Flow.parse(report.flow), report, rows)) + sum(1 for _ in _halted(report, rows))


def _of_parts(flow: Flow, report: Report, rows: Mapping[str, Row]) -> Iterator[Decision]:
    """Yield the decisions of what is no partition: there are few."""
    restarts = [row for row in rows.values() if isinstance(row, Restarts)]
    yield from _unfinished(flow, report, rows)
    yield from _failed_services(flow, report, restarts)
    yield from _slots(flow, report, restarts)


def _unfinished(flow: Flow, report: Report, rows: Mapping[str, Row]) -> Iterator[Decision]:
    unfinished = find_unfinished(rows)
    if unfinished is None or report.at_ms - unfinished.since_ms < UNDER_WAY_MS:
        return
    scope = decision_steps.SOURCE
    yield Decision(
        flow=str(flow),
        kind=UNFINISHED,
        subject=str(scope),
        since_ms=unfinished.since_ms,
        case="",
        sentence=(
            f"A decision about a halted partition has stopped the source connector of {flow}, and is not finished: "
            f"nothing of {flow} is copied. A console that runs finishes it within three minutes. What is still halted "
            "then waits for a decision"
        ),
        range={},
        choices=(_choice_of_verb(flow, unfinished.verb_back, scope),),
    )


def _halted(report: Report, rows: Mapping[str, Row]) -> Iterator[tuple[PartitionLine, PartitionProgress]]:
    for line in report.partitions:
        if line.state != "halted":
            continue
        row = rows.get(PartitionProgress.key_of(line.topic, line.partition))
        if isinstance(row, PartitionProgress):
            yield line, row


def _halted_partition(flow: Flow, line: PartitionLine, row: PartitionProgress) -> Decision:
    scope = Scope(ScopeKind.PARTITION, row.topic, row.partition)
    choices = [_choice(flow, row, scope, choice) for choice in halt_choices(flow, row)]
    choices.append(_restart(flow, scope))
    return Decision(
        flow=str(flow),
        kind=HALTED_PARTITION,
        subject=str(scope),
        since_ms=row.at_ms,
        case=row.case,
        sentence=line.trouble,
        range={"copied_to": row.upstream, **_offsets(row)},
        choices=tuple(choices),
        code=line.cause.code,
    )


def _choice(flow: Flow, row: PartitionProgress, scope: Scope, choice: HaltChoice) -> Choice:
    return Choice(
        verb=choice.verb,
        subject=str(scope),
        words=choice_words(flow, row, choice),
        arguments={"offset": choice.begin} if choice.begin >= 0 else {},
        line=choice.line,
    )


def _offsets(row: PartitionProgress) -> dict[str, int]:
    """Return the offsets that the reason of a halt names."""
    values = {name: row.cause.detail(name) for name in RANGE}
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _failed_services(flow: Flow, report: Report, restarts: list[Restarts]) -> Iterator[Decision]:
    for line in report.services:
        if line.cause.code == ReasonCode.RESTARTS_SPENT:
            scope = Scope(ScopeKind.CONNECTOR, line.connector)
            since_ms = _failed_since(restarts, "service", line.service)
            yield _failed(flow, FAILED_SERVICE, scope, since_ms, f"{line.service} {line.trouble}")


def _slots(flow: Flow, report: Report, restarts: list[Restarts]) -> Iterator[Decision]:
    for line in report.slots:
        if line.cause.code == ReasonCode.RESTARTS_SPENT:
            scope = Scope(ScopeKind.SLOT, number=line.slot)
            since_ms = _failed_since(restarts, str(scope), "data-plane")
            yield _failed(flow, FAILED_SLOT, scope, since_ms, f"slot {line.slot} {line.trouble}")


def _failed(flow: Flow, kind: str, scope: Scope, since_ms: int, sentence: str) -> Decision:
    return Decision(
        flow=str(flow),
        kind=kind,
        subject=str(scope),
        since_ms=since_ms,
        case="",
        sentence=sentence,
        range={},
        choices=(_restart(flow, scope),),
        code=ReasonCode.RESTARTS_SPENT.value,
    )


def _failed_since(restarts: list[Restarts], subject: str, owner: str) -> int:
    """Return when the last failure of a part was written down, or 0."""
    return max((row.at_ms for row in restarts if row.subject == subject and row.owner.startswith(owner)), default=0)


def _restart(flow: Flow, scope: Scope) -> Choice:
    return _choice_of_verb(flow, RESTART, scope)


def _choice_of_verb(flow: Flow, verb: str, scope: Scope) -> Choice:
    return Choice(verb=verb, subject=str(scope), words=command_words(flow, verb, scope))
