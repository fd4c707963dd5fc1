"""The command `lockstep probe`, whose checks are those of `lockstep doctor`.

It checks that a flow's clusters can be reached with the configuration, that Lockstep has the rights that it needs, and
that something arrives.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import echo_body, file_argument, output_option, shown_flows_option
from lockstep_ops.exit_codes import Exit

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_kafka.admin.admin import Admin

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
  3  a cluster cannot be reached, or does not answer in time"""

GRACE_S = 0.2
"""The seconds by which a check may outlast its time, so that its own message says what it waited for."""

Check = tuple[str, Awaitable[str]]
"""The name of a check, and the work that returns its result."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """The result of one check. `ok` is None if there was nothing to check; `detail` says why."""

    flow: str
    check: str
    ok: bool | None
    detail: str


def exit_code(findings: Sequence[ProbeFinding], is_away: bool) -> Exit:
    """Return the exit code of the findings. With `is_away` a cluster did not answer."""
    if is_away:
        return Exit.NO_ANSWER
    return Exit.TROUBLE if any(one.ok is False for one in findings) else Exit.FINE


@click.command(
    cls=CliCommand,
    name="probe",
    short_help="Reach both clusters, ask for rights, see a heartbeat.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@click.option("--canary-topic", help="Also write a record to this topic of the source, and wait for its copy.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for all of it: to reach the clusters, to ask them, and to wait for what is to arrive.",
)
@output_option
@asynchronous
async def command(file: Path, flows: tuple[str, ...], canary_topic: str | None, timeout: float, output: str) -> int:
    from lockstep_cli.flow_selection import choose_flows
    from lockstep_ops.doctor import cluster_checks  # noqa: F401 - the time begins when the imports are over

    def print_finding(finding: ProbeFinding) -> None:
        if output == "text":
            word = {True: "ok", False: "failed", None: "-"}[finding.ok]
            click.echo(f"{finding.flow}  {word:6}  {finding.check}: {finding.detail}")

    chosen = choose_flows(file, flows, every=not flows)
    ends_at = time.monotonic() + timeout
    probes = [FlowProbe(settings, canary_topic, timeout, ends_at, print_finding) for settings in chosen]
    await asyncio.gather(*(probe.run() for probe in probes))
    findings = [finding for probe in probes for finding in probe.findings]
    if output != "text":
        echo_body([asdict(one) for one in findings], output)
    return exit_code(findings, is_away=any(probe.is_away for probe in probes))


class FlowProbe:
    """The checks of one flow.

    All of them end at `ends_at` (of `time.monotonic`), `timeout` seconds after the first one began.
    """

    def __init__(
        self,
        settings: "FlowSettings",
        canary: str | None,
        timeout: float,
        ends_at: float,
        print_finding: Callable[[ProbeFinding], None],
    ) -> None:
        self._settings = settings
        self._canary = canary
        self._timeout = timeout
        self._ends_at = ends_at
        self._print_finding = print_finding
        self.findings: list[ProbeFinding] = []
        self.is_away = False
        """A cluster was not reached, or did not answer a question."""

    async def run(self) -> None:
        """Report each check, always in the same order.

        Both clusters are asked at once. If one of them cannot be reached, nothing more is asked.
        """
        from lockstep_ops.clusters import source_client, target_client
        from lockstep_ops.doctor import cluster_checks as checks

        source = source_client(self._settings, ends_at=self._ends_at)
        target = target_client(self._settings, ends_at=self._ends_at)
        await self._report(
            *((f"{client.alias} is reached", checks.reach_cluster(client, self._left())) for client in (source, target))
        )
        if not all(finding.ok for finding in self.findings):
            self.is_away = True
            return
        work = [("two clusters", checks.compare_clusters(source, target)), *self._rights(source, target)]
        heartbeat = f"heartbeat on {target.alias}"
        if self._settings.heartbeat.enabled:
            work.append((heartbeat, checks.await_heartbeat(self._settings, self._left())))
        else:
            await self._report(*work)
            work = []
            self._report_finding(ProbeFinding(str(self._settings.flow), heartbeat, None, "this flow has none"))
        if self._canary is not None:
            canary = checks.send_canary(self._settings, self._canary, self._left())
            work.append((f"canary through {self._canary}", canary))
        await self._report(*work)

    def _rights(self, source: "Admin", target: "Admin") -> Sequence[Check]:
        """Return the checks of the rights on both clusters. Each needs the topics of both."""
        from lockstep_config.credentials.permissions import target_grants
        from lockstep_config.flow.mirroring_rules import mirrored_topics
        from lockstep_ops.doctor import cluster_checks as checks

        async def read_topics() -> tuple[Collection[str], Collection[str]]:
            return await asyncio.gather(source.topic_names(), target.topic_names())

        topics = asyncio.ensure_future(read_topics())

        async def check_source() -> str:
            source_topics, target_topics = await asyncio.shield(topics)
            mirrored = mirrored_topics(self._settings, source_topics, target_topics)
            return await checks.check_source_rights(source, self._settings, [*mirrored], source_topics)

        async def check_target() -> str:
            source_topics, target_topics = await asyncio.shield(topics)
            mirrored = mirrored_topics(self._settings, source_topics, target_topics)
            grants = target_grants(self._settings)
            return await checks.check_rights(target, grants, [*mirrored.values()], target_topics)

        return (f"permissions on {source.alias}", check_source()), (f"permissions on {target.alias}", check_target())

    async def _report(self, *work: Check) -> None:
        """Carry out several checks at once, and report each in its turn."""
        for finding in [asyncio.ensure_future(self._find(*check)) for check in work]:
            self._report_finding(await finding)

    async def _find(self, check: str, work: Awaitable[str]) -> ProbeFinding:
        from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotAppended
        from lockstep_ops.doctor.cluster_checks import PathFault

        flow = str(self._settings.flow)
        try:
            async with asyncio.timeout(self._left() + GRACE_S):
                return ProbeFinding(flow, check, True, await work)
        except (ClusterError, PathFault) as exc:
            self.is_away |= isinstance(exc, ClusterUnreachable | NotAppended)
            return ProbeFinding(flow, check, False, str(exc))
        except TimeoutError:
            self.is_away = True
            return ProbeFinding(flow, check, False, f"no answer within {self._timeout:g} s")

    def _left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    def _report_finding(self, finding: ProbeFinding) -> None:
        self.findings.append(finding)
        self._print_finding(finding)
