"""`lockstep probe`: can a flow's clusters be reached with what the configuration says, may we do there what it needs,
and does something arrive?"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.exit_codes import Exit, asynchronous
from lockstep_cli.options import echo_json, file_argument, output_option, timeout_option

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_config.credentials.permissions import Grant
    from lockstep_runtime.kafka.admin import Admin
    from lockstep_runtime.kafka.topic_reader import Record

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
  1  a cluster cannot be reached, a permission is missing, or nothing arrived in time; each in a line of its own
  2  FILE or the arguments cannot be used"""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What came of one look. `ok` None: there was nothing to look at, and `detail` says why."""

    flow: str
    check: str
    ok: bool | None
    detail: str


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

    for settings in choose_flows(file, flows, every=not flows):
        await _probe_flow(settings, canary_topic, timeout, report_finding)
    if output == "json":
        echo_json([asdict(one) for one in findings])
    return int(Exit.TROUBLE if any(one.ok is False for one in findings) else Exit.FINE)


async def _probe_flow(
    settings: "FlowSettings", canary: str | None, within: float, report_finding: Callable[[ProbeFinding], None]
) -> None:
    from lockstep_cli.clusters import source_client, target_client
    from lockstep_config.credentials.permissions import source_grants, target_grants

    flow = str(settings.flow)

    async def run_check(check: str, work: Awaitable[str]) -> bool:
        from lockstep_runtime.util.errors import ClusterError

        try:
            report_finding(ProbeFinding(flow, check, True, await work))
        except (ClusterError, Missing) as exc:
            report_finding(ProbeFinding(flow, check, False, str(exc)))
            return False
        except TimeoutError:
            report_finding(ProbeFinding(flow, check, False, f"no answer within {within:g} s"))
            return False
        return True

    source, target = source_client(settings), target_client(settings)
    reached = [await run_check(f"{one.alias} is reached", _reached(one, within)) for one in (source, target)]
    if not all(reached):
        return
    await run_check("two clusters", _two_clusters(source, target))
    names = [name for name in await source.topic_names() if settings.replicates(name)]
    remote = [settings.remote_topic(name) for name in names]
    for cluster, grants, every in ((source, source_grants(settings), names), (target, target_grants(settings), remote)):
        await run_check(f"permissions on {cluster.alias}", _permitted(cluster, grants, every))
    if settings.heartbeat.enabled:
        await run_check(f"heartbeat on {target.alias}", _heartbeat(settings, within))
    else:
        report_finding(ProbeFinding(flow, f"heartbeat on {target.alias}", None, "this flow has none"))
    if canary is not None:
        await run_check(f"canary through {canary}", _round_trip(settings, canary, within))


class Missing(Exception):
    """Something is not as it has to be; the message says what, and what to do."""


async def _reached(cluster: "Admin", within: float) -> str:
    from lockstep_runtime.kafka.admin import PROBE
    from lockstep_runtime.util.errors import AdvertisedAddressUnresolved, ClusterError

    try:
        await cluster.probe(min(PROBE, timedelta(seconds=within)))
    except AdvertisedAddressUnresolved:
        raise
    except ClusterError:
        await cluster.probe(timedelta(seconds=within))
    if away := await cluster.unreachable_brokers(min(PROBE, timedelta(seconds=within))):
        raise Missing(
            f"{cluster.bootstrap} answers, and names brokers that cannot be reached from here: "
            + "; ".join(f"{broker} ({why})" for broker, why in away.items())
            + ". Set advertised.listeners of these brokers to addresses that are known here"
        )
    return cluster.bootstrap


async def _two_clusters(source: "Admin", target: "Admin") -> str:
    """Raises Missing where both aliases lead to one."""
    ids = await source.cluster_id(), await target.cluster_id()
    if ids[0] == ids[1]:
        places = f"{source.alias} at {source.bootstrap} and {target.alias} at {target.bootstrap}"
        raise Missing(
            f"{places} are one cluster ({ids[0]}): name the address of the other one; until then "
            "topics whose names begin with either alias are not mirrored"
        )
    return f"{ids[0]} and {ids[1]}"


async def _permitted(cluster: "Admin", grants: "Sequence[Grant]", every: Sequence[str]) -> str:
    from lockstep_cli.permission_check import HeldPermissions, missing_permissions, named_groups, topics_for

    there = await cluster.topic_names()
    topics = await cluster.topic_operations(topics_for(grants, there, every))
    groups = await cluster.group_operations(named_groups(grants))
    held = HeldPermissions(await cluster.cluster_operations(), topics.done, groups.done)
    found = missing_permissions(grants, held, every)
    refused = [*topics.denied.values(), *groups.denied.values()]
    if found or refused:
        lines = [
            *(str(cluster.access.remedy(lack.grant.resource, lack.grant.name, lack.grant.operation)) for lack in found),
            *map(str, refused),
        ]
        raise Missing("\n    ".join(dict.fromkeys(lines)))
    return f"{len(grants)} needed, and what can be asked is there"


async def _heartbeat(settings: "FlowSettings", within: float) -> str:
    from lockstep_protocol.mm2_codec import MalformedRecord, decode_heartbeat

    aliases = settings.aliases

    def ours(record: "Record") -> bool:
        try:
            beat = decode_heartbeat(record.key, record.value)
        except MalformedRecord:
            return False
        return (beat.source, beat.target) == (aliases.source, aliases.target)

    arrival_s = await _arrival(settings, settings.policy.heartbeats_topic(), ours, within)
    if arrival_s is None:
        raise Missing(
            f"none came within {within:g} s: does the service heartbeat run? Its pages and lockstep status say more"
        )
    return f"came after {arrival_s:.1f} s"


async def _round_trip(settings: "FlowSettings", topic: str, within: float) -> str:
    from lockstep_cli.command_client import producing

    alias, flow = settings.flow.source, settings.flow
    if not settings.replicates(topic):
        raise Missing(f"{flow} does not mirror {topic}: name a topic that it does")
    mark = f"lockstep canary {uuid.uuid4()}".encode()
    remote = settings.remote_topic(topic)

    async def write() -> None:
        async with producing(settings, within, "source") as producer:
            await producer.send(topic, mark, mark, None, None)

    arrival_s = await _arrival(settings, remote, lambda record: record.key == mark, within, begin=write)
    if arrival_s is None:
        raise Missing(f"was written to {alias} and did not arrive in {remote} within {within:g} s")
    return f"arrived in {remote} after {arrival_s:.1f} s"


async def _arrival(
    settings: "FlowSettings",
    topic: str,
    meant: "Callable[[Record], bool]",
    within: float,
    begin: Callable[[], Awaitable[None]] | None = None,
) -> float | None:
    """Seconds until a record that is meant arrives in a topic of the target, after `begin`; None: not `within`. Raises
    ClusterError, TopicMissing among them."""
    from lockstep_cli.command_client import wait_for_answer
    from lockstep_runtime.kafka.topic_follower import target_follower

    arrived = asyncio.Event()

    def hear(records: "Sequence[Record]") -> None:
        if any(meant(record) for record in records):
            arrived.set()

    async with target_follower(settings, "probe", topic, hear, from_beginning=False) as follower:
        await asyncio.wait_for(follower.caught_up(), within)
        began = time.monotonic()
        if begin is not None:
            await begin()
        await wait_for_answer(arrived, follower.failed(), within)
        return time.monotonic() - began if arrived.is_set() else None
