"""Reads the logs of both clusters: where they begin and end, their age and size, and where a copy would begin."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.session.batch_heads import BatchHead
from lockstep_ops.cluster_snapshot import ClusterSnapshot, Unknown
from lockstep_ops.plan.recompression import measure
from lockstep_ops.plan.record_sampler import choose_logs, sample_records
from lockstep_ops.plan.rules.batch_sample import TopicSample
from lockstep_ops.plan.rules.flow_facts import LogFacts
from lockstep_ops.plan.rules.log_growth import DAY_MS
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.clock import now_ms
from lockstep_state.offsets import TopicPartition

NEWEST = 50
"""The records before a log's end from which on batches are sampled."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """The logs of a flow's source.

    `batches` is the sample of each topic whose batches could be read. `basis` says how bytes are known
    (`CopyForecast.bytes_basis`), with a remark about that.
    """

    logs: dict[TopicPartition, LogFacts] = field(default_factory=dict)
    batches: Mapping[str, TopicSample] = field(default_factory=dict)
    basis: str = "unknown"
    remark: str = ""


async def read_logs(
    settings: FlowSettings, source: ClusterSnapshot, partitions: Iterable[TopicPartition], steps: WorkProgress
) -> LogReading:
    """Read the logs, and a sample of their records and batches.

    Raises:
        ClusterError: The source does not answer, or refuses.
    """
    steps.begin(f"{settings.flow}: reading offsets", 4)
    committed = settings.data_plane.reads_committed
    begins, ends = await source.log_bounds(partitions, read_committed=committed)
    steps.advance(2)
    answered = [tp for tp in begins if tp in ends]
    with_records = [tp for tp in answered if ends[tp] > begins[tp]]
    oldest = await source.oldest_timestamps(with_records)
    steps.advance()
    logs = {tp: LogFacts(begins[tp], max(begins[tp], ends[tp]), oldest.get(tp)) for tp in answered}
    day_ago = await source.offsets_since(with_records, now_ms() - DAY_MS)
    logs |= {tp: replace(logs[tp], day_ago=logs[tp].end if offset < 0 else offset) for tp, offset in day_ago.items()}
    steps.text = f"{settings.flow}: reading sizes"
    heads = await _read_heads(settings, source, logs)
    starts = {tp: heads[tp][0].base_offset if tp in heads else _middle(logs[tp]) for tp in choose_logs(logs)}
    ends = {tp: batches[-1].last_offset for tp, batches in heads.items()}
    sample = await asyncio.to_thread(sample_records, settings, starts, ends)
    batches = {tp[0]: measure(heads[tp], sample.records.get(tp[0], {})) for tp in heads}
    logs = {tp: replace(log, record_bytes=sample.average_of(tp[0])) for tp, log in logs.items()}
    sizes = await source.log_sizes(with_records)
    if isinstance(sizes, Unknown):
        is_estimated = sample.overall is not None or not with_records
        logs = {tp: replace(log, size=_estimated_size(log)) for tp, log in logs.items()}
        basis = "sampled" if is_estimated else "unknown"
        remark = f"bytes are {'estimated from a sample' if is_estimated else 'not known'}: {sizes}"
    else:
        logs = {tp: replace(log, size=0 if log.end == log.begin else sizes.get(tp)) for tp, log in logs.items()}
        basis, remark = "log-directories", ""
    steps.advance()
    return LogReading(logs, batches, basis, remark)


async def _read_heads(
    settings: FlowSettings, source: ClusterSnapshot, logs: Mapping[TopicPartition, LogFacts]
) -> dict[TopicPartition, tuple[BatchHead, ...]]:
    """Return headers of the newest batches of one partition of each topic; none of those that give none."""
    properties = settings.clients.source_consumer
    newest = {tp: max(logs[tp].begin, logs[tp].end - NEWEST) for tp in choose_logs(logs)}
    heads = await source.batch_heads(newest, properties, client_settings.client_id(settings, "plan", properties))
    return {} if isinstance(heads, Unknown) else heads


def _middle(log: LogFacts) -> int:
    return (log.begin + log.end) // 2


def _estimated_size(log: LogFacts) -> int | None:
    if log.end == log.begin:
        return 0
    return None if log.record_bytes is None else round((log.end - log.begin) * log.record_bytes)


async def read_dated_starts(
    settings: FlowSettings,
    source: ClusterSnapshot,
    logs: Mapping[TopicPartition, LogFacts],
    reached: Collection[TopicPartition],
) -> dict[TopicPartition, int]:
    """Return the first offsets by `lockstep.start.timestamp`, of partitions that are not in `reached`."""
    moments: dict[int, list[TopicPartition]] = {}
    for tp in logs:
        moment = settings.data_plane.start_timestamp.for_topic(tp[0])
        if moment is not None and tp not in reached:
            moments.setdefault(moment, []).append(tp)
    starts: dict[TopicPartition, int] = {}
    for moment, partitions in moments.items():
        since = await source.offsets_since(partitions, moment)
        starts |= {tp: logs[tp].end if since.get(tp, -1) < 0 else since[tp] for tp in partitions}
    return starts


async def count_records(cluster: ClusterSnapshot, topics: Mapping[str, int]) -> dict[str, int]:
    """Return the number of records in each of these topics that has some. `topics` are the partitions by topic."""
    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    begins, ends = await cluster.log_bounds(partitions)
    records: dict[str, int] = {}
    for tp, end in ends.items():
        if end > begins.get(tp, end):
            records[tp[0]] = records.get(tp[0], 0) + end - begins[tp]
    return records
