"""Examines the rights of a flow on both clusters, and the flow itself: a heartbeat, a canary, the rate of copying."""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_config.credentials.permissions import source_grants, target_grants
from lockstep_config.flow.mirroring_rules import mirrored_topics
from lockstep_kafka.admin.replicas import count_replicas
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.doctor.bandwidth_reader import BandwidthReader
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.bandwidth import judge_bandwidth
from lockstep_ops.doctor.checks.check import CheckFinding, DoctorCheck
from lockstep_ops.doctor.checks.options import DoctorOptions
from lockstep_ops.doctor.cluster_checks import PathFault, await_heartbeat, probe_exit, send_canary
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.doctor.rights import judge_rights
from lockstep_ops.exit_codes import Exit
from lockstep_ops.permission_reader import hidden_topics, missing_rights, unknown_rights

HEARTBEAT_SERVICE = "heartbeat"

BANDWIDTH_S = 5.0
"""The seconds that a measurement usually lasts, with what is created and removed."""


async def examine_rights(clusters: FlowClusters) -> list[CheckFinding]:
    """Return a finding for each missing right, or one for each cluster that grants all.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
    """
    settings = clusters.settings
    flow, found = str(settings.flow), list[CheckFinding]()
    on_source, on_target = await clusters.source.topic_names(), await clusters.target.topic_names()
    mirrored = mirrored_topics(settings, on_source, on_target)
    hidden = await hidden_topics(clusters.source, on_source) if settings.enabled and not mirrored else None
    if hidden:
        found.append(registry.RIGHTS.unknown(flow, hidden.lacks, hidden.command, probe_exit=Exit.TROUBLE))
    for admin, grants, every, there in (
        (clusters.source, source_grants(settings), [*mirrored], on_source),
        (clusters.target, target_grants(settings), [*mirrored.values()], on_target),
    ):
        missing = await missing_rights(admin, grants, every, there)
        found += judge_rights(flow, admin.alias, missing)
        if not missing and (unknown := await unknown_rights(admin)):
            found.append(registry.RIGHTS.unknown(flow, unknown))
        elif not missing and not (hidden and admin is clusters.source):
            text = f"{admin.alias}: {len(grants)} are needed, and those that brokers can be asked about are there"
            found.append(registry.RIGHTS.ok(flow, text))
    return found


async def examine_flow(
    clusters: FlowClusters, options: DoctorOptions, on_step: Callable[[str, float], None]
) -> list[CheckFinding]:
    """Return the findings about heartbeat, canary and bandwidth of a flow.

    The heartbeat and the canary are waited for at the same time.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
    """
    settings, within = clusters.settings, options.within_s
    flow = str(settings.flow)
    on_step(f"{flow}: a heartbeat" if options.canary_topic is None else f"{flow}: a heartbeat and the canary", within)
    work = [_heartbeat(clusters, options)]
    if options.canary_topic is not None:
        canary = send_canary(settings, options.canary_topic, within)
        work.append(_arrived(registry.CANARY, flow, canary, within))
    found = list(await asyncio.gather(*work))
    if options.bandwidth:
        on_step(f"{flow}: the bandwidth", BANDWIDTH_S)
        found += judge_bandwidth(await BandwidthReader(settings, clusters.source, clusters.target).read())
    return found


async def _heartbeat(clusters: FlowClusters, options: DoctorOptions) -> CheckFinding:
    settings, check, within = clusters.settings, registry.HEARTBEAT, options.within_s
    flow = str(settings.flow)
    if not settings.heartbeat.enabled:
        return check.skipped(flow, "this flow has none (emit.heartbeats.enabled)")
    if not options.awaits_heartbeat:
        try:
            replicas = await count_replicas(clusters.target, settings, [HEARTBEAT_SERVICE])
        except ClusterError as exc:
            return check.unknown(flow, str(exc))
        if replicas.get(HEARTBEAT_SERVICE) == 0:
            return check.skipped(flow, "no replica of the service heartbeat runs")
    return await _arrived(check, flow, await_heartbeat(settings, within), within)


async def _arrived(check: DoctorCheck, flow: str, work: Awaitable[str], within: float) -> CheckFinding:
    try:
        return check.ok(flow, await work)
    except TimeoutError:
        return check.failed(flow, f"no answer within {within:.3g} s", probe_exit=Exit.NO_ANSWER)
    except (ClusterError, PathFault) as exc:
        return check.failed(flow, str(exc), probe_exit=probe_exit(exc))
