"""Metadata of topics in all versions of the request (no I/O)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from lockstep_kafka.messages.message_versions import load_message, make_entity
from lockstep_state.kafka.kafka_errors import KafkaErrorCode

WITHOUT_CREATION = 4
"""The first version that can ask for a topic without creating it. Before it, all topics are asked for instead."""

RELIABLE_EPOCHS = 9
"""The first version whose leader epochs count, as in Java's clients.

Brokers before Kafka 2.4 may return an old epoch, and refuse it then (KAFKA-9212).
"""

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """The leader of a partition in the newest metadata."""

    broker: int
    epoch: int
    topic_id: UUID | None


class TopicMetadata(NamedTuple):
    """The metadata of one topic.

    `leaders` has the number, the leader and its epoch of each partition that has a leader. `topic_id` is None if the
    topic has none, or if the version does not return it.
    """

    name: str
    code: int
    topic_id: UUID | None = None
    partitions: int = 0
    leaders: Sequence[tuple[int, int, int]] = ()


def metadata_request(version: int, topics: Sequence[str] | None) -> Any:
    """Return a Metadata request for these topics, or for all topics (None), that never creates a topic."""
    m = load_message("metadata", version, "request")
    if topics and version < WITHOUT_CREATION:
        topics = None
    return make_entity(
        m.MetadataRequest,
        topics=None
        if topics is None
        else tuple(make_entity(m.MetadataRequestTopic, topic_id=None, name=name) for name in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def read_topics(answer: Any, requested: Sequence[str]) -> Iterator[TopicMetadata]:
    """Yield the metadata of the topics that were asked for.

    A topic that is missing in an answer about all topics does not exist.
    """
    version = int(answer.__version__)
    named = {str(topic.name): topic for topic in answer.topics if topic.name is not None}
    if version < WITHOUT_CREATION:
        for name in requested:
            if name not in named:
                yield TopicMetadata(name, int(KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        named = {name: named[name] for name in requested if name in named}
    for name, topic in named.items():
        exists = topic.error_code == KafkaErrorCode.NONE
        leaders = tuple(
            (int(p.partition_index), int(p.leader_id), int(p.leader_epoch) if version >= RELIABLE_EPOCHS else NO_EPOCH)
            for p in (topic.partitions if exists else ())
            if int(p.leader_id) >= 0
        )
        topic_id = getattr(topic, "topic_id", None) if exists else None  # from version 10 on
        yield TopicMetadata(name, int(topic.error_code), topic_id, len(topic.partitions), leaders)
