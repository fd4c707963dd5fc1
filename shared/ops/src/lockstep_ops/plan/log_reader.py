"""Reads the source's logs: begin and end offsets, age and size, and the rate at which they are read."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from confluent_kafka import KafkaException, TopicPartition

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.plan.record_sampler import plan_consumer, sample_records
from lockstep_ops.plan.rules.copy_forecast import CopyRate
from lockstep_ops.plan.rules.flow_facts import LogFacts
from lockstep_ops.plan.rules.log_growth import DAY_MS
from lockstep_ops.plan.shared_cluster import SharedCluster
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.clock import now_ms
from lockstep_state import offsets
from lockstep_state.kafka.librdkafka_errors import error_text

MEASURE_S = 3.0
"""The seconds that a measurement may take."""

MEASURED_PARTITIONS = 16
LEAST_MEASURED = 16 << 20
"""The least bytes of logs for which a measurement says something."""

EMPTY_ANSWERS = 4096
"""The most bytes that answers without a record have between two statistics."""


async def read_logs(
    settings: FlowSettings, source: SharedCluster, partitions: Iterable[offsets.TopicPartition], steps: WorkProgress
) -> tuple[dict[offsets.TopicPartition, LogFacts], str, str]:
    """Return the logs, how their bytes are known (`CopyForecast.bytes_basis`), and a remark about that.

    Raises:
        ClusterError: The source does not answer, or refuses.
    """
    every = list(partitions)
    steps.begin(f"{settings.flow}: reading offsets", 4)
    committed = settings.data_plane.isolation_level == "read_committed"
    begins, ends = await asyncio.gather(
        source.begin_offsets(every), source.end_offsets(every, read_committed=committed)
    )
    steps.advance(2)
    held = [tp for tp in every if tp in begins and tp in ends and ends[tp] > begins[tp]]
    oldest = await source.oldest_timestamps(held)
    steps.advance()
    logs = {
        tp: LogFacts(begins[tp], max(begins[tp], ends[tp]), oldest.get(tp))
        for tp in every
        if tp in begins and tp in ends
    }
    day_ago = await source.offsets_since(held, now_ms() - DAY_MS)
    logs |= {tp: replace(logs[tp], day_ago=logs[tp].end if first < 0 else first) for tp, first in day_ago.items()}
    steps.text = f"{settings.flow}: reading sizes"
    average = await asyncio.to_thread(sample_records, settings, logs)
    logs = {tp: replace(log, record_bytes=average.of_topic(tp[0])) for tp, log in logs.items()}
    try:
        client_id = client_settings.client_id(settings, "plan", settings.clients.source_admin)
        sizes = await source.log_sizes(held, client_id)
    except ClusterError as why:
        is_known = average.overall is not None or not held
        logs = {tp: replace(log, size=_estimated_size(log)) for tp, log in logs.items()}
        basis = "sampled" if is_known else "unknown"
        remark = f"bytes are {'estimated from a sample' if is_known else 'not known'}: {why}"
    else:
        empty = {tp: replace(log, size=0) for tp, log in logs.items() if log.end == log.begin}
        logs = {tp: replace(log, size=sizes.get(tp)) for tp, log in logs.items()} | empty
        basis, remark = "log-directories", ""
    steps.advance()
    return logs, basis, remark


def _estimated_size(log: LogFacts) -> int | None:
    if log.end == log.begin:
        return 0
    return None if log.record_bytes is None else round((log.end - log.begin) * log.record_bytes)


async def measured_rate(
    settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]
) -> tuple[CopyRate | None, str]:
    """Return the rate of a few seconds of reading from the source, in bytes on the wire.

    It returns None, with the reason, if the measurement says nothing.

    Raises:
        ClusterError: The source does not answer, or refuses.
    """
    return await asyncio.to_thread(_measured, settings, logs)


def _measured(settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]) -> tuple[CopyRate | None, str]:
    source = settings.flow.source
    chosen = sorted((tp for tp, log in logs.items() if log.end > log.begin), key=lambda tp: -(logs[tp].size or 0))
    chosen = chosen[:MEASURED_PARTITIONS]
    if sum(logs[tp].size or 0 for tp in chosen) < LEAST_MEASURED:
        return None, f"the topics on {source} have too few bytes to measure a rate with"
    seen: list[tuple[int, int]] = []

    def hear(text: str) -> None:
        statistics = json.loads(text)
        seen.append((int(statistics["ts"]), int(statistics["rx_bytes"])))

    reader = plan_consumer(settings, {"statistics.interval.ms": "20", "stats_cb": hear})
    try:
        reader.assign([TopicPartition(*tp, logs[tp].begin) for tp in chosen])
        deadline, left = time.monotonic() + MEASURE_S, sum(logs[tp].end - logs[tp].begin for tp in chosen)
        while left > 0 and time.monotonic() < deadline:
            left -= len(reader.consume(5000, 0.1))
        reader.poll(0.1)  # for the last statistics
    except KafkaException as exc:
        return None, f"the rate of {source} cannot be measured: {error_text(exc.args[0])}"
    finally:
        reader.close()
    moving = [(before, now) for before, now in pairwise(seen) if now[1] - before[1] > EMPTY_ANSWERS]
    if not moving:
        return None, f"nothing could be read from {source} to measure a rate with"
    (began, first), (ended, final) = moving[0][0], moving[-1][1]
    return CopyRate(max(1, round((final - first) * 1_000_000 / (ended - began))), "measured"), ""
