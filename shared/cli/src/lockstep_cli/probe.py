"""`lockstep probe`: can a flow's clusters be reached with what the configuration says, may we do there what it needs,
and does something arrive? Its checks are `lockstep doctor`'s."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_runner import asynchronous
from lockstep_cli.exit_codes import Exit
from lockstep_cli.options import echo_body, file_argument, output_option, timeout_option

if TYPE_CHECKING:
    from lockstep_config import FlowSettings

HELP = """\
Ask both clusters of each flow of FILE, with the credentials in it, whether the flow can do its work. If the flow has
heartbeats, then wait until one arrives on the target.

\b
  lockstep probe mm2.properties
  lockstep probe mm2.properties --flow 'A->B' --canary-topic canary

Brokers are asked what we may do (topics that are not there yet cannot be asked about). Nothing is written, but for
--canary-topic: a record to that topic on the source, which is then waited for on the target.
"""

EXIT_CODES = """\b
Exit codes:
  0  all is well
  1  a permission is missing, two aliases are one cluster, or nothing arrived in time; each in a line of its own
  2  FILE or the arguments cannot be used
  3  a cluster cannot be reached"""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What came of one look. `ok` None: there was nothing to look at, and `detail` says why."""

    flow: str
    check: str
    ok: bool | None
    detail: str


def exit_code(findings: Sequence[ProbeFinding], is_away: bool) -> Exit:
    """Return what the findings come to; `is_away`: a cluster does not answer, so that little could be asked."""
    if is_away:
        return Exit.NO_ANSWER
    return Exit.TROUBLE if any(one.ok is False for one in findings) else Exit.FINE


@click.command(
    name="probe", short_help="Reach both clusters, ask for rights, see a heartbeat.", help=HELP, epilog=EXIT_CODES
)
@file_argument
@click.option("--flow", "flows", multiple=True, help="Only this flow, 'A->B' with the quotes; repeat for more.")
@click.option("--canary-topic", help="Also write a record to this topic of the source, and wait for its copy.")
@timeout_option(30.0, "to wait for a cluster, and for what is to arrive")
@output_option
@asynchronous
async def command(file: Path, flows: tuple[str, ...], canary_topic: str | None, timeout: float, output: str) -> int:
    from lockstep_cli.flow_selection import choose_flows

    findings: list[ProbeFinding] = []

    def report_finding(finding: ProbeFinding) -> None:
        findings.append(finding)
        if output == "text":
            word = {True: "ok", False: "failed", None: "-"}[finding.ok]
            click.echo(f"{finding.flow}  {word:6}  {finding.check}: {finding.detail}")

    reached = [
        await _probe_flow(settings, canary_topic, timeout, report_finding)
        for settings in choose_flows(file, flows, every=not flows)
    ]
    if output != "text":
        echo_body([asdict(one) for one in findings], output)
    return exit_code(findings, is_away=not all(reached))


async def _probe_flow(
    settings: "FlowSettings", canary: str | None, within: float, report_finding: Callable[[ProbeFinding], None]
) -> bool:
    """Report each check of a flow. Returns whether both clusters answer: else nothing more could be asked."""
    from lockstep_cli.clusters import source_client, target_client
    from lockstep_cli.doctor import cluster_checks as checks
    from lockstep_config.credentials.permissions import target_grants
    from lockstep_config.flow.mirroring_rules import mirrored_topics
    from lockstep_runtime.util.errors import ClusterError

    flow = str(settings.flow)

    async def make_finding(check: str, work: Awaitable[str]) -> ProbeFinding:
        try:
            return ProbeFinding(flow, check, True, await work)
        except (ClusterError, checks.PathFault) as exc:
            return ProbeFinding(flow, check, False, str(exc))
        except TimeoutError:
            return ProbeFinding(flow, check, False, f"no answer within {within:g} s")

    async def run_check(check: str, work: Awaitable[str]) -> None:
        report_finding(await make_finding(check, work))

    source, target = source_client(settings), target_client(settings)
    # Both are asked at once, and the source is reported first.
    reached = await asyncio.gather(
        *(
            make_finding(f"{client.alias} is reached", checks.reach_cluster(client, within))
            for client in (source, target)
        )
    )
    for finding in reached:
        report_finding(finding)
    if not all(finding.ok for finding in reached):
        return False
    await run_check("two clusters", checks.compare_clusters(source, target))
    there = await source.topic_names()
    copies_there = await target.topic_names()
    mirrored = mirrored_topics(settings, there, copies_there)
    on_source = checks.check_source_rights(source, settings, [*mirrored], there)
    await run_check(f"permissions on {source.alias}", on_source)
    on_target = checks.check_rights(target, target_grants(settings), [*mirrored.values()], copies_there)
    await run_check(f"permissions on {target.alias}", on_target)
    if settings.heartbeat.enabled:
        await run_check(f"heartbeat on {target.alias}", checks.await_heartbeat(settings, within))
    else:
        report_finding(ProbeFinding(flow, f"heartbeat on {target.alias}", None, "this flow has none"))
    if canary is not None:
        await run_check(f"canary through {canary}", checks.send_canary(settings, canary, within))
    return True
