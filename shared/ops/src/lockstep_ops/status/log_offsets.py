"""Reads the offsets of both clusters' logs of a flow, after its rows."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.status.partition_status import LogOffsets
from lockstep_rules.offsets.lag import LogRange, copied_upstream
from lockstep_rules.selection_count import count_topics
from lockstep_state.rows.state_rows import MirroredTopic, Row, progress_by_partition


async def read_logs(
    settings: FlowSettings,
    source: Admin,
    target: Admin,
    rows: Mapping[str, Row],
    source_reached: Awaitable[None],
    before: LogOffsets | None = None,
) -> LogOffsets:
    """Return the ends of all logs that the rows are about, and of those that the flow selects.

    What a cluster does not answer is absent; nothing is raised for it.

    Args:
        settings: The flow.
        source: The source.
        target: The target.
        rows: The flow's rows.
        source_reached: It is done when the source answers, and raises `ClusterError` if it does not.
        before: An earlier result, if any.
    """
    topics = [row for row in rows.values() if isinstance(row, MirroredTopic) and row.is_selected]
    answers = await asyncio.gather(
        _read_source_ends(settings, source, target, topics, source_reached),
        _read_target_ends(target, topics),
        return_exceptions=True,
    )
    troubles = {answer.alias: str(answer) for answer in answers if isinstance(answer, ClusterError)}
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, ClusterError):
            raise answer
    at_source, at_target = (LogOffsets() if isinstance(answer, BaseException) else answer for answer in answers)
    earlier = {} if before is None else {tp: log.end for tp, log in before.source.items()}
    logs = replace(
        at_source,
        target=at_target.target,
        target_ids=at_target.target_ids,
        in_sync=at_target.in_sync,
        troubles=troubles,
        earlier=earlier,
    )
    return await _with_starts(source, logs, rows)


async def _with_starts(source: Admin, logs: LogOffsets, rows: Mapping[str, Row]) -> LogOffsets:
    """Return the answers with the first offset of those logs of the source of which nothing is copied yet.

    Of the others it does not count. A log whose first offset is not answered is absent.
    """
    topics = {row.source_topic: row for row in rows.values() if isinstance(row, MirroredTopic)}
    present = {
        name: logs.with_present_ids(topics.get(name) or MirroredTopic(source_topic=name, target_topic=""))
        for name in logs.source_ids
    }
    progress = progress_by_partition(rows.values())
    restarting = {tp for tp in logs.source if copied_upstream(progress.get(tp), present[tp[0]]) is None}
    if not restarting:
        return logs
    try:
        starts = await source.begin_offsets(restarting)
    except ClusterError as exc:
        starts, logs = {}, replace(logs, troubles={**logs.troubles, exc.alias: str(exc)})
    ranges = {tp: LogRange(starts[tp], logs.source[tp].end) for tp in restarting if tp in starts}
    kept = {tp: log for tp, log in logs.source.items() if tp not in restarting}
    return replace(logs, source=kept | ranges)


async def _read_source_ends(
    settings: FlowSettings,
    source: Admin,
    target: Admin,
    topics: list[MirroredTopic],
    source_reached: Awaitable[None],
) -> LogOffsets:
    await source_reached
    one_cluster = await source.cluster_id() == await target.cluster_id()
    names = await source.topic_names()
    selected = {name for name in names if settings.replicates(name, one_cluster=one_cluster)}
    mirrored = {row.source_topic for row in topics}
    described = await source.topics([name for name in names if name in mirrored or name in selected])
    ids = {name: topic.topic_id for name, topic in described.done.items()}
    partitions = [(name, number) for name, topic in described.done.items() for number in range(topic.partitions)]
    committed = settings.data_plane.reads_committed
    ends = await source.end_offsets(partitions, read_committed=committed)
    return LogOffsets(
        source={tp: LogRange(0, end) for tp, end in ends.items()},
        source_ids=ids,
        selected={name: topic.partitions for name, topic in described.done.items() if name in selected},
        topic_count=count_topics(names, settings.topics, settings.policy),
    )


async def _read_target_ends(target: Admin, topics: list[MirroredTopic]) -> LogOffsets:
    described = await target.topics([row.target_topic for row in topics if row.target_topic])
    ids = {name: topic.topic_id for name, topic in described.done.items()}
    partitions = [(name, number) for name, topic in described.done.items() for number in range(topic.partitions)]
    in_sync = {
        (name, number): (isr, topic.replicas)
        for name, topic in described.done.items()
        for number, isr in enumerate(topic.in_sync)
    }
    return LogOffsets(target=await target.end_offsets(partitions), target_ids=ids, in_sync=in_sync)
