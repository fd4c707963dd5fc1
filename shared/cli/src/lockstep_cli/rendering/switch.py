"""A switch: its plan, its steps and its result as lines and tables. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.table import Column, RowTable
from lockstep_ops import marks
from lockstep_ops.formatting import count_text, in_time, utc_moment, visible
from lockstep_ops.status.report import Report
from lockstep_ops.switch.evidence import Evidence
from lockstep_ops.switch.switch_plan import SwitchPlan
from lockstep_ops.switch.switch_steps import (
    DONE,
    FAILED,
    LEFT,
    MEANINGS,
    RUNNING,
    UNDONE,
    Step,
    StepState,
    Verb,
    step_states,
)
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Switch

MARKS = {
    DONE: (marks.FINE, "green"),
    FAILED: (marks.FAILED, "red"),
    RUNNING: (marks.UNDER_WAY, "yellow"),
    UNDONE: (marks.TAKEN_BACK, "yellow"),
    LEFT: (marks.FAILED, "yellow"),
}


STEPS: Sequence[Column[tuple[int, StepState]]] = (
    Column("", lambda numbered: f" {numbered[0]}", "number"),
    Column("", lambda numbered: numbered[1].step, "name"),
    Column("", lambda numbered: MEANINGS[numbered[1].step]),
)


def step_line(row: Switch, step: Step) -> Text:
    """Return a step of a switch as a line: its mark, its time and its result."""
    state = next(state for state in step_states(row) if state.step is step)
    mark, colour = MARKS.get(state.state, (marks.NOT_DONE, "dim"))
    lasted = in_time(state.ended_ms - state.began_ms) if state.ended_ms and state.began_ms else ""
    return Text.assemble((mark, colour), f" {step:<9}", (f"{lasted:>8}  ", "dim"), visible(state.text))


def plan_parts(plan: SwitchPlan, flow: str) -> Iterator[RenderableType]:
    """Yield the steps that a switch would do, and the notes about it. Refusals are not among them."""
    row = plan.row
    drill = " (drill: without hooks, and the flow goes on afterwards)" if row.drill else ""
    yield Text.assemble((flow, "bold"), f"  {row.verb}{drill}")
    yield RowTable(STEPS, enumerate(step_states(row), 1))
    for note in plan.notes:
        yield Text.assemble(("note: ", "yellow"), visible(note))


def report_line(report: Report) -> Text:
    """Return how the flow is before the switch, as a line."""
    lag = report.lag_records
    groups = sum(line.readiness == "exact" for line in report.groups)
    behind = "? records" if lag is None else count_text(lag, "record")
    return Text(f"before: {behind} behind, {groups} of {count_text(len(report.groups), 'group')} exact")


def evidence_lines(evidence: Evidence) -> Iterator[Text]:
    """Yield the result of a switch in few lines."""
    row = evidence.row
    lasted = in_time(row.ended_ms - row.began_ms) if row.ended_ms else "not ended"
    colour = (
        "green" if row.phase == "done" and not (row.lost or evidence.late != 0 or evidence.lost_unknown) else "yellow"
    )
    groups = evidence.groups
    again = sum(group.read_again for group in groups)
    yield Text.assemble((f"{row.verb} {row.phase}", colour), f" in {lasted}")
    yield fact_line("id", f"{row.id}, begun {utc_moment(row.began_ms)}")
    yield fact_line("lost", evidence.lost_words)
    yield fact_line(f"known of {evidence.flow.source}", evidence.known_words)
    yield fact_line("late", evidence.late_words)
    yield fact_line("groups", f"{count_text(len(groups), 'group')}, at most {again:,} records are read again")
    for group in groups:
        if group.state not in ("exact", "behind"):
            yield Text.assemble("  ", (visible(group.group), "bold"), f"  {group.state}: {visible(group.text)}")
    for sentence in evidence.lasting:
        yield Text(f"  not taken back: {sentence}")


def fact_line(name: str, text: str) -> Text:
    """Return a line of the result. Such lines come one by one, so the width of their names is fixed."""
    return Text(f"  {name:<13} {text}")


def id_hint(row: Switch) -> str:
    """Return the id of a switch that is about to begin, and how to use it."""
    return f"id {row.id}: if this command ends, go on with --continue --id {row.id}"


def next_steps(row: Switch, flow: Flow, file: str) -> str:
    """Return what an operator does next, as sentences. `flow` is the one by which the applications moved."""
    back = f"lockstep failback {file} --flow '{flow}'"
    if row.verb == Verb.FAILBACK:
        back = f"lockstep switchover {file} --flow '{flow.target}->{flow.source}'"
    stopped = "" if row.topics else f" {flow} is stopped, and starts again then."
    if row.phase == "aborted":
        return "Nothing was moved. Begin again when the reason is mended."
    if row.drill:
        return f"The drill is over, and {flow} runs as before."
    if not any(step == Step.REDIRECT for step, *_ in row.steps):
        return f"Start the consumers and producers on {flow.target} now. To come back: {back}.{stopped}"
    return f"The clients work on {flow.target}. To come back: {back}.{stopped}"
