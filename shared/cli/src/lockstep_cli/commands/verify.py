"""`lockstep verify`: compare copies with their source, and show what was found."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import FILE_VARIABLE, CommandGroup
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.completion import complete_topics
from lockstep_cli.options import (
    CLUSTERS_S,
    answer_timeout_option,
    file_argument,
    flow_option,
    output_of,
    output_option,
    timeout_option,
)
from lockstep_cli.rendering.result import print_document, print_parts, print_result
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_state.commands.command_vocabulary import VERIFY_DEPTHS

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_ops.verify.verification_report import FoundDifference, VerificationReport
    from lockstep_state.rows.state_rows import Row

POLL_S = 1.0
WAIT_S = 60.0
"""The seconds without a compared record after which the command ends with a message. The comparison itself goes on."""

EXIT_CODES = """\b
Exit codes:
  0  everything is verified and equal
  1  there are differences, or the request was refused
  2  FILE or the arguments cannot be used; nothing was asked
  3  the data plane or a cluster did not answer
  4  no difference was found, and something was not verified"""

SHOW_EXIT_CODES = """\b
Exit codes:
  0  both records are equal
  1  they differ, or one log has no such record
  2  FILE or the arguments cannot be used
  3  a cluster did not answer"""

RUN_HELP = """\
Compare every copy of a flow with its source now, and show what was found. It compares up to where the source ended
when it began. What comes later is no part of it. If a copy is behind that end, the command waits for it.

The data plane does it, in slots of its own beside those that copy: it must run. It goes on from what is verified
already, also after a kill. With lockstep.verify.enabled=true it compares all the time; then this adds nothing but the
report.

\b
Examples:
  lockstep verify run mm2.properties
  lockstep verify run mm2.properties --topic 'orders.*' --depth record --again
  lockstep verify run mm2.properties --rate 50000000 --output markdown > evidence.md
  lockstep verify report mm2.properties --output json

\b
DEPTH is how closely:
  count   offset runs and ends; nothing is read
  crc     the CRC of each batch, without Lockstep's part in it
  bytes   all of a batch but what Lockstep changes in it
  record  key, value, headers, timestamp and order of each record
Batches that are not equal as a whole are compared by record at every depth but count.
"""


class _DefaultCommand(CommandGroup):
    """A group whose command is `run` if none is named."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["run", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names_command = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        shows_help = not args and not os.environ.get(FILE_VARIABLE)
        return super().parse_args(ctx, args if names_command or shows_help else ["run", *args])


@click.group(name="verify", cls=_DefaultCommand, short_help="Compare copies with their source.")
def command() -> None:
    """Compare copies with their source, record for record. `lockstep verify FILE` is short for `lockstep verify run
    FILE`.

    \b
      lockstep verify mm2.properties            compare now, and show what was found
      lockstep verify report mm2.properties     show what is known, and compare nothing
      lockstep verify show mm2.properties orders-3 120   both records of a difference
    """


report_output = output_of("markdown")
topic_option = click.option(
    "--topic",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    help="Source topics, as a pattern; repeat for more. Default: all.",
)


@command.command(short_help="Compare now, and show what was found.", help=RUN_HELP, epilog=EXIT_CODES)
@file_argument
@flow_option
@topic_option
@click.option("--depth", type=click.Choice(VERIFY_DEPTHS), help="How closely. Default: lockstep.verify.depth.")
@click.option(
    "--rate", type=click.IntRange(min=0), default=0, help="Bytes a second each slot may read. Default: no limit."
)
@click.option("--again", is_flag=True, help="From the beginning, also what is verified already.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=WAIT_S,
    show_default=True,
    help="Seconds to wait while nothing is compared, as for a copy that is behind.",
)
@click.option("--follow", is_flag=True, help="Do not end: show what is found as copies grow. Ctrl-C ends it.")
@answer_timeout_option
@report_output
@asynchronous
async def run(
    file: Path,
    flow: str | None,
    topics: tuple[str, ...],
    depth: str | None,
    rate: int,
    again: bool,
    wait: float,
    follow: bool,
    timeout: float,
    output: str,
) -> int:
    from lockstep_cli.flow_selection import choose_one_flow

    settings = choose_one_flow(file, flow)
    verify = settings.data_plane.verify
    if follow and not verify.enabled:
        raise CannotUse(
            f"{file}: --follow shows what lockstep.verify.enabled=true compares: set it for {settings.flow}"
        )
    if follow:
        report = await _follow(settings, topics, output)
    else:
        arguments = {"depth": depth or verify.depth, "topics": list(topics), "max_bytes_per_s": rate, "again": again}
        request = await _request(settings, arguments, timeout)
        if isinstance(request, Exit):
            return request
        report = await _wait(settings, *request, wait)
    _show(report, output)
    return report.exit_code


@command.command(short_help="Show what is known, and compare nothing.", epilog=EXIT_CODES)
@file_argument
@flow_option
@topic_option
@timeout_option(CLUSTERS_S)
@report_output
@asynchronous
async def report(file: Path, flow: str | None, topics: tuple[str, ...], timeout: float, output: str) -> int:
    """Show what verification has found in a flow until now. Nothing is compared, and nothing has to run.

    \b
      lockstep verify report mm2.properties
    """
    from lockstep_cli.flow_selection import choose_one_flow

    settings = choose_one_flow(file, flow)
    rows = await _rows(settings, timeout)
    verification = _report(settings, rows, _matching(rows, topics))
    _show(verification, output)
    return verification.exit_code


@command.command(short_help="Show both records of a difference.", epilog=SHOW_EXIT_CODES)
@file_argument
@click.argument("partition")
@click.argument("offset", type=int)
@flow_option
@click.option("--target", "is_target", is_flag=True, help="OFFSET is the target's: for an extra or a foreign record.")
@click.option("--values", is_flag=True, help="Keys, values and headers too. Without it only their sizes and digests.")
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def show(
    file: Path,
    partition: str,
    offset: int,
    flow: str | None,
    is_target: bool,
    values: bool,
    timeout: float,
    output: str,
) -> int:
    """Show the record of the source at OFFSET of PARTITION beside the one that the target has in its place. PARTITION
    is TOPIC-NUMBER, as on the source. What verification found says where that is, else the offset runs.

    \b
      lockstep verify show mm2.properties orders-3 120
      lockstep verify show mm2.properties orders-3 120 --values
      lockstep verify show mm2.properties orders-3 118 --target
    """
    from lockstep_cli.flow_selection import choose_one_flow
    from lockstep_ops.verify.record_pair import pair_lines, read_pair

    settings = choose_one_flow(file, flow)
    topic, dash, number = partition.rpartition("-")
    if not (dash and number.isdigit()):
        raise CannotUse(f"{partition!r} names no partition: write TOPIC-NUMBER")
    pair = await read_pair(settings, await _rows(settings, timeout), (topic, int(number)), offset, is_target=is_target)
    print_result(output, pair_lines(pair, values=values), lambda: pair.as_json(values=values))
    return Exit.FINE if pair.is_equal else Exit.TROUBLE


async def _request(
    settings: "FlowSettings", arguments: Mapping[str, Any], timeout: float
) -> "tuple[str, Sequence[str]] | Exit":
    """Ask the data plane, and return the request's id and the topics that it is about, or the exit code."""
    from lockstep_cli.rendering.progress_display import show_outstanding
    from lockstep_ops.command_client import ask
    from lockstep_ops.command_request import CommandReply, command_request, exit_code
    from lockstep_state.commands.command_vocabulary import FLOW, VERIFY

    reply = CommandReply(command_request(settings, VERIFY, FLOW, arguments))
    with show_outstanding([reply]):
        await ask(settings, reply, timeout)
    if (code := exit_code([reply])) is not Exit.FINE:
        print_parts(reply.as_lines(), stderr=True)
        return code
    (answer,) = reply.heard.values()
    return reply.request.command.id, tuple(answer.detail.get("topics", ()))


async def _wait(settings: "FlowSettings", request: str, topics: Sequence[str], wait_s: float) -> "VerificationReport":
    """Return the report once the request is carried out, or nothing has been compared for `wait_s`."""
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.verify.verification_report import compared_share
    from lockstep_ops.work_progress import WorkProgress
    from lockstep_state.rows.state_rows import VERIFICATION_KEY, Verification, VerifiedPartition

    moved_at, compared = time.monotonic(), -1
    progress = WorkProgress("verifying")
    with ProgressDisplay(lambda: progress):
        while True:
            rows = await _rows(settings)
            report = _report(settings, rows, topics, request)
            share = compared_share((row for row in rows.values() if isinstance(row, VerifiedPartition)), request)
            progress.done, progress.total = share.compared, share.wanted
            row = rows.get(VERIFICATION_KEY)
            if isinstance(row, Verification) and (row.id != request or row.phase == "ended"):
                if row.id != request:
                    click.echo(f"{settings.flow}: a later request has replaced this one", err=True)
                return report
            if share.compared != compared:
                moved_at, compared = time.monotonic(), share.compared
            elif time.monotonic() - moved_at > wait_s:
                click.echo(
                    f"{settings.flow}: nothing was compared for {wait_s:g} s. The request stays; "
                    "lockstep verify report shows what comes of it",
                    err=True,
                )
                return report
            await asyncio.sleep(POLL_S)


async def _follow(settings: "FlowSettings", topics: Sequence[str], output: str) -> "VerificationReport":
    """Follow a verification until Ctrl-C, and return its report. As text each difference is shown when it is found."""
    from lockstep_cli.rendering.findings import difference_finding

    shown: set[FoundDifference] = set()
    report = _report(settings, {}, topics)
    try:
        while True:
            rows = await _rows(settings)
            report = _report(settings, rows, _matching(rows, topics))
            for difference in report.differences:
                if difference not in shown and output == "text":
                    click.echo(str(difference_finding(difference).line))
                shown.add(difference)
            await asyncio.sleep(POLL_S)
    except asyncio.CancelledError:
        return report


async def _rows(settings: "FlowSettings", silent_s: float | None = None) -> "Mapping[str, Row]":
    from lockstep_ops.status.flow_report import read_rows

    rows, _ = await read_rows(settings, silent_s)
    return rows


def _report(
    settings: "FlowSettings", rows: "Mapping[str, Row]", topics: Sequence[str], request: str = ""
) -> "VerificationReport":
    from lockstep_ops.verify.verification_report import build_verification

    return build_verification(settings.flow, rows, topics, request)


def _matching(rows: "Mapping[str, Row]", patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the mirrored topics that the patterns name.

    Raises:
        CannotUse: There is none, or a pattern is wrong.
    """
    import re

    from lockstep_state.rows.state_rows import MirroredTopic

    if not patterns:
        return ()
    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as exc:
        raise CannotUse(f"--topic {patterns!r} is no pattern: {exc}") from exc
    names = sorted(row.source_topic for row in rows.values() if isinstance(row, MirroredTopic))
    matching = tuple(name for name in names if any(pattern.fullmatch(name) for pattern in compiled))
    if not matching:
        raise CannotUse(f"no mirrored topic is called {' or '.join(patterns)}")
    return matching


def _show(report: "VerificationReport", output: str) -> None:
    from lockstep_cli.rendering.verification import as_markdown, verification_parts

    if output == "text":
        print_parts(verification_parts(report))
    elif output == "markdown":
        click.echo(as_markdown(report), nl=False)
    else:
        print_document(report.as_json(), output)
