"""Examines the rights of a flow on both clusters, and the flow itself: a heartbeat, a canary, the rate of copying."""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import source_grants, target_grants
from lockstep_config.flow.mirroring_rules import mirrored_topics
from lockstep_kafka.admin.replicas import count_replicas
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.doctor.bandwidth_measurement import BandwidthMeasurement
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.bandwidth import judge_bandwidth
from lockstep_ops.doctor.checks.check import CheckFinding, DoctorCheck
from lockstep_ops.doctor.checks.options import DoctorOptions
from lockstep_ops.doctor.checks.rights import judge_rights
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.doctor.path_examination import PathFault, await_heartbeat, probe_exit, send_canary
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import in_time

HEARTBEAT_SERVICE = "heartbeat"

BANDWIDTH_S = 5.0
"""The seconds that a measurement usually lasts, with what is created and removed."""


async def examine_rights(clusters: FlowClusters) -> list[CheckFinding]:
    """Return a finding for each missing right, or one for each cluster that grants all.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
    """
    settings, source, target = clusters.settings, clusters.source, clusters.target
    flow, findings = str(settings.flow), list[CheckFinding]()
    mirrored = mirrored_topics(settings, await source.topic_names(), await target.topic_names())
    hidden = await source.hidden_topics() if settings.enabled and not mirrored else None
    if hidden:
        findings.append(registry.RIGHTS.unknown(flow, hidden.lacks, hidden.command, probe_exit=Exit.TROUBLE))
    for cluster, grants, topics in (
        (source, source_grants(settings), [*mirrored]),
        (target, target_grants(settings), [*mirrored.values()]),
    ):
        missing = await cluster.missing_rights(grants, topics)
        findings += judge_rights(flow, cluster.alias, missing)
        if not missing and (unknown := await cluster.unknown_rights()):
            findings.append(registry.RIGHTS.unknown(flow, unknown))
        elif not missing and not (hidden and cluster is source):
            text = f"{cluster.alias}: {len(grants)} are needed, and those that brokers can be asked about are there"
            findings.append(registry.RIGHTS.ok(flow, text))
    return findings


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
        work.append(_canary(settings, options.canary_topic, within))
    findings = list(await asyncio.gather(*work))
    if options.bandwidth:
        on_step(f"{flow}: the bandwidth", BANDWIDTH_S)
        measurement = BandwidthMeasurement(settings, clusters.source.admin, clusters.target.admin)
        findings += judge_bandwidth(await measurement.measure())
    return findings


async def _heartbeat(clusters: FlowClusters, options: DoctorOptions) -> CheckFinding:
    settings, check, within = clusters.settings, registry.HEARTBEAT, options.within_s
    flow = str(settings.flow)
    if not settings.heartbeat.enabled:
        return check.skipped(flow, "this flow has none (emit.heartbeats.enabled)")
    if not options.awaits_heartbeat:
        try:
            replicas = await count_replicas(clusters.target.admin, settings, [HEARTBEAT_SERVICE])
        except ClusterError as exc:
            return check.unknown(flow, str(exc))
        if replicas.get(HEARTBEAT_SERVICE) == 0:
            return check.skipped(flow, "no replica of the service heartbeat runs")
    return await _arrived(check, flow, await_heartbeat(settings, within), within)


async def _canary(settings: FlowSettings, topic: str, within: float) -> CheckFinding:
    flow, delay_ms = str(settings.flow), settings.delay_ms(topic)
    if delay_ms >= within * 1000:
        text = f"{topic} is copied {in_time(delay_ms)} late on purpose (lockstep.delay)"
        return registry.CANARY.skipped(flow, text)
    return await _arrived(registry.CANARY, flow, send_canary(settings, topic, within), within)


async def _arrived(check: DoctorCheck, flow: str, work: Awaitable[str], within: float) -> CheckFinding:
    try:
        return check.ok(flow, await work)
    except TimeoutError:
        return check.failed(flow, f"no answer within {within:.3g} s", probe_exit=Exit.NO_ANSWER)
    except (ClusterError, PathFault) as exc:
        return check.failed(flow, str(exc), probe_exit=probe_exit(exc))
