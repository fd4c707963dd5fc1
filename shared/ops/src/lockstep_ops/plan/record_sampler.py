"""Measures the source by reading from it for a few seconds: how large records are, and how fast they are read."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_ops.plan.rules.copy_forecast import CopyRate
from lockstep_ops.plan.rules.flow_facts import LogFacts
from lockstep_state import offsets
from lockstep_state.kafka.librdkafka_errors import error_text

SAMPLED_TOPICS = 100
"""The most topics that are sampled. Others get the average of these."""

SAMPLE_S = 3.0
"""The seconds that a sample may take."""

SAMPLED_RECORDS = 20
"""Records of a topic that are enough for its average."""

BATCH_FRAME = 12
"""Bytes that a record takes beside its key, value and headers, about."""

MEASURE_S = 3.0
"""The seconds that a measurement may take."""

MEASURED_PARTITIONS = 16
LEAST_MEASURED = 16 << 20
"""The least bytes of logs for which a measurement says something."""

EMPTY_ANSWERS = 4096
"""The most bytes that answers without a record have between two statistics."""


SAMPLED_BYTES = 64 * 1024
"""Bytes of a topic's records that are enough to measure its codecs."""


@dataclass(frozen=True, slots=True)
class RecordSample:
    """The records that were read: bytes of an average one, uncompressed, and those of whole records."""

    averages: Mapping[str, float]
    """The average of each topic that was sampled."""
    overall: float | None
    """The average size over all topics. None: no record was read."""
    records: Mapping[str, Mapping[int, bytes]] = field(default_factory=dict)
    """The bytes of records by topic and offset, each of the topic's fullest partition."""

    def average_of(self, topic: str) -> float | None:
        """Return the average of the topic, or that of all if it was not sampled."""
        return self.averages.get(topic, self.overall)


def choose_logs(logs: Mapping[offsets.TopicPartition, LogFacts]) -> list[offsets.TopicPartition]:
    """Return the partitions to sample: the fullest one of each topic, of the `SAMPLED_TOPICS` fullest topics."""
    fullest: dict[str, offsets.TopicPartition] = {}
    for tp, log in logs.items():
        fuller = fullest.get(tp[0])
        if log.end > log.begin and (fuller is None or log.end - log.begin > logs[fuller].end - logs[fuller].begin):
            fullest[tp[0]] = tp
    return sorted(fullest.values(), key=lambda tp: logs[tp].begin - logs[tp].end)[:SAMPLED_TOPICS]


def sample_records(
    settings: FlowSettings, starts: Mapping[offsets.TopicPartition, int], ends: Mapping[offsets.TopicPartition, int]
) -> RecordSample:
    """Read some records of one partition of each topic. It blocks, for `SAMPLE_S` at most.

    Args:
        settings: The flow.
        starts: The offsets from which the partitions are read.
        ends: The offsets up to which records are kept, of partitions whose batches are to be measured.
    """
    if not starts:
        return RecordSample({}, None)
    partition_of = {topic: (topic, number) for topic, number in starts}
    counts, lengths = dict.fromkeys(partition_of, 0), dict.fromkeys(partition_of, 0)
    kept: dict[str, dict[int, bytes]] = {topic: {} for topic in partition_of}
    unread = set(counts)
    reader = _consumer(settings, {"fetch.message.max.bytes": "65536", "enable.partition.eof": "true"})
    try:
        reader.assign([TopicPartition(*tp, offset) for tp, offset in starts.items()])
        deadline = time.monotonic() + SAMPLE_S
        while unread and time.monotonic() < deadline:
            for message in reader.consume(500, 0.2):
                topic, error = str(message.topic()), message.error()
                if topic not in unread:
                    continue
                if error is None:
                    record, offset = _record_bytes(message), message.offset() or 0
                    counts[topic] += 1
                    lengths[topic] += len(record)
                    kept[topic][offset] = record
                    is_measured = offset >= ends.get(partition_of[topic], 0) or lengths[topic] >= SAMPLED_BYTES
                    if counts[topic] >= SAMPLED_RECORDS and is_measured:
                        unread.discard(topic)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(topic)
    finally:
        reader.close()
    records = sum(counts.values())
    means = {topic: lengths[topic] / counts[topic] for topic in counts if counts[topic]}
    return RecordSample(means, sum(lengths.values()) / records if records else None, kept)


async def measured_rate(
    settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]
) -> tuple[CopyRate | None, str]:
    """Return the rate of a few seconds of reading from the source, in bytes on the wire.

    It returns None, with the reason, if the measurement says nothing.
    """
    return await asyncio.to_thread(_measured_rate, settings, logs)


def _measured_rate(
    settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]
) -> tuple[CopyRate | None, str]:
    source = settings.flow.source
    chosen = sorted((tp for tp, log in logs.items() if log.end > log.begin), key=lambda tp: -(logs[tp].size or 0))
    chosen = chosen[:MEASURED_PARTITIONS]
    if sum(logs[tp].size or 0 for tp in chosen) < LEAST_MEASURED:
        return None, f"the topics on {source} have too few bytes to measure a rate with"
    received: list[tuple[int, int]] = []
    """The time in microseconds, and the bytes received until then."""

    def on_statistics(text: str) -> None:
        statistics = json.loads(text)
        received.append((int(statistics["ts"]), int(statistics["rx_bytes"])))

    reader = _consumer(settings, {"statistics.interval.ms": "20", "stats_cb": on_statistics})
    try:
        reader.assign([TopicPartition(*tp, logs[tp].begin) for tp in chosen])
        deadline, remaining = time.monotonic() + MEASURE_S, sum(logs[tp].end - logs[tp].begin for tp in chosen)
        while remaining > 0 and time.monotonic() < deadline:
            remaining -= len(reader.consume(5000, 0.1))
        reader.poll(0.1)  # for the last statistics
    except KafkaException as exc:
        return None, f"the rate of {source} cannot be measured: {error_text(exc.args[0])}"
    finally:
        reader.close()
    moving = [(before, now) for before, now in pairwise(received) if now[1] - before[1] > EMPTY_ANSWERS]
    if not moving:
        return None, f"nothing could be read from {source} to measure a rate with"
    (began_us, begin_bytes), (ended_us, end_bytes) = moving[0][0], moving[-1][1]
    return CopyRate(max(1, round((end_bytes - begin_bytes) * 1_000_000 / (ended_us - began_us))), "measured"), ""


def _consumer(settings: FlowSettings, conf: Mapping[str, Any]) -> Consumer:
    """Return a consumer of the source that commits nothing."""
    base = client_settings.source_consumer(settings, "plan")
    needed = {"group.id": "lockstep-plan", "enable.auto.commit": "false", "log_level": "0"}
    return create_client(Consumer, {**base, **needed, **conf}, settings.flow.source)


def _record_bytes(message: Any) -> bytes:
    """Return a record about as it is in a batch, uncompressed: what has no name here takes `BATCH_FRAME` bytes."""
    headers = message.headers() or ()
    parts = [part for name, value in headers for part in (name.encode(), value or b"")]
    frame = int(message.offset()).to_bytes(BATCH_FRAME, "big")
    return b"".join([frame, message.key() or b"", message.value() or b"", *parts])
