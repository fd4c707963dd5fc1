"""The assignment of partitions to the slots that compare them (no I/O)."""

from collections.abc import Iterable
from zlib import crc32

from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic


def comparing_slot(tp: TopicPartition, slots: int) -> int:
    """Return the slot that compares the partition.

    It depends on the arguments only, so no two slots compare the same partition. The partitions of a topic are shared
    evenly.
    """
    return (crc32(tp[0].encode()) + tp[1]) % slots


def copied_partitions(topics: Iterable[MirroredTopic], *, by_key: bool) -> list[TopicPartition]:
    """Return the partitions of the source that have a copy, in order."""
    return sorted(
        (topic.source_topic, number)
        for topic in topics
        if topic.phase == "mirrored"
        for number in range(topic.copied(by_key=by_key))
    )
