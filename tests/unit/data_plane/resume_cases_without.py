"""The cases of a resume whose clusters do not support a request, close the connection on it, or answer it wrongly."""

from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.resume_cases import (
    GAP_RESTART,
    GAP_SKIP,
    Cases,
    parted,
    replicas_catch_up,
    theirs,
    unreplicated,
)
from tests.unit.data_plane.resume_scene import OURS, Scene, row, source_of, target_of

EPOCHS, PRODUCERS = "offset_for_leader_epoch", "describe_producers"
COPIED = row(upstream_epoch=3)


def lying(log: MemoryLog, end: int = 0) -> MemoryLog:
    """Its leader answers that the epoch of what was copied ends there."""
    log.epoch_ends[3] = end
    return log


def truncated(count: int, end: int) -> MemoryLog:
    """As `parted`, and its leader answers 0, as it does of every log."""
    return lying(parted(count, end))


def removed(log: MemoryLog, offset: int) -> MemoryLog:
    """Others have appended behind, and retention has removed what is before that."""
    return theirs(log, 4).delete_before(offset)


CASES: Cases = {
    "no DescribeProducers, the log ends at the row": lambda: Scene(
        row(), source_of(12), target_of(10), without=[PRODUCERS]
    ),
    "no DescribeProducers, the log goes on": lambda: Scene(row(), source_of(14), target_of(12), without=[PRODUCERS]),
    "no DescribeProducers, the log goes on, not replicated": lambda: Scene(
        row(),
        source_of(14),
        unreplicated(target_of(10).append([10, 11], (OURS, 1)), 2),
        without=[PRODUCERS],
        later=replicas_catch_up,
    ),
    "no DescribeProducers, nothing is replicated": lambda: Scene(
        row(), source_of(14), unreplicated(target_of(10).append([10, 11], (OURS, 1)), 2), without=[PRODUCERS]
    ),
    "no DescribeProducers, the tail is gone": lambda: Scene(
        row(), source_of(14), removed(target_of(11), 12), without=[PRODUCERS]
    ),
    "no DescribeProducers, target truncated and grown": lambda: Scene(
        row(), source_of(12), theirs(target_of(10).truncate(6), 24), without=[PRODUCERS]
    ),
    "no DescribeProducers, no row, same names": lambda: Scene(
        None, source_of(12), theirs(target_of(3, (OURS, 0))), same_name=True, without=[PRODUCERS]
    ),
    "DescribeProducers closes the connection": lambda: Scene(
        row(), source_of(14), target_of(12), closes_on=[PRODUCERS]
    ),
    "DescribeProducers closes the connection, as all requests do": lambda: Scene(
        row(), source_of(14), target_of(12), closes_on=[PRODUCERS, "list_offsets"]
    ),
    "no OffsetForLeaderEpoch": lambda: Scene(COPIED, source_of(12), target_of(10), without=[EPOCHS]),
    "no OffsetForLeaderEpoch, source truncated": lambda: Scene(COPIED, parted(40, 7), target_of(10), without=[EPOCHS]),
    "no OffsetForLeaderEpoch, source truncated, skip": lambda: Scene(
        COPIED, parted(40, 7), target_of(10), [GAP_SKIP], without=[EPOCHS]
    ),
    "no OffsetForLeaderEpoch, source truncated, restart": lambda: Scene(
        COPIED, parted(40, 7), target_of(10), [GAP_RESTART], without=[EPOCHS]
    ),
    "no OffsetForLeaderEpoch, source ends before the row": lambda: Scene(
        COPIED, source_of(5), target_of(10), [GAP_SKIP], without=[EPOCHS]
    ),
    "no OffsetForLeaderEpoch, the record is gone": lambda: Scene(
        COPIED, source_of(14).delete_before(12), target_of(10), [GAP_SKIP], without=[EPOCHS]
    ),
    "no OffsetForLeaderEpoch, the record was compacted": lambda: Scene(
        COPIED, source_of(14).compact(9), target_of(10), without=[EPOCHS]
    ),
    "OffsetForLeaderEpoch closes the connection": lambda: Scene(
        COPIED, source_of(12), target_of(10), closes_on=[EPOCHS]
    ),
    "OffsetForLeaderEpoch answers 0": lambda: Scene(COPIED, lying(source_of(12)), target_of(10)),
    "OffsetForLeaderEpoch answers 0, the record was compacted": lambda: Scene(
        COPIED, lying(source_of(12).compact(9)), target_of(10)
    ),
    "OffsetForLeaderEpoch answers 0, records gone": lambda: Scene(
        COPIED, lying(source_of(14).delete_before(12)), target_of(10), [GAP_SKIP]
    ),
    "OffsetForLeaderEpoch answers 0, source truncated": lambda: Scene(COPIED, truncated(12, 7), target_of(10)),
}
