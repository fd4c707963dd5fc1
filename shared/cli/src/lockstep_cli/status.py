"""`lockstep status`: what a flow's state topic says, read once."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_runner import asynchronous
from lockstep_cli.exit_codes import Exit
from lockstep_cli.options import echo_body, file_argument, output_option, timeout_option

if TYPE_CHECKING:
    from lockstep_cli.partition_status import LogOffsets
    from lockstep_cli.report import Report
    from lockstep_cli.state_topic_rows import FollowedRows
    from lockstep_config import FlowSettings
    from lockstep_protocol.rows.state_rows import Row
    from lockstep_protocol.switch_reason import Blocker
    from lockstep_runtime.kafka.admin import Admin

LOOKS_AGAIN_AFTER_S = 2.5
"""A slot writes progress each second. What it has not moved past by then, it does not move past."""

MOST_GROUPS = 50
"""Groups on the target whose members are asked for: each is a request."""

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
    from lockstep_cli.readiness import blockers_as_json, blockers_without_rows
    from lockstep_cli.report_tables import as_json, as_tables
    from lockstep_cli.without_rows import look_without_rows
    from lockstep_runtime.util.errors import ClusterError, TopicMissing

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

    from lockstep_cli.console import console

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


async def read_report(
    settings: "FlowSettings",
    timeout: float,
    silent_s: float | None = None,
    followed: "FollowedRows | None" = None,
) -> "Report":
    """Return how a flow is now.

    Args:
        settings: Of the flow.
        timeout: Seconds within which a cluster has to answer.
        silent_s: As in `read_rows`.
        followed: The flow's rows, where the caller follows them. They are not read again.

    Raises:
        ClusterError: The target cannot be reached, is not permitted, or the flow has never run (TopicMissing).
        NewerVersion: A newer release wrote a row.
    """
    from lockstep_cli.clusters import source_client, target_client
    from lockstep_cli.log_offsets import read_logs
    from lockstep_cli.partition_status import is_conclusive
    from lockstep_cli.report_builder import build_report
    from lockstep_cli.services import SERVICES
    from lockstep_cli.trouble_reports import read_reports, reported_troubles, unreadable_topics
    from lockstep_runtime.kafka.replicas import describe_replicas
    from lockstep_runtime.util.clock import now_ms

    target = target_client(settings)
    await target.probe(timedelta(seconds=timeout))
    services = [name for name, needed in SERVICES.items() if needed(settings)]

    async def read_dated() -> tuple["Mapping[str, Row]", list[str], int]:
        """Return rows with the time at which they were read. Their age does not grow while the clusters are asked."""
        if followed is None:
            return *await read_rows(settings, silent_s), now_ms()
        await followed.catch_up_now()
        return dict(followed.rows), list(followed.unreadable), now_ms()

    async def wait_conclusive(logs: "LogOffsets") -> None:
        """Return when a slot that works has written its rows anew."""
        if followed is None:
            await asyncio.sleep(LOOKS_AGAIN_AFTER_S)
            return
        newer = followed
        await newer.wait_until(lambda: is_conclusive(newer.rows.values(), now_ms(), logs), LOOKS_AGAIN_AFTER_S)

    (rows, unreadable, read_ms), replicas, (reports, unread) = await asyncio.gather(
        read_dated(), describe_replicas(target, settings, services), read_reports(settings, timeout)
    )
    logs = None
    if "data-plane" in services:
        source = source_client(settings)
        logs = await read_logs(settings, source, target, rows, timeout)
        if not is_conclusive(rows.values(), read_ms, logs):
            await wait_conclusive(logs)
            rows, unreadable, read_ms = await read_dated()
            logs = await read_logs(settings, source, target, rows, timeout, logs)
    report = build_report(
        settings.flow,
        rows,
        at_ms=read_ms,
        services=services,
        replicas=replicas.counts,
        replicas_unknown=replicas.unknown,
        unreadable=unreadable,
        states=settings.states,
        logs=logs,
        by_key=settings.data_plane.by_key,
        limits=settings.switch_limits,
        members=await _read_members(target, rows),
    )
    present = [report for report in reports if report.service in services]
    troubles = (*report.troubles, *reported_troubles(present, report.troubles), *unread)
    return replace(report, troubles=troubles, unreadable=unreadable_topics(present))


async def _read_members(target: "Admin", rows: "Mapping[str, Row]") -> dict[str, tuple[str, ...]]:
    """Client ids and hosts of the groups that are in use on the target; nothing of those that we may not describe."""
    from lockstep_protocol.rows.state_rows import GroupStatus

    in_use = sorted(row.group for row in rows.values() if isinstance(row, GroupStatus) and row.held == "in-use")
    described = await target.describe_groups(in_use[:MOST_GROUPS])
    return {name: group.member_names for name, group in described.done.items() if group.members}


async def read_rows(settings: "FlowSettings", silent_s: float | None = None) -> tuple["Mapping[str, Row]", list[str]]:
    """The rows of the flow's state topic that count now, by key, and sentences about records that are none. Raises
    ClusterError and NewerVersion. A target that does not answer is not waited for, and a topic of which nothing comes
    only for `silent_s` seconds."""
    from lockstep_cli.state_topic_rows import SILENT_S, StateTopicRows

    rows = StateTopicRows(settings, "status", silent_s=SILENT_S if silent_s is None else silent_s)
    await rows.replay()
    return rows.by_key, list(rows.unreadable.values())
