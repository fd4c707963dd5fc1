"""Measures how large the records of topics are, by a short fetch of each."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_ops.plan.rules.flow_facts import LogFacts
from lockstep_state import offsets

SAMPLED_TOPICS = 100
"""The most topics that are sampled. Others get the average of these."""

SAMPLE_S = 3.0
"""The seconds that a sample may take."""

SAMPLED_RECORDS = 20
"""Records of a topic that are enough for its average."""

BATCH_FRAME = 12
"""Bytes that a record takes beside its key, value and headers, about."""


@dataclass(frozen=True, slots=True)
class RecordAverage:
    """Bytes of an average record, uncompressed: of each topic that was sampled, and of all of these."""

    topics: Mapping[str, float]
    overall: float | None
    """The average size over all topics. None: no record was read."""

    def of_topic(self, topic: str) -> float | None:
        """Return the average of the topic, or that of all if it was not sampled."""
        return self.topics.get(topic, self.overall)


def sample_records(settings: FlowSettings, logs: Mapping[offsets.TopicPartition, LogFacts]) -> RecordAverage:
    """Read some records in the middle of the fullest log of each topic. It blocks, for `SAMPLE_S` at most."""
    fullest: dict[str, offsets.TopicPartition] = {}
    for tp, log in logs.items():
        known = fullest.get(tp[0])
        if log.end > log.begin and (known is None or log.end - log.begin > logs[known].end - logs[known].begin):
            fullest[tp[0]] = tp
    chosen = sorted(fullest.values(), key=lambda tp: logs[tp].begin - logs[tp].end)[:SAMPLED_TOPICS]
    if not chosen:
        return RecordAverage({}, None)
    counts, lengths = dict.fromkeys((topic for topic, _ in chosen), 0), dict.fromkeys((topic for topic, _ in chosen), 0)
    unread = set(counts)
    reader = plan_consumer(settings, {"fetch.message.max.bytes": "65536", "enable.partition.eof": "true"})
    try:
        reader.assign([TopicPartition(*tp, (logs[tp].begin + logs[tp].end) // 2) for tp in chosen])
        deadline = time.monotonic() + SAMPLE_S
        while unread and time.monotonic() < deadline:
            for message in reader.consume(500, 0.2):
                topic = str(message.topic())
                error = message.error()
                if error is None:
                    counts[topic] += 1
                    lengths[topic] += _length(message)
                if counts.get(topic, 0) >= SAMPLED_RECORDS or (error and error.code() == KafkaError._PARTITION_EOF):
                    unread.discard(topic)
    finally:
        reader.close()
    records = sum(counts.values())
    means = {topic: lengths[topic] / counts[topic] for topic in counts if counts[topic]}
    return RecordAverage(means, sum(lengths.values()) / records if records else None)


def plan_consumer(settings: FlowSettings, conf: Mapping[str, Any]) -> Consumer:
    """Return a consumer of the source that commits nothing."""
    base = client_settings.source_consumer(settings, "plan")
    needed = {"group.id": "lockstep-plan", "enable.auto.commit": "false", "log_level": "0"}
    return create_client(Consumer, {**base, **needed, **conf}, settings.flow.source)


def _length(message: Any) -> int:
    headers = message.headers() or ()
    parts = [message.key() or b"", message.value() or b"", *(value or b"" for _, value in headers)]
    return sum(map(len, parts)) + sum(len(name) for name, _ in headers) + BATCH_FRAME
