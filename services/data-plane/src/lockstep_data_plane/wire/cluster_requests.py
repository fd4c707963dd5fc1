"""Requests about topics and partitions, as kio's messages, in every version that is spoken (no I/O)."""

from collections.abc import Sequence
from typing import Any

from lockstep_data_plane.wire.kio_messages import has_field, message
from lockstep_protocol.offsets import TopicPartition

CONSUMER, DEBUGGING = -1, -2
"""Replica ids of offset requests: a consumer gets replicated offsets, a debugger all (`kafka-wire.md` §2)."""

ASKS_WITHOUT_CREATING = 4
"""The first version of Metadata that can ask about a topic without creating it. Older ones ask about every topic, which
creates none."""

RELIABLE_EPOCHS = 9
"""The first version of Metadata whose leader epochs can be sent back. Brokers before Kafka 2.4 name older ones while
partitions are reassigned (KAFKA-9212), and their leaders then refuse every fetch."""

KNOWS_ISOLATION = 2
"""The first version of ListOffsets that can ask for the last stable offset."""


def metadata_request(version: int, topics: Sequence[str] | None) -> Any:
    """Return a request for the metadata of these topics, or of every topic (None), that creates none. The answer may
    name others, too."""
    m = message("metadata", version, "request")
    if version < ASKS_WITHOUT_CREATING:
        return m.MetadataRequest(topics=() if topics is not None and not topics else None)
    topic_id = {"topic_id": None} if has_field(m.MetadataRequestTopic, "topic_id") else {}
    operations = ("include_cluster_authorized_operations", "include_topic_authorized_operations")
    return m.MetadataRequest(
        topics=None if topics is None else tuple(m.MetadataRequestTopic(name=name, **topic_id) for name in topics),
        allow_auto_topic_creation=False,
        **{field: False for field in operations if has_field(m.MetadataRequest, field)},
    )


def list_offsets_request(version: int, tp: TopicPartition, timestamp: int, replica_id: int, *, committed: bool) -> Any:
    """Return a request for one offset of a partition. It names no leader epoch, for any leader will do.

    Raises:
        ValueError: `committed`, and the version has no field for it.
    """
    m = message("list_offsets", version, "request")
    if committed and version < KNOWS_ISOLATION:
        raise ValueError(f"ListOffsets {version} cannot ask for the last stable offset")
    isolation = {"isolation_level": int(committed)} if version >= KNOWS_ISOLATION else {}
    partition = m.ListOffsetsPartition(partition_index=tp[1], timestamp=timestamp)
    topic = m.ListOffsetsTopic(name=tp[0], partitions=(partition,))
    return m.ListOffsetsRequest(replica_id=replica_id, topics=(topic,), **isolation)


def leader_epoch_request(version: int, tp: TopicPartition, current_epoch: int, leader_epoch: int) -> Any:
    """Return a request for the end of a leader epoch, to a leader of `current_epoch` (-1: of any)."""
    m = message("offset_for_leader_epoch", version, "request")
    partition = m.OffsetForLeaderPartition(
        partition=tp[1], current_leader_epoch=current_epoch, leader_epoch=leader_epoch
    )
    topic = m.OffsetForLeaderTopic(topic=tp[0], partitions=(partition,))
    replica = {"replica_id": CONSUMER} if has_field(m.OffsetForLeaderEpochRequest, "replica_id") else {}
    return m.OffsetForLeaderEpochRequest(topics=(topic,), **replica)
