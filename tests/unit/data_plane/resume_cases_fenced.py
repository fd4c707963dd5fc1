"""The cases of a resume in transactions, of partitions that are chosen by key, and of those that rest."""

from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.resume_cases import (
    ALTERED,
    GAP_RESTART,
    GAP_SKIP,
    MARKER,
    PROGRESS_COUNTS,
    RECREATE_RESTART,
    RECREATE_SKIP,
    RESET,
    Cases,
    of_mm2,
    parted,
    theirs,
)
from tests.unit.data_plane.resume_scene import FIRST_ID, OURS, TRANSACTIONS, Scene, row, source_of, target_of

OURS_FENCED = (7000, 0)
COMMITTED = row(transactional=True, producer_id=7000, producer_epoch=0, sequence=-1, left_epoch=1)
"""Records 0 to 9 are committed."""
SOURCE_AGAIN, TARGET_AGAIN = ("AAAAAAAAAAAAAAAAAAAAAg", FIRST_ID), (FIRST_ID, "AAAAAAAAAAAAAAAAAAAAAw")
"""Topic ids that topic-sync has seen since that topic was created again."""


def committed_log(count: int) -> MemoryLog:
    """Copies of records 0 and so on, and the marker behind them."""
    log = MemoryLog().append(range(count), OURS_FENCED, transactional=True)
    return log.end_transaction(OURS_FENCED, commit=True)


def known(scene: Scene, epoch: int = 0) -> Scene:
    """The coordinator knows the partition's transactional id."""
    scene.clusters[1].producers["lockstep-A-B-t-0"] = OURS_FENCED[0], epoch
    return scene


def fails_first(scene: Scene, *codes: int) -> Scene:
    """The coordinator answers InitProducerId so at first."""
    scene.clusters[1].fencing_codes += codes
    return scene


def in_transactions(row_of_it: object, source: MemoryLog, target: MemoryLog, *lines: str, **more: object) -> Scene:
    """With transactions in the file, and an id that the coordinator knows."""
    return known(Scene(row_of_it, source, target, [TRANSACTIONS, *lines], **more))  # type: ignore[arg-type]  # as Scene


FENCED: Cases = {
    "transactions: no row": lambda: Scene(None, source_of(12), target_of(0), [TRANSACTIONS]),
    "transactions: no row, MM2's progress": lambda: Scene(None, source_of(12), of_mm2(6), [TRANSACTIONS], committed=5),
    "transactions: no row, committed progress": lambda: Scene(
        None, source_of(12), committed_log(6), [TRANSACTIONS], committed=5
    ),
    "transactions: no row, committed progress was lost": lambda: Scene(
        None, source_of(12), committed_log(6), [TRANSACTIONS]
    ),
    "transactions: no row, appended without them before": lambda: Scene(
        None, source_of(12), target_of(6), [TRANSACTIONS], committed=3
    ),
    "transactions: committed progress was lost": lambda: in_transactions(COMMITTED, source_of(14), committed_log(12)),
    "transactions: committed progress was lost behind the last one": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(10)
    ),
    "transactions: no row, ours on the target": lambda: Scene(None, source_of(12), target_of(3), [TRANSACTIONS]),
    "transactions: committed as the row says": lambda: in_transactions(
        COMMITTED, source_of(12), committed_log(10), committed=9
    ),
    "transactions: committed beyond the row": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(12), committed=11
    ),
    "transactions: committed less than the row": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(10), committed=4
    ),
    "transactions: nothing committed": lambda: in_transactions(COMMITTED, source_of(14), committed_log(10)),
    "transactions: located": lambda: in_transactions(
        row(transactional=True, producer_id=7000, sequence=-1, located=True),
        source_of(12),
        committed_log(10),
        committed=9,
    ),
    "transactions: one is open": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(10).append([10, 11], OURS_FENCED, transactional=True), committed=9
    ),
    "transactions: somebody else fences meanwhile": lambda: fails_first(
        in_transactions(COMMITTED, source_of(12), committed_log(10), committed=9), 90
    ),
    "transactions: the coordinator still ends one": lambda: fails_first(
        in_transactions(COMMITTED, source_of(12), committed_log(10), committed=9), 51, 51
    ),
    "transactions: source truncated below committed": lambda: in_transactions(
        row(transactional=True, producer_id=7000, sequence=-1, upstream_epoch=3),
        parted(14, 7),
        committed_log(12),
        committed=11,
    ),
    "transactions: source truncated, skip": lambda: in_transactions(
        row(transactional=True, producer_id=7000, sequence=-1, upstream_epoch=3),
        parted(14, 7),
        committed_log(12),
        GAP_SKIP,
        committed=11,
    ),
    "transactions: same names": lambda: in_transactions(
        COMMITTED, source_of(14), theirs(committed_log(12), 3), committed=11, same_name=True
    ),
    "transactions: same names, switched on": lambda: Scene(
        row(), source_of(14), theirs(target_of(12), 3), [TRANSACTIONS], same_name=True
    ),
    "transactions: records gone": lambda: in_transactions(
        COMMITTED, source_of(14).delete_before(12), committed_log(10), committed=9
    ),
    "transactions: records gone, skip": lambda: in_transactions(
        COMMITTED, source_of(14).delete_before(12), committed_log(10), GAP_SKIP, committed=9
    ),
    "transactions: records gone, nothing committed": lambda: in_transactions(
        COMMITTED, source_of(14).delete_before(12), committed_log(10), GAP_SKIP
    ),
    "transactions: target truncated": lambda: in_transactions(COMMITTED, source_of(14), target_of(6), committed=9),
    "transactions: target truncated, restart": lambda: in_transactions(
        COMMITTED, source_of(14), target_of(6), GAP_RESTART, committed=9
    ),
    "transactions: target truncated, skip": lambda: in_transactions(
        COMMITTED, source_of(14), target_of(6), GAP_SKIP, committed=9
    ),
    "transactions: target re-created": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(10), RECREATE_SKIP, committed=9
    ).recreate("target", MemoryLog()),
    "transactions: source re-created": lambda: in_transactions(
        COMMITTED, source_of(14), committed_log(10), RECREATE_RESTART, committed=9
    ).recreate("source", source_of(5)),
    "transactions: switched on": lambda: Scene(row(), source_of(14), target_of(10), [TRANSACTIONS]),
    "transactions: switched on, the log goes on": lambda: Scene(row(), source_of(14), target_of(12), [TRANSACTIONS]),
    "transactions: switched on, older progress": lambda: Scene(
        row(), source_of(14), target_of(12), [TRANSACTIONS], committed=4
    ),
    "transactions: switched on, newer progress": lambda: Scene(
        row(), source_of(14), target_of(12), [TRANSACTIONS], committed=12
    ),
    "transactions: switched on, the same record twice": lambda: Scene(
        row(), source_of(14), target_of(10).append([11, 11], (OURS, 1)), [TRANSACTIONS, PROGRESS_COUNTS]
    ),
    "transactions: switched on, a former fence": lambda: Scene(
        MARKER, source_of(14), target_of(12, (6000, 0)), [TRANSACTIONS]
    ),
    "transactions: switched on, source re-created, restart": lambda: Scene(
        row(), source_of(14), target_of(12), [TRANSACTIONS, RECREATE_RESTART], committed=11, topic_ids=SOURCE_AGAIN
    ).recreate("source", source_of(14)),
    "transactions: switched on, target truncated, restart": lambda: Scene(
        row(), source_of(14), target_of(6), [TRANSACTIONS, GAP_RESTART], committed=9
    ),
    "transactions: altered": lambda: in_transactions(
        row(
            transactional=True,
            producer_id=7000,
            producer_epoch=1,
            sequence=-1,
            upstream=3,
            begins="altered",
            left_epoch=1,
        ),
        source_of(14),
        committed_log(10),
        committed=9,
    ),
    "transactions: altered before they were switched on": lambda: Scene(
        ALTERED, source_of(14), target_of(10), [TRANSACTIONS], committed=8
    ),
    "transactions: reset": lambda: in_transactions(RESET, source_of(14), target_of(10), committed=8),
    "transactions: reset, nothing committed": lambda: in_transactions(RESET, source_of(14), target_of(10)),
}


def switched_off(source: MemoryLog, target: MemoryLog, *lines: str, **more: object) -> Scene:
    """Transactions are no longer in the file. Records 0 to 11 were copied in them."""
    return known(Scene(COMMITTED, source, target, lines, **more))  # type: ignore[arg-type]  # as Scene


SWITCHED_OFF: Cases = {
    "transactions: switched off": lambda: switched_off(source_of(14), committed_log(12), committed=11),
    "transactions: switched off, committed progress was lost": lambda: switched_off(source_of(14), committed_log(12)),
    "transactions: switched off, records gone": lambda: switched_off(
        source_of(16).delete_before(14), committed_log(12), GAP_SKIP, committed=11
    ),
    "transactions: switched off, source truncated": lambda: switched_off(source_of(7), committed_log(12), committed=11),
    "transactions: switched off, target truncated": lambda: switched_off(source_of(14), target_of(6), committed=9),
    "transactions: switched off, target truncated, restart": lambda: switched_off(
        source_of(14), target_of(6), GAP_RESTART, committed=9
    ),
    "transactions: switched off, source re-created": lambda: switched_off(
        source_of(14), committed_log(12), committed=11, topic_ids=SOURCE_AGAIN
    ).recreate("source", source_of(14)),
    "transactions: switched off, source re-created, restart": lambda: switched_off(
        source_of(14), committed_log(12), RECREATE_RESTART, committed=11, topic_ids=SOURCE_AGAIN
    ).recreate("source", source_of(14)),
    "transactions: switched off, target re-created": lambda: switched_off(
        source_of(14), committed_log(12), committed=11, topic_ids=TARGET_AGAIN
    ).recreate("target", MemoryLog()),
    "transactions: switched off, target re-created, restart": lambda: switched_off(
        source_of(14), committed_log(12), RECREATE_RESTART, committed=11, topic_ids=TARGET_AGAIN
    ).recreate("target", MemoryLog()),
}

KEYED: Cases = {
    "by key: no row": lambda: Scene(None, source_of(12), target_of(0), [TRANSACTIONS], by_key=True),
    "by key: committed": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(2), [TRANSACTIONS], committed=11, by_key=True)
    ),
    "by key: records gone, skip": lambda: known(
        Scene(
            COMMITTED,
            source_of(14).delete_before(12),
            committed_log(2),
            [TRANSACTIONS, GAP_SKIP],
            committed=9,
            by_key=True,
        )
    ),
    "by key: target re-created, restart": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(2), [TRANSACTIONS, RECREATE_RESTART], committed=9, by_key=True)
    ).recreate("target", MemoryLog()),
    "by key: kept partitions before": lambda: Scene(row(), source_of(14), target_of(12), [TRANSACTIONS], by_key=True),
    "by key: altered": lambda: known(
        Scene(
            row(transactional=True, producer_id=7000, sequence=-1, upstream=3, begins="altered", downstream=-1),
            source_of(14),
            committed_log(2),
            [TRANSACTIONS],
            committed=9,
            by_key=True,
        )
    ),
}


def without_source(scene: Scene, *, silent: bool = False) -> Scene:
    """The source's brokers are gone, or freeze with their connections open."""
    source, _ = scene.clusters
    source.away, source.silent = not silent, silent
    return scene


PAUSE_FACTOR: Cases = {
    "rests: no row": lambda: Scene(None, source_of(12), target_of(0), rests=True),
    "rests: altered": lambda: Scene(ALTERED, source_of(12), target_of(10), rests=True),
    "rests: in doubt since its row was lost": lambda: Scene(
        row(sequence=-1, begins="lost"), source_of(12), target_of(10), rests=True
    ),
    "rests: the log ends at the row": lambda: Scene(row(), source_of(12), target_of(10), rests=True),
    "rests: the log goes on": lambda: Scene(row(), source_of(14), target_of(12), rests=True),
    "rests: records gone, nothing beyond": lambda: Scene(
        row(), source_of(14).delete_before(12), target_of(10), [GAP_SKIP], rests=True
    ),
    "rests: the source lost some that are there": lambda: Scene(
        row(), source_of(16).delete_before(12), target_of(14), rests=True
    ),
    "rests: the source lost all that are there": lambda: Scene(
        row(), source_of(20).delete_before(18), target_of(14), rests=True
    ),
    "rests: target truncated": lambda: Scene(row(), source_of(14), target_of(6), [GAP_SKIP], rests=True),
    "rests: target re-created": lambda: Scene(row(), source_of(14), target_of(10), rests=True).recreate(
        "target", MemoryLog()
    ),
    "rests: a later epoch": lambda: Scene(row(), source_of(14), target_of(10).append([10], (OURS, 4)), rests=True),
    "rests: another id": lambda: Scene(MARKER, source_of(14), target_of(12, (6000, 0)), rests=True),
    "rests: in transactions": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(12), [TRANSACTIONS], committed=11, rests=True)
    ),
    "rests: in transactions, one is open": lambda: known(
        Scene(
            COMMITTED,
            source_of(14),
            committed_log(10).append([10, 11], OURS_FENCED, transactional=True),
            committed=9,
            rests=True,
        )
    ),
    "rests: in transactions, target truncated": lambda: known(
        Scene(COMMITTED, source_of(14), target_of(6), [TRANSACTIONS], committed=9, rests=True)
    ),
    "rests: in transactions, target re-created": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(10), [TRANSACTIONS], committed=9, rests=True)
    ).recreate("target", MemoryLog()),
    "rests: in transactions, committed progress was lost": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(12), [TRANSACTIONS], rests=True)
    ),
    "rests: by key": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(2), [TRANSACTIONS], committed=11, rests=True, by_key=True)
    ),
    "rests: what the slot knows is newer": lambda: Scene(
        row(), source_of(14), target_of(12), remembers=row(upstream=11, downstream=11, sequence=11), rests=True
    ),
    "rests: the log goes on, the source is away": lambda: without_source(
        Scene(row(), source_of(14), target_of(12), rests=True)
    ),
    "rests: the log goes on, the source is silent": lambda: without_source(
        Scene(row(), source_of(14), target_of(12), rests=True), silent=True
    ),
    "rests: the log ends at the row, the source is away": lambda: without_source(
        Scene(row(), source_of(14), target_of(10), rests=True)
    ),
    "rests: in doubt, the source is away": lambda: without_source(
        Scene(row(), source_of(14), target_of(6), rests=True)
    ),
    "rests: unplaced before, the source is back": lambda: Scene(
        row(beyond=2), source_of(14), target_of(12), rests=True
    ),
    "rests: in transactions, the source is away": lambda: without_source(
        known(Scene(COMMITTED, source_of(14), committed_log(12), [TRANSACTIONS], committed=11, rests=True))
    ),
    "unplaced before, the source is back": lambda: Scene(row(beyond=2), source_of(14), target_of(12)),
    "rests: by key, kept partitions before": lambda: Scene(
        row(), source_of(14), target_of(12), [TRANSACTIONS], by_key=True, rests=True
    ),
}

QUARANTINES: Cases = {
    "quarantine, in transactions": lambda: known(
        Scene(COMMITTED, source_of(14), committed_log(10), [TRANSACTIONS], remembers=COMMITTED, quarantines=((11, 12),))
    )
}

CASES: Cases = FENCED | SWITCHED_OFF | KEYED | PAUSE_FACTOR | QUARANTINES
