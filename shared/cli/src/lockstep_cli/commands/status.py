"""`lockstep status`: what a flow's state topic says, read once."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import echo_body, file_argument, output_option, timeout_option
from lockstep_ops.exit_codes import Exit

if TYPE_CHECKING:
    from lockstep_ops.status.report import Report
    from lockstep_state.reasons.switch_reason import Blocker

HELP = """\
Show how each flow is, from what its services have written down on the target.

\b
Example:
  lockstep status mm2.properties
  lockstep status mm2.properties --partitions --only trouble
  lockstep status mm2.properties --output json | jq '.flows[].lag_records'

Without sections it shows what all of them come to, and those that are short. "Behind" counts what a reader of the
target cannot read yet: both clusters are asked where their logs end. What cannot be known is shown as "?", in JSON as
null. "fine" means that every partition copies. Of replicas the group's members are counted.

"Ready to switch" says whether clients can move to the target now, and if not, the first reason. All reasons are in
JSON, as switch_blockers.
"""

EXIT_CODES = """\b
Exit codes:
  0    nothing is in trouble (what is paused, stopped or not begun is not; "fine" is said of neither)
  1    something is: a partition halted, a topic, group, ACLs or heartbeats failing, a service that failed or that
       nobody runs, a slot that says nothing or fails, a source that cannot be reached, a state topic that the target
       refuses to create, anything that a replica reports
  2    FILE or the arguments cannot be used
  3    the target cannot be reached, or a flow has never run"""


@click.command(
    name="status", short_help="Show flows, topics, partitions, slots, groups and lag.", help=HELP, epilog=EXIT_CODES
)
@file_argument
@click.option("--flow", "flows", multiple=True, help="Only this flow, 'A->B' with the quotes; repeat for more.")
@click.option("--services", is_flag=True, help="The services: what is wanted, replicas, who acts.")
@click.option("--topics", is_flag=True, help="Every topic.")
@click.option("--partitions", is_flag=True, help="Every partition.")
@click.option("--slots", is_flag=True, help="Every slot of the data plane.")
@click.option("--groups", is_flag=True, help="Every consumer group, and how ready it is to move.")
@click.option("--only", type=click.Choice(["trouble"]), help="Of everything only what is in trouble.")
@timeout_option(10.0, "to reach a cluster")
@output_option
@asynchronous
async def command(
    file: Path, flows: tuple[str, ...], only: str | None, timeout: float, output: str, **asked: bool
) -> int:
    from lockstep_cli.flow_selection import choose_flows
    from lockstep_cli.rendering.report_tables import as_json, as_tables
    from lockstep_kafka.common.errors import ClusterError, TopicMissing
    from lockstep_ops.status.flow_report import read_report
    from lockstep_ops.status.readiness import blockers_as_json, blockers_without_rows
    from lockstep_ops.status.without_rows import look_without_rows

    sections, only_trouble = [name for name, wanted in asked.items() if wanted], only == "trouble"
    meant = choose_flows(file, flows, every=not flows)
    answers = await asyncio.gather(
        *(read_report(settings, timeout, timeout) for settings in meant), return_exceptions=True
    )
    reports: list[Report] = []
    unknown: dict[str, tuple[str, tuple[Blocker, ...]]] = {}
    fails = False
    for settings, answer in zip(meant, answers, strict=True):
        if isinstance(answer, ClusterError):
            reason, never_run = str(answer), False
            if isinstance(answer, TopicMissing):
                without = await look_without_rows(settings, timeout)
                never_run, fails = without.never_run, fails or bool(without.causes)
                reason = f"{answer}: {without}"
            unknown[str(settings.flow)] = (reason, blockers_without_rows(settings.flow, reason, never_run=never_run))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            reports.append(answer)
    from rich.text import Text

    from lockstep_cli.rendering.console import console

    if output != "text":
        bodies: list[Any] = [as_json(report, sections, only_trouble=only_trouble) for report in reports]
        bodies += [
            {"flow": flow, "fine": False, "unknown": why, "switch_ready": False}
            | {"switch_blockers": blockers_as_json(blockers)}
            for flow, (why, blockers) in unknown.items()
        ]
        echo_body({"flows": bodies}, output)
    else:
        screen = console()
        for number, report in enumerate(reports):
            if number:
                screen.print()
            for part in as_tables(report, sections, only_trouble=only_trouble):
                screen.print(part)
        for flow, (reason, _) in unknown.items():
            screen.print(Text.assemble((flow, "bold"), "  ", (reason, "red")), soft_wrap=True)
    if unknown:
        return Exit.TROUBLE if fails else Exit.NO_ANSWER
    return Exit.TROUBLE if any(report.troubles for report in reports) else Exit.FINE
