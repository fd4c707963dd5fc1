"""The ends of copies for `lockstep stop --before TIME`, from the rows of a flow. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.text.values import BadValue, duration, moment
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.formatting import count_text, utc_moment
from lockstep_rules.offsets.copy_end import CopyEnd, EndProblem, NoCopyEnd, find_copy_end
from lockstep_rules.offsets.lag import copied_upstream
from lockstep_runtime.state.desired_state import MOST_ENDS, CopyEnds, DesiredPhase, DesiredStateView
from lockstep_state.commands.command_vocabulary import Connector, Scope, ScopeKind
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import (
    Assignment,
    MirroredTopic,
    Row,
    SeenEnds,
    SourceEnds,
    progress_by_partition,
)

AGO = " ago"


def parse_before(text: str, now_ms: int) -> int:
    """Return a time of the past as Unix milliseconds: `10m ago`, a date and time with its zone, or milliseconds.

    Raises:
        CannotUse: The text is no such time.
    """
    written = text.strip()
    try:
        if written.endswith(AGO):
            before_ms = now_ms - round(duration(written.removesuffix(AGO)).total_seconds() * 1000)
        else:
            before_ms = moment(written)
    except BadValue as exc:
        raise CannotUse(f"--before {exc}, or 10m ago") from exc
    if before_ms > now_ms:
        raise CannotUse(f"--before is {utc_moment(before_ms)}, which is in the future")
    return before_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPlan:
    """Where the copies of a scope end that are to have what was first seen before a time."""

    before_ms: int
    ends: Mapping[TopicPartition, CopyEnd] = field(default_factory=dict)
    problems: Mapping[TopicPartition, NoCopyEnd] = field(default_factory=dict)
    """The partitions that have no such end, and why."""

    def require_ends(self) -> CopyEnds:
        """Return the ends for the command.

        Raises:
            CannotUse: A partition has no end, or there is none.
        """
        if self.problems:
            (topic, number), problem = next(iter(self.problems.items()))
            more = len(self.problems) - 1
            others = f". So it is with {count_text(more, 'other partition')}" if more else ""
            raise CannotUse(f"{topic}-{number}: {_sentence(problem, self.before_ms)}{others}. Nothing was asked")
        if not self.ends:
            raise CannotUse("no mirrored topic of the flow is meant: lockstep status shows them. Nothing was asked")
        if len(self.ends) > MOST_ENDS:
            raise CannotUse(f"it would end {len(self.ends):,} partitions, and takes at most {MOST_ENDS:,}")
        ends = tuple((*tp, end.offset) for tp, end in sorted(self.ends.items()))
        return CopyEnds(self.before_ms, ends)

    def as_lines(self) -> Iterator[str]:
        """Yield a line for each partition."""
        for (topic, number), end in sorted(self.ends.items()):
            doubt = count_text(end.doubtful, "offset")
            more = f"; {doubt} behind it were first seen later, and may have been there before" if end.doubtful else ""
            yield f"{topic}-{number}  ends at {end.offset:,}, as seen at {utc_moment(end.seen_ms)}{more}"

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "before_ms": self.before_ms,
            "ends": [
                {"topic": topic, "partition": number, "offset": end.offset}
                | {"seen_ms": end.seen_ms, "doubtful": end.doubtful}
                for (topic, number), end in sorted(self.ends.items())
            ],
        }


def end_scope(scope: Scope) -> Scope:
    """Return the scope whose copies end: the source connector for a flow.

    Raises:
        CannotUse: The scope has no copies of its own, or not always the same ones.
    """
    if scope.kind is ScopeKind.FLOW:
        return Scope.for_connector(Connector.SOURCE)
    if scope.kind is ScopeKind.TOPIC or scope == Scope.for_connector(Connector.SOURCE):
        return scope
    raise CannotUse(f"--before is for flow, connector:{Connector.SOURCE.value} or topic:T, and not for {scope}")


def plan_ends(settings: FlowSettings, rows: Mapping[str, Row], scope: Scope, before_ms: int) -> EndPlan:
    """Return where the copies of a scope end.

    Heartbeats have no delay. They end where they are.

    Args:
        settings: The flow.
        rows: The fold of its state topic, by key.
        scope: As `end_scope` returns it.
        before_ms: The time, in Unix milliseconds.
    """
    plane, desired = settings.data_plane, DesiredStateView(rows, settings.states)
    progress = progress_by_partition(rows.values())
    slots = {tp: row.slot for row in rows.values() if isinstance(row, Assignment) for tp in row.partitions}
    source_ends = next((row for row in rows.values() if isinstance(row, SourceEnds)), SourceEnds())
    ends: dict[TopicPartition, CopyEnd] = {}
    problems: dict[TopicPartition, NoCopyEnd] = {}
    for topic in rows.values():
        if not isinstance(topic, MirroredTopic) or topic.phase != "mirrored":
            continue
        name = topic.source_topic
        if (scope.kind is ScopeKind.TOPIC and name != scope.name) or settings.policy.is_heartbeats_topic(name):
            continue
        for number in range(topic.copied(by_key=plane.by_key)):
            tp = name, number
            if not settings.delay_ms(name):
                problems[tp] = NoCopyEnd(EndProblem.NOT_DELAYED)
                continue
            seen = rows.get(SeenEnds.key_of(name, number))
            upstream = copied_upstream(progress.get(tp), topic)
            end = find_copy_end(
                seen if isinstance(seen, SeenEnds) else None,
                before_ms=before_ms,
                checked_ms=source_ends.known_ms([tp])[tp],
                next_offset=0 if upstream is None else upstream + 1,
                is_moving=desired.partition(name, number, slots.get(tp)) is DesiredPhase.RUNNING,
                needs_whole=plane.reads_committed,
            )
            if isinstance(end, CopyEnd):
                ends[tp] = end
            else:
                problems[tp] = end
    return EndPlan(before_ms=before_ms, ends=ends, problems=problems)


def _sentence(problem: NoCopyEnd, before_ms: int) -> str:
    """Return why a partition has no end, without a full stop."""
    time = utc_moment(before_ms)
    match problem.problem:
        case EndProblem.NOT_DELAYED:
            return "it is copied without a delay, so nobody notes when its records come (lockstep.delay)"
        case EndProblem.NOT_SEEN:
            return "when its records came is not known yet: no check of the source has been written down"
        case EndProblem.NOT_CHECKED:
            checked = f"was last checked at {utc_moment(problem.number)}" if problem.number else "was not checked yet"
            return f"the source {checked}, before {time}: try again in some seconds, and see that the data plane runs"
        case EndProblem.TOO_OLD:
            return f"the oldest check that is remembered is of {utc_moment(problem.number)}, after {time}"
        case EndProblem.OPEN_TRANSACTION:
            return f"a transaction was open at each check before {time}, and would be cut in two"
    offsets = count_text(problem.number, "offset")
    return f"the copy is, or may be by now, {offsets} beyond its end at {time}"
