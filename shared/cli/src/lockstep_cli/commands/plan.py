"""`lockstep plan FILE`: what would be created, altered, granted and copied, before anything runs."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import CLUSTERS_S, file_argument, output_option, shown_flows_option, timeout_option
from lockstep_cli.rendering.result import document, print_result
from lockstep_ops.exit_codes import CHANGES, CannotUse, Exit

if TYPE_CHECKING:
    from lockstep_ops.plan.planner import Planner
    from lockstep_ops.plan.rules.comparison import PlanComparison
    from lockstep_ops.plan.rules.flow_plan import Plan

HELP = """\
Show what each flow of FILE would create, alter, grant and copy, and what would go wrong. Nothing is changed, and
nothing has to run. Where Lockstep or MirrorMaker 2 copies already, its positions count.

\b
Examples:
  lockstep plan mm2.properties
  lockstep plan mm2.properties --flow 'A->B' --rate 200MB/s
  lockstep plan mm2.properties --against mirror.yaml
  lockstep plan mm2.properties --detailed-exitcode --output json | jq .summary
  lockstep plan mm2.properties --out plan.json && lockstep run mm2.properties --plan plan.json

The changes have the signs + (create), ~ (alter) and - (delete). A hazard has a code; docs/reference/plan-hazards.md has
a section for each.
"""

EXIT_CODES = """\b
Exit codes:
  0  the plan is shown. With --detailed-exitcode: there is nothing to change, and no copy begins
  1  a right is missing, or a hazard of severity error was found. With --detailed-exitcode also any other error
  2  FILE or the arguments cannot be used. With --detailed-exitcode: there are changes, or a copy begins
  3  a cluster cannot be reached
"""


def _rate(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    from lockstep_ops.plan.rules.rate import parse_rate

    if text is None:
        return None
    try:
        return parse_rate(text)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


@click.command(
    cls=CliCommand,
    name="plan",
    short_help="Show what would be created, altered and copied.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="OTHER",
    help="Compare with OTHER, a file of any form: which settings differ, and what of the plan.",
)
@click.option("--rate", callback=_rate, metavar="RATE", help="How fast each flow copies, such as 50MB/s.")
@click.option("--measure", is_flag=True, help="Read from the source for 3 seconds, and take that as the rate.")
@click.option("--detailed-exitcode", is_flag=True, help="0: nothing to do, 2: changes, 1: error.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="PLAN", help="Also write the plan as JSON to this file."
)
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def command(
    file: Path,
    flows: tuple[str, ...],
    against: Path | None,
    rate: int | None,
    measure: bool,
    detailed_exitcode: bool,
    out: Path | None,
    timeout: float,
    output: str,
) -> int:
    from lockstep_config import ConfigurationError
    from lockstep_kafka.common.errors import ClusterError
    from lockstep_ops.plan.planner import Planner

    try:
        if rate is not None and measure:
            raise CannotUse("--rate and --measure exclude each other")
        if against is not None and out is not None:
            raise CannotUse("--out writes a plan of FILE: use it without --against")
        planner = Planner(timeout, rate, measure)
        plan = await _make_plan(file, flows, planner)
        if against is not None:
            from lockstep_ops.plan.rules.comparison import compare

            return _show_comparison(compare(plan, await _make_plan(against, flows, planner)), output, detailed_exitcode)
        if out is not None:
            _write(out, plan)
    except (CannotUse, ConfigurationError, ClusterError) as exc:
        if not detailed_exitcode:
            raise
        click.echo(str(exc), err=True)
        return Exit.TROUBLE
    _show(plan, output)
    return _exit_code(plan, detailed_exitcode)


def _exit_code(plan: "Plan", detailed: bool) -> int:
    summary = plan.summary
    if summary.errors or summary.rights:
        return Exit.TROUBLE
    changes = summary.create or summary.alter or summary.delete or summary.begin
    return CHANGES if detailed and changes else Exit.FINE


async def _make_plan(file: Path, flows: tuple[str, ...], planner: "Planner") -> "Plan":
    """Make the plan of a file, and show how far that is.

    Raises:
        CannotUse: No flow is enabled, or a name is wrong.
        ConfigurationError: The file has mistakes.
        ClusterError: A cluster does not answer, or refuses.
    """
    from lockstep_cli.flow_selection import select_flows
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.plan.effective_settings import read_effective
    from lockstep_ops.services import served_flows
    from lockstep_ops.work_progress import WorkProgress

    effective = read_effective(file, os.environ)
    loaded = effective.configuration
    planned_flows = select_flows(loaded, flows) if flows else served_flows(loaded)
    if not planned_flows:
        raise CannotUse(f"{file}: no flow is enabled and heartbeats are off, so there is nothing to plan")
    progress = WorkProgress("reaching the clusters")
    with ProgressDisplay(lambda: progress):
        return await planner.plan(effective, planned_flows, progress)


def _show(plan: "Plan", output: str) -> None:
    from lockstep_cli.rendering.plan import plan_parts
    from lockstep_ops.plan.plan_document import as_body

    parts = plan_parts(plan, terminal=sys.stdout.isatty())
    print_result(output, parts, lambda: as_body(plan), wraps_lines=True)


def _show_comparison(comparison: "PlanComparison", output: str, detailed: bool) -> int:
    from lockstep_cli.rendering.plan import comparison_parts
    from lockstep_ops.plan.rules.comparison import as_body

    print_result(output, comparison_parts(comparison), lambda: as_body(comparison), wraps_lines=True)
    return CHANGES if detailed and not comparison.is_empty else Exit.FINE


def _write(out: Path, plan: "Plan") -> None:
    from lockstep_ops.plan.plan_document import as_body

    try:
        out.write_text(document(as_body(plan), "json"), encoding="utf-8")
    except OSError as exc:
        raise CannotUse(f"{out} cannot be written: {exc.strerror}") from exc
