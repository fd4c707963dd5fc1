"""What the source has of logs: where they begin and end, how old and how large they are; and how fast they are read."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lockstep_cli.plan.copy_forecast import CopyRate
from lockstep_cli.plan.flow_facts import LogFacts
from lockstep_cli.plan.shared_cluster import SharedCluster
from lockstep_cli.work_progress import WorkProgress
from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_protocol import offsets
from lockstep_protocol.librdkafka_errors import error_text
from lockstep_runtime.kafka.client_factory import create_client
from lockstep_runtime.util.errors import ClusterError

SAMPLED_TOPICS = 100
"""Of more topics the average of these is taken."""

SAMPLE_S, MEASURE_S = 3.0, 3.0
"""How long a sample, and a measurement, may take."""

SAMPLED_RECORDS = 20
"""Records of a topic that are enough for its average."""

MEASURED_PARTITIONS = 16
LEAST_MEASURED = 16 << 20
"""Bytes of logs below which a measurement says nothing."""

EMPTY_ANSWERS = 4096
"""Bytes that answers without a record have, at most, between two statistics."""

BATCH_FRAME = 12
"""Bytes that a record takes beside its key, value and headers, about."""


async def read_logs(
    settings: FlowSettings, source: SharedCluster, partitions: Iterable[offsets.TopicPartition], steps: WorkProgress
) -> tuple[dict[offsets.TopicPartition, LogFacts], str, str]:
    """The logs, how their bytes are known (`CopyForecast.bytes_basis`), and a remark about that. Raises
    ClusterError."""
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
    steps.text = f"{settings.flow}: reading sizes"
    try:
        client_id = client_settings.client_id(settings, "plan", settings.clients.source_admin)
        sizes = await source.log_sizes(held, client_id)
    except ClusterError as why:
        logs, basis = await asyncio.to_thread(_sampled, settings, logs)
        remark = f"bytes are {'estimated from a sample' if basis == 'sampled' else 'not known'}: {why}"
    else:
        empty = {tp: replace(log, size=0) for tp, log in logs.items() if log.end == log.begin}
        logs = {tp: replace(log, size=sizes.get(tp)) for tp, log in logs.items()} | empty
        basis, remark = "log-directories", ""
    steps.advance()
    return logs, basis, remark


def _sampled(
    settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]
) -> tuple[dict[offsets.TopicPartition, LogFacts], str]:
    """With sizes by the average record of each topic, of a short fetch in the middle of its log."""
    fullest: dict[str, offsets.TopicPartition] = {}
    for tp, log in logs.items():
        known = fullest.get(tp[0])
        if log.end > log.begin and (known is None or log.end - log.begin > logs[known].end - logs[known].begin):
            fullest[tp[0]] = tp
    chosen = sorted(fullest.values(), key=lambda tp: logs[tp].begin - logs[tp].end)[:SAMPLED_TOPICS]
    if not chosen:
        return {tp: replace(log, size=0) for tp, log in logs.items()}, "sampled"
    counts, lengths = dict.fromkeys((topic for topic, _ in chosen), 0), dict.fromkeys((topic for topic, _ in chosen), 0)
    starts = {tp: (logs[tp].begin + logs[tp].end) // 2 for tp in chosen}
    reader = _consumer(settings, {"fetch.message.max.bytes": "65536"})
    try:
        reader.assign([TopicPartition(*tp, start) for tp, start in starts.items()])
        deadline = time.monotonic() + SAMPLE_S
        while time.monotonic() < deadline and min(counts.values()) < SAMPLED_RECORDS:
            for message in reader.consume(500, 0.2):
                if message.error() is None:
                    topic = str(message.topic())
                    counts[topic] += 1
                    lengths[topic] += _length(message)
    finally:
        reader.close()
    records = sum(counts.values())
    if not records:
        return dict(logs), "unknown"
    overall = sum(lengths.values()) / records
    means = {topic: lengths[topic] / counts[topic] for topic in counts if counts[topic]}
    return {
        tp: replace(log, size=round((log.end - log.begin) * means.get(tp[0], overall))) for tp, log in logs.items()
    }, "sampled"


def _length(message: Any) -> int:
    headers = message.headers() or ()
    parts = [message.key() or b"", message.value() or b"", *(value or b"" for _, value in headers)]
    return sum(map(len, parts)) + sum(len(name) for name, _ in headers) + BATCH_FRAME


async def measured_rate(
    settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]
) -> tuple[CopyRate | None, str]:
    """What a few seconds of reading from the source give, as bytes on the wire; None, with the reason, where that says
    nothing. Raises ClusterError."""
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

    reader = _consumer(settings, {"statistics.interval.ms": "20", "stats_cb": hear})
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


def _consumer(settings: FlowSettings, conf: Mapping[str, Any]) -> Consumer:
    base = client_settings.source_consumer(settings, "plan")
    needed = {"group.id": "lockstep-plan", "enable.auto.commit": "false", "log_level": "0"}
    return create_client(Consumer, {**base, **needed, **conf}, settings.flow.source)
