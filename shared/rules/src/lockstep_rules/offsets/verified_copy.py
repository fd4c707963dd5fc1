"""Whether the comparison of a copy is about the logs that there are now. Pure.

The slots that compare, `lockstep verify`, the evidence of a switch and the metrics ask here.
"""

from collections.abc import Mapping

from lockstep_rules.offsets.lag import is_of_another_log
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, VerifiedPartition


def count_decisions(progress: PartitionProgress) -> int:
    """How many cases were decided: the target may have lost records since, and got others in their places."""
    return sum(times for _, times in progress.gaps)


def is_about_copy(row: VerifiedPartition, progress: PartitionProgress) -> bool:
    """Whether the row is about the same two logs, and no case was decided since that may have changed what is before
    its position."""
    ids = progress.source_topic_id, progress.target_topic_id
    return (row.source_topic_id, row.target_topic_id) == ids and row.decisions == count_decisions(progress)


def present_verification(
    row: VerifiedPartition | None, progress: PartitionProgress | None, topic: MirroredTopic | None
) -> VerifiedPartition | None:
    """The row if it is about the copy that there is now; None: nothing of that copy is compared. A topic that was
    created again has another copy, also before the first record of it is copied."""
    if row is None or progress is None or is_of_another_log(progress, topic) or not is_about_copy(row, progress):
        return None
    return row


def find_verification(rows: Mapping[str, Row], where: TopicPartition) -> VerifiedPartition | None:
    """`present_verification` of a partition, by the rows of the state topic."""
    name, number = where
    row = rows.get(VerifiedPartition(topic=name, partition=number).key())
    progress = rows.get(PartitionProgress(topic=name, partition=number).key())
    topic = rows.get(MirroredTopic(source_topic=name, target_topic="").key())
    return present_verification(
        row if isinstance(row, VerifiedPartition) else None,
        progress if isinstance(progress, PartitionProgress) else None,
        topic if isinstance(topic, MirroredTopic) else None,
    )
