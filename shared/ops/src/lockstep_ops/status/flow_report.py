"""Reads the report of a flow: its rows, the members of its services, and the ends of both clusters' logs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.replicas import describe_replicas
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.clusters import REFUSED_S, source_client, target_client
from lockstep_ops.services import SERVICES
from lockstep_ops.status.log_offsets import read_logs
from lockstep_ops.status.partition_status import LogOffsets, is_conclusive
from lockstep_ops.status.report import Report, Trouble
from lockstep_ops.status.report_builder import build_report
from lockstep_ops.status.state_topic_rows import SILENT_S, FollowedRows, StateTopicRows
from lockstep_ops.status.trouble_reports import read_reports, reported_troubles, reports_now, unreadable_topics
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.state_rows import GroupStatus, Row
from lockstep_state.trouble_report import TroubleReport

LOOKS_AGAIN_AFTER_S = 2.5
"""A slot writes progress each second. What it has not moved past by then, it does not move past."""

MOST_GROUPS = 50
"""Groups on the target whose members are asked for: each is a request."""


@dataclass(frozen=True, slots=True)
class FlowClients:
    """The clients of a flow's two clusters."""

    source: Admin
    target: Admin


async def read_report(
    settings: FlowSettings,
    timeout: float,
    silent_s: float | None = None,
    followed: FollowedRows | None = None,
    *,
    clients: FlowClients | None = None,
    heard: Sequence[Record] | None = None,
) -> Report:
    """Return the present report of a flow.

    Args:
        settings: The flow.
        timeout: The seconds within which a cluster has to answer.
        silent_s: As in `read_rows`.
        followed: The flow's rows, if the caller follows them. They are not read again.
        clients: Clients of its clusters, if the caller has some. They stay open.
        heard: The events in which services report what fails, if the caller follows them. They are not read again.

    Raises:
        ClusterError: The target cannot be reached, is not permitted, or the flow has never run (TopicMissing).
        NewerVersion: A newer release wrote a row.
    """
    clients = clients or FlowClients(
        source_client(settings, refused_s=REFUSED_S), target_client(settings, refused_s=REFUSED_S)
    )
    source, target = clients.source, clients.target
    services = [name for name, needed in SERVICES.items() if needed(settings)]
    delay_ms = settings.delay_ms

    async def read_dated() -> tuple[Mapping[str, Row], list[str], int]:
        """Return rows with the time at which they were read. Their age does not grow while the clusters are asked."""
        if followed is None:
            return *await read_rows(settings, silent_s), now_ms()
        await followed.catch_up_now()
        return dict(followed.rows), list(followed.unreadable), now_ms()

    async def read_heard() -> tuple[list[TroubleReport], list[Trouble]]:
        return await read_reports(settings, timeout) if heard is None else reports_now(heard)

    async def wait_conclusive(logs: LogOffsets) -> None:
        """Wait until a slot that works has written its rows again."""
        if followed is None:
            await asyncio.sleep(LOOKS_AGAIN_AFTER_S)
            return
        newer = followed
        await newer.wait_until(
            lambda: is_conclusive(newer.rows.values(), now_ms(), logs, delay_ms), LOOKS_AGAIN_AFTER_S
        )

    logs, within, copies = None, timedelta(seconds=timeout), "data-plane" in services
    async with _beside(source.probe(within) if copies else asyncio.sleep(0.0)) as source_reached:
        await target.probe(within)
        (rows, unreadable, read_ms), replicas, (reports, unread) = await asyncio.gather(
            read_dated(), describe_replicas(target, settings, services), read_heard()
        )
        if copies:
            logs = await read_logs(settings, source, target, rows, source_reached)
            if not is_conclusive(rows.values(), read_ms, logs, delay_ms):
                await wait_conclusive(logs)
                rows, unreadable, read_ms = await read_dated()
                logs = await read_logs(settings, source, target, rows, source_reached, logs)
    build = partial(
        build_report,
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
        delay_ms=delay_ms,
    )
    # In a thread, since a topic of 100,000 partitions takes seconds, in which the caller answers nobody else.
    report = await asyncio.to_thread(build)
    present = [report for report in reports if report.service in services]
    troubles = (*report.troubles, *reported_troubles(present, report.troubles), *unread)
    return replace(report, troubles=troubles, unreadable=unreadable_topics(present))


@asynccontextmanager
async def _beside(asking: Coroutine[Any, Any, None]) -> AsyncIterator[Awaitable[None]]:
    """Ask one cluster while the context asks the other one, so that they are not waited for one after the other."""
    asked = asyncio.ensure_future(asking)
    try:
        yield asked
    finally:
        await cancelled([asked])


async def _read_members(target: Admin, rows: Mapping[str, Row]) -> dict[str, tuple[str, ...]]:
    """Return client ids and hosts of the groups that are in use on the target.

    Groups that we may not describe are absent.
    """
    in_use = sorted(row.group for row in rows.values() if isinstance(row, GroupStatus) and row.held == "in-use")
    described = await target.describe_groups(in_use[:MOST_GROUPS])
    return {name: group.member_names for name, group in described.done.items() if group.members}


async def read_rows(settings: FlowSettings, silent_s: float | None = None) -> tuple[Mapping[str, Row], list[str]]:
    """Return the rows of the flow's state topic that count now, by key, and sentences about unreadable records.

    A target that does not answer is not waited for, and a topic of which nothing comes only for `silent_s` seconds.

    Raises:
        ClusterError: The target does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    rows = StateTopicRows(settings, "status", silent_s=SILENT_S if silent_s is None else silent_s)
    await rows.replay()
    return rows.by_key, list(rows.unreadable.values())
