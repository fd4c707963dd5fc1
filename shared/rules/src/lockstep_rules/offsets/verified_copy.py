"""The check that a verification is about the present logs. Pure."""

from collections.abc import Mapping

from lockstep_rules.offsets.lag import is_of_another_log
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, VerifiedPartition


def count_decisions(progress: PartitionProgress) -> int:
    """Count the cases that were decided: the target may have lost records since, and got others at their offsets."""
    return sum(times for _, times in progress.gaps)


def is_about_copy(row: VerifiedPartition, progress: PartitionProgress) -> bool:
    """Return whether the row is about the same two logs, and no case was decided since."""
    ids = progress.source_topic_id, progress.target_topic_id
    return (row.source_topic_id, row.target_topic_id) == ids and row.decisions == count_decisions(progress)


def present_verification(
    row: VerifiedPartition | None, progress: PartitionProgress | None, topic: MirroredTopic | None
) -> VerifiedPartition | None:
    """Return the row if it is about the present copy; None: nothing of that copy is compared.

    A topic that was created again has another copy, also before its first record is copied.
    """
    if row is None or progress is None or is_of_another_log(progress, topic) or not is_about_copy(row, progress):
        return None
    return row


def find_verification(rows: Mapping[str, Row], tp: TopicPartition) -> VerifiedPartition | None:
    """Return the `present_verification` of a partition, by the rows of the state topic."""
    name, number = tp
    row = rows.get(VerifiedPartition.key_of(name, number))
    progress = rows.get(PartitionProgress.key_of(name, number))
    topic = rows.get(MirroredTopic.key_of(name))
    return present_verification(
        row if isinstance(row, VerifiedPartition) else None,
        progress if isinstance(progress, PartitionProgress) else None,
        topic if isinstance(topic, MirroredTopic) else None,
    )
