"""The command `lockstep status`: the state of flows, by their state topics and both clusters."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import CLUSTERS_S, file_argument, output_option, shown_flows_option, timeout_option
from lockstep_cli.rendering.result import print_result
from lockstep_ops.exit_codes import Exit

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lockstep_config import FlowSettings
    from lockstep_ops.status.flow_status import UnknownStatus
    from lockstep_ops.status.report import Report

WATCH_INTERVAL_S = 2.0

HELP = """\
Show how each flow is, from what its services have written down on the target.

\b
Examples:
  lockstep status mm2.properties
  lockstep status mm2.properties --partitions --only trouble
  lockstep status mm2.properties --watch
  lockstep status mm2.properties --output json | jq '.flows[].lag_records'

Without sections it shows what all of them come to, and those that are short. "Behind" counts what a reader of the
target cannot read yet: both clusters are asked where their logs end. What cannot be known is shown as "?", in JSON as
null. "fine" means that every partition copies. Of replicas the group's members are counted.

With --watch, JSON is one line each time, YAML one document. The exit code is that of what was shown last.

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
    cls=CliCommand,
    name="status",
    short_help="Show flows, topics, partitions, slots, groups and lag.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@click.option("--services", is_flag=True, help="The services: what is wanted, replicas, who acts.")
@click.option("--topics", is_flag=True, help="Every topic.")
@click.option("--partitions", is_flag=True, help="Every partition.")
@click.option("--slots", is_flag=True, help="Every slot of the data plane.")
@click.option("--groups", is_flag=True, help="Every consumer group, and how ready it is to move.")
@click.option("--only", type=click.Choice(["trouble"]), help="Of everything only what is in trouble.")
@click.option("--watch", is_flag=True, help=f"Show it anew every {WATCH_INTERVAL_S:g} seconds, until Ctrl-C.")
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def command(
    file: Path,
    flows: tuple[str, ...],
    only: str | None,
    watch: bool,
    timeout: float,
    output: str,
    **section_flags: bool,
) -> int:
    from lockstep_cli.flow_selection import choose_flows

    sections = [name for name, is_asked in section_flags.items() if is_asked]
    flow_settings = choose_flows(file, flows, all_enabled=not flows)
    if not watch:
        answer = await _read_status(flow_settings, timeout)
        answer.show(sections, only_trouble=only == "trouble", output=output)
        return answer.exit_code
    return await _watch(flow_settings, sections, only == "trouble", timeout, output)


async def _watch(
    flow_settings: "Sequence[FlowSettings]", sections: Sequence[str], only_trouble: bool, timeout: float, output: str
) -> int:
    """Show the status again and again until SIGINT or SIGTERM, and return the exit code of the last one."""
    from lockstep_kafka.common.asyncio_util import run_unless_set

    code: int = Exit.FINE
    has_ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, has_ended.set)

    async def follow() -> None:
        nonlocal code
        while True:
            answer = await _read_status(flow_settings, timeout)
            if output == "text":
                if sys.stdout.isatty():
                    click.clear()
                click.echo(f"{datetime.now().astimezone():%H:%M:%S}  (Ctrl-C ends it)")
            answer.show(sections, only_trouble=only_trouble, output=output, in_stream=True)
            code = answer.exit_code
            await asyncio.sleep(WATCH_INTERVAL_S)

    await run_unless_set(has_ended, follow())
    return code


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answers of the clusters about flows: reports, and flows of which nothing is known, with the reason."""

    reports: "Sequence[Report]"
    unknown: "Sequence[UnknownStatus]"

    @property
    def exit_code(self) -> Exit:
        if self.unknown:
            return Exit.TROUBLE if any(status.fails for status in self.unknown) else Exit.NO_ANSWER
        return Exit.TROUBLE if any(report.troubles for report in self.reports) else Exit.FINE

    def show(self, sections: Sequence[str], *, only_trouble: bool, output: str, in_stream: bool = False) -> None:
        """Print the answer, which is perhaps one of a stream of documents."""
        parts = self._parts(sections, only_trouble=only_trouble)
        print_result(output, parts, lambda: self._body(sections, only_trouble=only_trouble), in_stream=in_stream)

    def _parts(self, sections: Sequence[str], *, only_trouble: bool) -> "Iterator[RenderableType]":
        from rich.text import Text

        from lockstep_cli.rendering.status import report_parts

        for number, report in enumerate(self.reports):
            if number:
                yield ""
            yield from report_parts(report, sections, only_trouble=only_trouble)
        for status in self.unknown:
            yield Text.assemble((str(status.flow), "bold"), "  ", (status.reason, "red"))

    def _body(self, sections: Sequence[str], *, only_trouble: bool) -> dict[str, Any]:
        from lockstep_ops.status.report_json import SECTIONS, report_as_json

        shown = sections or SECTIONS
        bodies = [report_as_json(report, shown, only_trouble=only_trouble) for report in self.reports]
        return {"flows": [*bodies, *(status.as_json() for status in self.unknown)]}


async def _read_status(flow_settings: "Sequence[FlowSettings]", timeout: float) -> _Answer:
    """Read the status of all flows at the same time.

    Raises:
        NewerVersion: A row is of a newer release.
    """
    from lockstep_ops.status.flow_status import UnknownStatus, read_status
    from lockstep_ops.status.report import Report

    answers = await asyncio.gather(*(read_status(settings, timeout) for settings in flow_settings))
    return _Answer(
        [answer for answer in answers if isinstance(answer, Report)],
        [answer for answer in answers if isinstance(answer, UnknownStatus)],
    )
