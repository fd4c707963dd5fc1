"""A switch as people read it: its plan, its progress, and its result."""

from collections.abc import Iterator

from rich.text import Text

from lockstep_cli.rendering.row_table import Column, RowTable
from lockstep_ops import marks
from lockstep_ops.formatting import count_text, in_time, utc_moment, visible
from lockstep_ops.status.report import Report
from lockstep_ops.switch.evidence import Evidence
from lockstep_ops.switch.switch_plan import SwitchPlan
from lockstep_ops.switch.switch_steps import DONE, FAILED, MEANINGS, RUNNING, UNDONE, Step, StepState, Verb, step_states
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Switch

MARKS = {
    DONE: (marks.FINE, "green"),
    FAILED: (marks.FAILED, "red"),
    RUNNING: (marks.UNDER_WAY, "yellow"),
    UNDONE: (marks.TAKEN_BACK, "yellow"),
}


def _step_line(one: StepState) -> Text:
    """Return one step that has begun or ended, as a line."""
    mark, colour = MARKS.get(one.state, (marks.NOT_DONE, "dim"))
    lasted = in_time(one.ended_ms - one.began_ms) if one.ended_ms and one.began_ms else ""
    return Text.assemble((mark, colour), f" {one.step:<9}", (f"{lasted:>8}  ", "dim"), visible(one.text))


def last_line(row: Switch, step: Step) -> Text:
    """Return the line of a step."""
    return next(_step_line(one) for one in step_states(row) if one.step is step)


def plan_shown(plan: SwitchPlan, flow: str) -> Iterator[Text | RowTable]:
    """Yield the steps that a switch would do, and what speaks against it."""
    row = plan.row
    drill = " (drill: without hooks, and the flow goes on afterwards)" if row.drill else ""
    yield Text.assemble((flow, "bold"), f"  {row.verb}{drill}")
    table = RowTable((Column("", "number"), Column("", "name"), Column("")))
    for number, one in enumerate(step_states(row), 1):
        table.add_row(f" {number}", str(one.step), MEANINGS[one.step])
    yield table
    for note in plan.notes:
        yield Text.assemble(("note: ", "yellow"), visible(note))


def report_shown(report: Report) -> Text:
    """Return how the flow is before the switch, as a line."""
    lag = report.lag_records
    groups = sum(line.readiness == "exact" for line in report.groups)
    behind = "? records" if lag is None else count_text(lag, "record")
    return Text(f"before: {behind} behind, {groups} of {count_text(len(report.groups), 'group')} exact")


def evidence_shown(evidence: Evidence) -> Iterator[Text]:
    """Yield the result of a switch in few lines."""
    row = evidence.row
    lasted = in_time(row.ended_ms - row.began_ms) if row.ended_ms else "not ended"
    colour = "green" if row.phase == "done" and not (row.lost or row.late or evidence.lost_unknown) else "yellow"
    groups = evidence.groups
    again = sum(one.read_again for one in groups)
    yield Text.assemble((f"{row.verb} {row.phase}", colour), f" in {lasted}")
    yield Text(f"  id            {row.id}, begun {utc_moment(row.began_ms)}")
    yield Text(f"  lost          {evidence.lost_words}")
    yield Text(f"  known of {evidence.flow.source:<5}{evidence.known_words}")
    yield Text(f"  late          {count_text(row.late, 'record')}" + (" came after the fence" if row.late else ""))
    yield Text(f"  groups        {count_text(len(groups), 'group')}, at most {again:,} records are read again")
    for one in groups:
        if one.state not in ("exact", "behind"):
            yield Text.assemble("  ", (visible(one.group), "bold"), f"  {one.state}: {visible(one.text)}")
    for sentence in evidence.lasting:
        yield Text(f"  not taken back: {sentence}")


def begun_words(row: Switch) -> str:
    """Return the id of a switch that is about to begin, and how to use it."""
    return f"id {row.id}: if this command ends, go on with --continue --id {row.id}"


def next_words(row: Switch, flow: Flow, file: str) -> str:
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
