"""The cases of a resume where the target holds more than the row says, and counting does not tell what: the records of
both logs are compared.

What each resume does, `resume_cases.txt` has line by line."""

from tests.support.batch_bytes import record
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.resume_cases import (
    GAP_SKIP,
    PROGRESS_COUNTS,
    Cases,
    remembering,
    replicas_catch_up,
    theirs,
    unreplicated,
)
from tests.unit.data_plane.resume_scene import OURS, TRANSACTIONS, Scene, row, source_of, target_of

BEHIND_QUARANTINE = row(producer_epoch=2, sequence=-1, skips=((10, 10),), quarantined=1)


def past_quarantine() -> MemoryLog:
    """The target's log: records 11 and 12 were appended behind the one that was refused."""
    return target_of(10).append([11, 12], (OURS, 2), sequence=0)


def same(count: int, first: int = 0) -> MemoryLog:
    """A source's log that holds the same record again and again."""
    log = MemoryLog(start=first, end=first)
    for _ in range(first, count):
        log.append_records([record(0, b"same", timestamp=1000)])
    return log


CASES: Cases = {
    "a compacted tail, remembered": lambda: Scene(
        row(), source_of(16), target_of(14).compact(12, 13), tombstones_kept_ms=1
    ),
    "a compacted tail, remembered, its end not replicated": lambda: Scene(
        row(),
        source_of(16),
        unreplicated(theirs(target_of(10).append([10, 11], (OURS, 1)).compact(10, 11)).append([12], (OURS, 1)), 1),
        later=replicas_catch_up,
    ),
    "a whole tail that is gone, remembered": lambda: Scene(row(), source_of(16), target_of(14).delete_before(14)),
    "a tail that is gone, forgotten": lambda: Scene(row(), source_of(16), target_of(14).delete_before(14).forget()),
    "a tail that is gone, forgotten, progress": lambda: Scene(
        row(), source_of(16), target_of(14).delete_before(14).forget(), [PROGRESS_COUNTS]
    ),
    "the source lost some that are there": lambda: Scene(row(), source_of(16).delete_before(12), target_of(14)),
    "the source lost all that are there": lambda: Scene(row(), source_of(20).delete_before(18), target_of(14)),
    "the source lost all that are there, skip": lambda: Scene(
        row(), source_of(20).delete_before(18), target_of(14), [GAP_SKIP]
    ),
    "the source lost some, keys compacted": lambda: Scene(
        row(), source_of(16).delete_before(12), target_of(14).compact(10, 12), tombstones_kept_ms=1
    ),
    "the same record twice": lambda: Scene(
        row(),
        same(16).delete_before(12),
        target_of(10).append_records([record(0, b"same", timestamp=1000)] * 3, (OURS, 1)),
    ),
    "too much to compare": lambda: Scene(
        row(), source_of(16).delete_before(12), remembering(target_of(10).delete_before(14), 300_000)
    ),
    "counting went wrong": lambda: Scene(
        row(upstream=8, downstream=8, sequence=8), source_of(16), target_of(12), remembers=row(), counting_failed=True
    ),
    "counting went wrong, records are not the source's": lambda: Scene(
        row(), source_of(16), target_of(10).append([40, 41], (OURS, 1)), remembers=row(), counting_failed=True
    ),
    "counting went wrong, records in another order": lambda: Scene(
        row(), source_of(16), target_of(10).append([11, 10], (OURS, 1)), remembers=row(), counting_failed=True
    ),
    "counting went wrong, nothing beyond": lambda: Scene(
        row(), source_of(16), target_of(10), remembers=row(), counting_failed=True
    ),
    "counting went wrong, a record is in quarantine": lambda: Scene(
        BEHIND_QUARANTINE, source_of(16), past_quarantine(), remembers=BEHIND_QUARANTINE, counting_failed=True
    ),
    "the source lost some, a record is in quarantine": lambda: Scene(
        BEHIND_QUARANTINE, source_of(16).delete_before(11), past_quarantine()
    ),
    "a record is in quarantine, transactions begin": lambda: Scene(
        BEHIND_QUARANTINE, source_of(16), past_quarantine(), [TRANSACTIONS]
    ),
    "counting went wrong, the source is shorter": lambda: Scene(
        row(), source_of(12), target_of(14), remembers=row(), counting_failed=True
    ),
    "counting went wrong, the source was truncated and grew": lambda: Scene(
        row(), theirs(source_of(12), 4), target_of(14), remembers=row(), counting_failed=True
    ),
    "counting went wrong, a record was left out of the copy": lambda: Scene(
        row(), source_of(16), target_of(10).append([10, 12, 13], (OURS, 1)), remembers=row(), counting_failed=True
    ),
    "counting went wrong, the source was truncated and grew, skip": lambda: Scene(
        row(), theirs(source_of(12), 4), target_of(14), [GAP_SKIP], remembers=row(), counting_failed=True
    ),
}
