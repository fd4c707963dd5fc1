"""`lockstep doctor`: check the whole path of each flow, and print the findings."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import CLUSTERS_S, file_argument, output_option, shown_flows_option, timeout_option
from lockstep_cli.rendering.result import print_parts, print_result
from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.options import DoctorOptions
from lockstep_ops.exit_codes import TERMINATED, CannotUse

if TYPE_CHECKING:
    from lockstep_config import Configuration, FlowSettings
    from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport

HELP = """\
Check the whole path of each flow of FILE, from this machine to a record that arrives, and say what to do about each
thing that is wrong.

\b
  lockstep doctor mm2.properties
  lockstep doctor mm2.properties --flow 'A->B' --bandwidth
  lockstep doctor mm2.properties --category names --category tls --output json

\b
✓ ok   ! works, with a warning   ✗ failed   - not checked

The categories are machine, names, connection, tls, login, cluster, capabilities, rights, limits and flow. A category
ends for a cluster at the first failure without which the rest cannot be checked. Each line has a code:
`lockstep explain CODE` says what it means.

Run it where the services run. Nothing is written, but for --canary-topic and --bandwidth.
"""

EXIT_CODES = """\b
Exit codes:
  0  all is well; there may be warnings
  1  something failed
  2  FILE or the arguments cannot be used
  4  nothing failed, and something could not be checked
  143  after SIGTERM: what it created is removed"""


@click.command(
    cls=CliCommand, name="doctor", short_help="Check the whole path of each flow.", help=HELP, epilog=EXIT_CODES
)
@file_argument
@shown_flows_option
@click.option(
    "--category",
    "categories",
    multiple=True,
    type=click.Choice([category.value for category in Category]),
    help="Only this category; repeat for more.",
)
@click.option("--canary-topic", help="Also write a record to this topic of the source, and wait for its copy.")
@click.option(
    "--bandwidth",
    is_flag=True,
    help="Also measure for about 3 s how much a flow may copy. It writes up to 1 GB to a topic of its own on the"
    " target, which it removes.",
)
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def command(
    file: Path,
    flows: tuple[str, ...],
    categories: tuple[str, ...],
    canary_topic: str | None,
    bandwidth: bool,
    timeout: float,
    output: str,
) -> int:
    from lockstep_cli.flow_selection import select_flows
    from lockstep_config import load

    configuration = load(file, os.environ)
    flow_settings = select_flows(configuration, flows, all_enabled=not flows)
    selected = tuple(category for category in Category if category.value in categories) or tuple(Category)
    if Category.FLOW not in selected and (bandwidth or canary_topic is not None):
        raise CannotUse("--bandwidth and --canary-topic belong to the category flow: add --category flow")
    options = DoctorOptions(timeout, selected, canary_topic, bandwidth)
    return await _end_in_order(examine(configuration, flow_settings, options, output))


async def examine(
    configuration: "Configuration",
    flows: "tuple[FlowSettings, ...]",
    options: DoctorOptions,
    output: str,
    make_report: "Callable[[tuple[CategoryFindings, ...]], DoctorReport] | None" = None,
) -> int:
    """Examine the flows, and print each category when it is complete, or all as JSON or YAML.

    Returns:
        The exit code of the report. `make_report` makes it of the categories, if it is not doctor's.
    """
    from lockstep_cli.rendering.findings import category_lines, checks_verdict
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.doctor.examination import Examination
    from lockstep_ops.work_progress import WorkProgress

    def show(category: "CategoryFindings") -> None:
        display.hide()
        if output == "text":
            print_parts(category_lines(category, terminal=sys.stdout.isatty()))

    def begin(step: str, within_s: float) -> None:
        progress.text, progress.ends_at = step, time.monotonic() + within_s
        display.show()

    progress = WorkProgress()
    with ProgressDisplay(lambda: progress) as display:
        report = await Examination(configuration, flows, options, show, begin).run()
    if make_report is not None:
        report = make_report(report.categories)
    print_result(output, [checks_verdict(report)], report.as_json)
    return report.exit_code


async def _end_in_order(work: Coroutine[Any, Any, int]) -> int:
    """Run the work so that SIGTERM ends it as Ctrl-C does: what it created is removed."""
    task = asyncio.ensure_future(work)
    is_terminated = asyncio.Event()

    def terminate() -> None:
        is_terminated.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task
    except asyncio.CancelledError:
        if not is_terminated.is_set():
            raise
        return TERMINATED
