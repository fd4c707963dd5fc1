"""The cases of a resume where the target keeps no producer ids and has no transactions: the records alone say where the
copy is."""

from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import record
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.resume_cases import (
    GAP_SKIP,
    PROGRESS_COUNTS,
    Cases,
    of_mm2,
    parted,
    replicas_catch_up,
    unreplicated,
)
from tests.unit.data_plane.resume_scene import OTHER, Scene, row, source_of


def read_back(**fields_of_it: object) -> PartitionProgress:
    """Ten records copied without producer ids."""
    return row(**{"read_back": True, "open_run": (0, 0, 10), **fields_of_it})


def scene(source: MemoryLog, target: MemoryLog, *lines: str, **fields_of_it: object) -> Scene:
    return Scene(read_back(**fields_of_it), source, target, lines, reads_back=True)


def same(count: int) -> MemoryLog:
    """Records 0 to 9, and then so many that are all equal."""
    return source_of(10).append_records([record(0, b"same", timestamp=1000)] * count)


CASES: Cases = {
    "read back, no row": lambda: Scene(None, source_of(12), of_mm2(0), reads_back=True),
    "read back, no row, MM2's progress": lambda: Scene(None, source_of(12), of_mm2(6), committed=5, reads_back=True),
    "read back, nothing beyond": lambda: scene(source_of(12), of_mm2(10)),
    "read back, some beyond": lambda: scene(source_of(16), of_mm2(10).append([10, 11]).append([12])),
    "read back, all beyond": lambda: scene(source_of(12), of_mm2(12)),
    "read back, more than the source has": lambda: scene(source_of(12), of_mm2(13)),
    "read back, equal records beyond": lambda: scene(same(6), same(4)),
    "read back, behind markers": lambda: scene(
        source_of(10).append([10], (77, 0), transactional=True).end_transaction((77, 0), commit=True).append([11, 12]),
        of_mm2(12),
    ),
    "read back, a batch that was copied is there again": lambda: scene(source_of(16), of_mm2(10).append([8, 9])),
    "read back, a batch is there twice": lambda: scene(source_of(16), of_mm2(12).append([10, 11]).append([12])),
    "read back, an early batch is there again": lambda: scene(
        source_of(30_010),
        MemoryLog().append(range(29_990, 30_000)).append([5, 6]).append([30_000]),
        upstream=29_999,
        open_run=(29_990, 0, 10),
    ),
    "read back, another writer": lambda: scene(source_of(16), of_mm2(12).append([900])),
    "read back, another writer, progress": lambda: scene(source_of(16), of_mm2(12).append([900]), PROGRESS_COUNTS),
    "read back, the target is shorter": lambda: scene(source_of(16), of_mm2(8)),
    "read back, the target is shorter, skip": lambda: scene(source_of(16), of_mm2(8), GAP_SKIP),
    "read back, the target was truncated and grew": lambda: scene(source_of(16), of_mm2(8).append([900, 901, 902])),
    "read back, the target lost some beyond": lambda: scene(source_of(16), source_of(13).delete_before(12)),
    "read back, the target's cleaner was there": lambda: scene(source_of(16), of_mm2(13).compact(11)),
    "read back, the target lost what was copied": lambda: scene(source_of(16), of_mm2(13).delete_before(10)),
    "read back, the source lost some beyond": lambda: scene(source_of(16).compact(10, 12), of_mm2(13)),
    "read back, the source lost all beyond": lambda: scene(source_of(16).delete_before(13), of_mm2(13)),
    "read back, the source lost more than was copied": lambda: scene(source_of(16).delete_before(14), of_mm2(12)),
    "read back, the source was truncated": lambda: scene(parted(16, 8), of_mm2(10), upstream_epoch=3),
    "read back, the source was truncated behind the row": lambda: scene(
        source_of(10).append([900, 901, 902]), of_mm2(12), upstream_epoch=3
    ),
    "read back, not replicated yet": lambda: Scene(
        read_back(), source_of(16), unreplicated(of_mm2(12), 2), reads_back=True, later=replicas_catch_up
    ),
    "read back, at rest": lambda: Scene(read_back(), source_of(16), of_mm2(12), reads_back=True, rests=True),
    "read back, at rest, nothing beyond": lambda: Scene(
        read_back(), source_of(16), of_mm2(10), reads_back=True, rests=True
    ),
    "read back, at rest, a batch is there twice": lambda: Scene(
        read_back(), source_of(16), of_mm2(12).append([10, 11]), reads_back=True, rests=True
    ),
    "read back, a batch is passed over": lambda: Scene(
        None, source_of(16), of_mm2(10), reads_back=True, remembers=read_back(), quarantines=((10, 11),)
    ),
    "read back, a batch is passed over, some beyond": lambda: Scene(
        None, source_of(16), of_mm2(11), reads_back=True, remembers=read_back(), quarantines=((11, 12),)
    ),
    "read back, a row of sequences": lambda: scene(source_of(16), of_mm2(12), read_back=False),
    "read back, a row of another producer id": lambda: scene(source_of(16), of_mm2(12), producer_id=OTHER),
    "sequences, a row that was read back": lambda: Scene(read_back(), source_of(16), of_mm2(12)),
}
