"""The cases of a resume that the records' own sequences decide, in one table. `resume_cases_compared.py` has those
where the records of both logs are compared, `resume_cases_fenced.py` those of transactions and of partitions that
rest.

What each resume does, `resume_cases.txt` has line by line."""

from collections.abc import Callable

from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.memory_cluster import MemoryLog
from tests.support.reasons import reported
from tests.unit.data_plane.resume_scene import OTHER, OURS, Scene, row, source_of, target_of

Cases = dict[str, Callable[[], Scene]]

GAP_SKIP, GAP_RESTART = "lockstep.on.gap = skip", "lockstep.on.gap = restart"
RECREATE_SKIP, RECREATE_RESTART = "lockstep.on.recreate = skip", "lockstep.on.recreate = restart"
PROGRESS_COUNTS = "lockstep.on.doubt = progress"
LAST_EPOCH = 32_767
BEGINS = row(sequence=-1, upstream=-1, downstream=-1)
"""Nothing was appended in this epoch yet."""


def theirs(log: MemoryLog, count: int = 1, producer_id: int = 77) -> MemoryLog:
    """Somebody else appends there."""
    return log.append(range(900, 900 + count), (producer_id, 0))


def of_mm2(count: int) -> MemoryLog:
    """MirrorMaker 2 has copied so many, with a producer that has no id, as is its default."""
    return MemoryLog().append(range(count))


def remembering(log: MemoryLog, sequence: int, epoch: int = 1, producer_id: int = OURS) -> MemoryLog:
    """The leader remembers that."""
    log.remembered[producer_id] = epoch, sequence
    return log


def unreplicated(log: MemoryLog, offsets: int) -> MemoryLog:
    """So many at its end are not replicated yet."""
    log.unreplicated = offsets
    return log


def parted(count: int, end: int) -> MemoryLog:
    """A log of so many records that was truncated: leader epoch 3 ends there, and the rest is of the next one."""
    log = source_of(count).truncate(end)
    log.epoch_ends[3], log.leader_epoch = end, 4
    for number in range(end, count):
        log.append([number])
    return log


def regrown(log: MemoryLog, end: int) -> MemoryLog:
    """The log was truncated, and somebody else has appended since."""
    return theirs(log.truncate(end), 30 - end)


def row_comes(late: PartitionProgress) -> Callable[[Scene], None]:
    def come(scene: Scene) -> None:
        scene.rows["t", 0] = late

    return come


def replicas_catch_up(scene: Scene) -> None:
    scene.target.unreplicated = 0


FIRST: Cases = {
    "no row": lambda: Scene(None, source_of(12), target_of(0)),
    "no row, latest": lambda: Scene(None, source_of(12), target_of(0), ["A.consumer.auto.offset.reset = latest"]),
    "no row, a start time": lambda: Scene(
        None, source_of(12), target_of(0), ["lockstep.start.timestamp = 1970-01-01T00:00:01.005Z"]
    ),
    "no row, a start time to come": lambda: Scene(
        None, source_of(12), target_of(0), ["lockstep.start.timestamp = 2020-01-01T00:00:00Z"]
    ),
    "no row, MM2's progress": lambda: Scene(None, source_of(12), of_mm2(6), committed=5),
    "no row, MM2's progress, and MM2 was idempotent": lambda: Scene(
        None, source_of(12), target_of(6, (77, 0)), committed=5
    ),
    "no row, MM2's progress is behind, and MM2 was idempotent": lambda: Scene(
        None, source_of(12), target_of(6, (77, 0)), committed=3
    ),
    "no row, MM2's progress, and another idempotent producer": lambda: Scene(
        None, source_of(12), theirs(of_mm2(6)), committed=5
    ),
    "no row, no progress, and MM2 was idempotent": lambda: Scene(None, source_of(12), target_of(6, (77, 0))),
    "no row, MM2's progress, latest and a start time": lambda: Scene(
        None,
        source_of(12),
        of_mm2(6),
        ["A.consumer.auto.offset.reset = latest", "lockstep.start.timestamp = 1970-01-01T00:00:01.009Z"],
        committed=5,
    ),
    "no row, MM2's progress before the log's start": lambda: Scene(
        None, source_of(12).delete_before(9), of_mm2(6), [GAP_SKIP], committed=5
    ),
    "no row, ours on the target": lambda: Scene(None, source_of(12), target_of(3, (OURS, 0))),
    "no row, ours on the target, progress": lambda: Scene(
        None, source_of(12), target_of(3, (OURS, 0)), [PROGRESS_COUNTS], committed=1
    ),
    "no row, ours on the target, its row comes": lambda: Scene(
        None, source_of(12), target_of(3, (OURS, 1)), later=row_comes(row(upstream=1, downstream=1, sequence=1))
    ),
    "no row, ours remembered by the leader only": lambda: Scene(
        None, source_of(12), remembering(MemoryLog().delete_before(5), 4, epoch=0)
    ),
    "no row, passed on before": lambda: Scene(None, source_of(12), target_of(3, (OTHER, 0)), others=[OTHER]),
    "no row, ours far behind others": lambda: Scene(
        None, source_of(12), theirs(target_of(3, (OURS, 0)).forget(), 1100)
    ),
    "no row, a topic created again a moment ago": lambda: Scene(
        None, source_of(12), target_of(0), topic_ids=("AAAAAAAAAAAAAAAAAAAAAw", "")
    ),
    "a row that has not begun": lambda: Scene(BEGINS, source_of(12), target_of(0)),
    "a row that has not begun, its log has": lambda: Scene(BEGINS, source_of(12), target_of(3)),
    "a row that has not begun, its log has, not replicated": lambda: Scene(
        BEGINS, source_of(12), unreplicated(target_of(2), 2), later=replicas_catch_up
    ),
    "a row that has not begun, ours in front": lambda: Scene(
        row(sequence=-1, upstream=4, downstream=4), source_of(12), target_of(5)
    ),
    "a row that has not begun, a former epoch in front": lambda: Scene(
        row(sequence=-1, upstream=4, downstream=4, producer_epoch=2), source_of(12), target_of(5)
    ),
}

GOES_ON: Cases = {
    "the log ends at the row": lambda: Scene(row(), source_of(12), target_of(10)),
    "a located row": lambda: Scene(row(located=True), source_of(12), target_of(10)),
    "a halted row": lambda: Scene(
        row(phase="halted", case="in-doubt", cause=reported("why")), source_of(12), target_of(10)
    ),
    "the log goes on": lambda: Scene(row(), source_of(14), target_of(12)),
    "the log goes on, sequences begin again": lambda: Scene(
        row(sequence=2**31 - 2),
        source_of(14),
        MemoryLog(start=10, end=10).append([10, 11], (OURS, 1), sequence=2**31 - 1),
    ),
    "the log goes on, not replicated": lambda: Scene(
        row(), source_of(14), unreplicated(target_of(10).append([10, 11], (OURS, 1)), 2), later=replicas_catch_up
    ),
    "the producer is forgotten": lambda: Scene(row(), source_of(12), target_of(10).forget()),
    "the log goes on, the producer is forgotten": lambda: Scene(row(), source_of(14), target_of(12).forget()),
    "ids passed on": lambda: Scene(
        row(others=((OTHER, 1),), downstream=11, upstream=11),
        source_of(16),
        target_of(10).append([10, 11], (OTHER, 1)).append([12], (OTHER, 1)).append([13], (OURS, 1)),
        others=[OTHER],
    ),
    "an id passed on for the first time": lambda: Scene(
        row(), source_of(16), target_of(10).append([10, 11], (OTHER, 1)), meanwhile=[OTHER]
    ),
    "others append there": lambda: Scene(row(), source_of(14), theirs(target_of(10).append([10], (OURS, 1)), 3)),
    "same names, others append": lambda: Scene(row(), source_of(14), theirs(target_of(10), 3).forget(), same_name=True),
    "same names, others and ours": lambda: Scene(
        row(), source_of(14), theirs(theirs(target_of(10), 3).append([10], (OURS, 1)), 2), same_name=True
    ),
    "same names, something is gone": lambda: Scene(
        row(), source_of(14), theirs(target_of(10).delete_before(12)).forget(), same_name=True
    ),
    "read committed": lambda: Scene(
        row(), source_of(14), target_of(12), ["A.consumer.isolation.level = read_committed"]
    ),
    "what the slot knows is newer": lambda: Scene(
        row(), source_of(14), target_of(12), remembers=row(upstream=11, downstream=11, sequence=11)
    ),
    "another slot has decided": lambda: Scene(
        row(producer_epoch=2, sequence=-1),
        source_of(14),
        target_of(10),
        remembers=row(upstream=8, downstream=8, sequence=8),
    ),
}

GAPS: Cases = {
    "records gone": lambda: Scene(row(), source_of(14).delete_before(12), target_of(10)),
    "records gone, skip": lambda: Scene(
        row(skips=((11, 11),)), source_of(14).delete_before(12), target_of(10), [GAP_SKIP]
    ),
    "records gone, restart": lambda: Scene(row(), source_of(14).delete_before(12), target_of(10), [GAP_RESTART]),
    "source truncated": lambda: Scene(row(upstream_epoch=3), parted(12, 7), target_of(10)),
    "source truncated by one": lambda: Scene(row(upstream_epoch=3), parted(12, 9), target_of(10)),
    "source truncated, skip": lambda: Scene(row(upstream_epoch=3), parted(12, 7), target_of(10), [GAP_SKIP]),
    "source truncated, restart": lambda: Scene(row(upstream_epoch=3), parted(12, 7), target_of(10), [GAP_RESTART]),
    "source ends before the row": lambda: Scene(row(), source_of(5), target_of(10), [GAP_SKIP]),
    "source's leader epoch is right": lambda: Scene(row(upstream_epoch=3), parted(12, 12), target_of(10)),
    "target truncated": lambda: Scene(row(), source_of(12), target_of(6)),
    "target truncated, skip": lambda: Scene(row(), source_of(12), target_of(6), [GAP_SKIP]),
    "target truncated, restart": lambda: Scene(row(), source_of(12), target_of(6), [GAP_RESTART]),
    "target truncated and grown": lambda: Scene(row(), source_of(12), regrown(target_of(10), 6)),
    "target truncated and grown, skip": lambda: Scene(row(), source_of(12), regrown(target_of(10), 6), [GAP_SKIP]),
    "target knows an earlier sequence": lambda: Scene(
        row(), source_of(12), remembering(theirs(target_of(9)), 8), same_name=True
    ),
    "source re-created": lambda: Scene(row(), source_of(12), target_of(10)).recreate("source", source_of(5)),
    "source re-created, skip": lambda: Scene(row(), source_of(12), target_of(10), [RECREATE_SKIP]).recreate(
        "source", source_of(5)
    ),
    "source re-created, restart": lambda: Scene(
        row(open_run=(0, 0, 10)), source_of(12), target_of(10), [RECREATE_RESTART]
    ).recreate("source", source_of(5)),
    "target re-created": lambda: Scene(row(), source_of(12), target_of(10)).recreate("target", MemoryLog()),
    "target re-created, skip": lambda: Scene(row(), source_of(12), target_of(10), [RECREATE_SKIP]).recreate(
        "target", MemoryLog()
    ),
    "target re-created, restart": lambda: Scene(row(), source_of(12), target_of(10), [RECREATE_RESTART]).recreate(
        "target", MemoryLog()
    ),
    "topic ids are not known": lambda: Scene(row(source_topic_id="", target_topic_id=""), source_of(12), target_of(10)),
    "a later epoch in the log": lambda: Scene(row(), source_of(14), target_of(10).append([10], (OURS, 4))),
    "a later epoch in the log, progress": lambda: Scene(
        row(), source_of(14), target_of(10).append([10], (OURS, 4)), [PROGRESS_COUNTS]
    ),
    "a later epoch in the leader's memory": lambda: Scene(
        row(), source_of(14), remembering(target_of(10), 3, epoch=5, producer_id=OTHER), others=[OTHER]
    ),
    "no epoch is left": lambda: Scene(
        row(producer_epoch=LAST_EPOCH), source_of(14).delete_before(12), target_of(10, (OURS, LAST_EPOCH)), [GAP_SKIP]
    ),
    "gaps were counted before": lambda: Scene(
        row(gaps=(("in-doubt", 2), ("records-gone", 1)), given_up=7),
        source_of(14).delete_before(12),
        target_of(10),
        [GAP_SKIP],
    ),
}

ALTERED = row(sequence=-1, producer_epoch=2, upstream=4, begins="altered", given_up=3, target_lost=2, quarantined=1)
RESET = row(sequence=-1, producer_epoch=2, upstream=-1, begins="reset", gaps=(("records-gone", 1),))
MARKER = row(producer_id=6000, producer_epoch=0, left_epoch=4)
"""The row of a release with `lockstep.fence=marker`."""

BEGINS_ANEW: Cases = {
    "altered": lambda: Scene(ALTERED, source_of(12), target_of(10)),
    "altered, the target goes on": lambda: Scene(ALTERED, source_of(14), target_of(12)),
    "altered to what is gone": lambda: Scene(ALTERED, source_of(12).delete_before(8), target_of(10)),
    "altered to what is gone, skip": lambda: Scene(ALTERED, source_of(12).delete_before(8), target_of(10), [GAP_SKIP]),
    "altered, under another id": lambda: Scene(
        row(sequence=-1, producer_id=6000, producer_epoch=1, left_epoch=4, upstream=4, begins="altered"),
        source_of(12),
        target_of(10, (6000, 0)),
    ),
    "reset": lambda: Scene(RESET, source_of(12), target_of(10)),
    "reset, MM2's progress": lambda: Scene(RESET, source_of(12), target_of(10), committed=6),
    "another id": lambda: Scene(MARKER, source_of(12), target_of(10, (6000, 0))),
    "another id, the log goes on": lambda: Scene(MARKER, source_of(14), target_of(12, (6000, 0))),
    "another id, records gone": lambda: Scene(
        MARKER, source_of(14).delete_before(12), target_of(10, (6000, 0)), [GAP_SKIP]
    ),
    "another id, target truncated": lambda: Scene(MARKER, source_of(14), target_of(6, (6000, 0))),
    "another id, ours in front": lambda: Scene(
        row(producer_id=6000, producer_epoch=0, left_epoch=0, downstream=11, sequence=9),
        source_of(14),
        MemoryLog().append([0, 1], (OURS, 1)).append(range(10), (6000, 0)),
    ),
    "former transactions": lambda: Scene(
        row(transactional=True, producer_id=7000, producer_epoch=3, sequence=-1, left_epoch=1),
        source_of(14),
        target_of(12, (7000, 3)).end_transaction((7000, 3), commit=True),
        committed=11,
    ),
    "former transactions, nothing committed": lambda: Scene(
        row(transactional=True, producer_id=7000, producer_epoch=3, sequence=-1),
        source_of(14),
        target_of(10, (7000, 3)),
    ),
    "former transactions, altered": lambda: Scene(
        row(
            transactional=True,
            producer_id=7000,
            producer_epoch=4,
            sequence=-1,
            left_epoch=1,
            upstream=3,
            begins="altered",
        ),
        source_of(14),
        target_of(10, (7000, 3)),
        committed=9,
    ),
}

QUARANTINES: Cases = {
    "quarantine": lambda: Scene(row(), source_of(14), target_of(10), remembers=row(), quarantines=((11, 12),)),
    "quarantine, some before": lambda: Scene(
        row(),
        source_of(16),
        target_of(10),
        remembers=row(skips=((10, 10),), quarantined=1),
        quarantines=((12, 12), (14, 14)),
    ),
    "quarantine, the log goes on": lambda: Scene(
        row(), source_of(14), target_of(11), remembers=row(), quarantines=((11, 12),)
    ),
    "quarantine, target truncated": lambda: Scene(
        row(), source_of(14), target_of(6), remembers=row(), quarantines=((11, 12),)
    ),
    "quarantine, no epoch is left": lambda: Scene(
        row(),
        source_of(14),
        target_of(10, (OURS, LAST_EPOCH)),
        remembers=row(producer_epoch=LAST_EPOCH),
        quarantines=((11, 12),),
    ),
}

CASES: Cases = FIRST | GOES_ON | GAPS | BEGINS_ANEW | QUARANTINES
