"""The cases of a resume of a topic whose records are filtered or changed: every record behind the row is compared."""

from collections.abc import Iterable

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_rules.record_rules import AddHeader, DropRecord, HasHeader, IsTombstone, RecordRules
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import record
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.resume_cases import PROGRESS_COUNTS, Cases
from tests.unit.data_plane.resume_scene import OURS, TRANSACTIONS, Scene, row

RULES = RecordRules((DropRecord((HasHeader("odd"),)), AddHeader("via", b"A")))
"""Every second record is dropped, and the others get a header."""
OTHER_RULES = RecordRules((DropRecord((HasHeader("odd"),)), AddHeader("via", b"B")))
ALL = RecordRules((DropRecord((IsTombstone(negated=True),)),))
VIA: tuple[tuple[str, bytes | None], ...] = (("via", b"A"),)


def original(number: int) -> PlainRecord:
    headers = (("odd", None),) if number % 2 else ()
    return record(0, b"value-%d" % number, timestamp=1000 + number, headers=headers)


def copy(number: int, headers: tuple[tuple[str, bytes | None], ...] = VIA) -> PlainRecord:
    return original(number)._replace(headers=headers)


def source_of(count: int) -> MemoryLog:
    """Records 0 and so on, each in a batch. The odd ones have a header that says so."""
    log = MemoryLog()
    for number in range(count):
        log.append_records([original(number)])
    return log


def target_of(numbers: Iterable[int], headers: tuple[tuple[str, bytes | None], ...] = VIA) -> MemoryLog:
    """Copies of these records in one batch."""
    return MemoryLog().append_records([copy(number, headers) for number in numbers], (OURS, 1))


def ruled(**fields_of_it: object) -> PartitionProgress:
    """Of records 0 to 9 the even ones are copied, as 0 to 4."""
    usual = {"downstream": 4, "sequence": 4, "transform": RULES.version, "open_run": (8, 4, 1)}
    return row(**{**usual, **fields_of_it})


def beyond(*numbers: int) -> MemoryLog:
    """Copies of 0 to 8, and behind them of these."""
    return target_of([0, 2, 4, 6, 8]).append_records([copy(number) for number in numbers], (OURS, 1))


CASES: Cases = {
    "rules, first start": lambda: Scene(None, source_of(12), MemoryLog(), rules=RULES),
    "rules, nothing beyond": lambda: Scene(ruled(), source_of(16), beyond(), rules=RULES),
    "rules, some beyond": lambda: Scene(ruled(), source_of(20), beyond(10, 12, 14), rules=RULES),
    "rules, all beyond": lambda: Scene(ruled(), source_of(16), beyond(10, 12, 14), rules=RULES),
    "rules, one beyond is another": lambda: Scene(ruled(), source_of(20), beyond(10, 14), rules=RULES),
    "rules, one beyond has other headers": lambda: Scene(
        ruled(), source_of(20), beyond(10).append_records([copy(12, ())], (OURS, 1)), rules=RULES
    ),
    "rules, more beyond than the source gives": lambda: Scene(ruled(), source_of(13), beyond(10, 12, 14), rules=RULES),
    "rules, more beyond, progress": lambda: Scene(
        ruled(), source_of(13), beyond(10, 12, 14), [PROGRESS_COUNTS], rules=RULES
    ),
    "rules, the source lost some beyond": lambda: Scene(
        ruled(), source_of(20).delete_before(12), beyond(10, 12), rules=RULES
    ),
    "rules, the target lost some beyond": lambda: Scene(
        ruled(), source_of(20), beyond(10).append_records([copy(12)], (OURS, 1)).delete_before(6), rules=RULES
    ),
    "rules, one beyond is in quarantine": lambda: Scene(
        ruled(skips=((12, 12),)), source_of(20), beyond(10, 14), rules=RULES
    ),
    "rules, at rest": lambda: Scene(ruled(), source_of(20), beyond(10, 12), rests=True, rules=RULES),
    "rules, read back": lambda: Scene(
        ruled(read_back=True), source_of(20), target_of([0, 2, 4, 6, 8, 10, 12]), reads_back=True, rules=RULES
    ),
    "rules, read back, one is another": lambda: Scene(
        ruled(read_back=True), source_of(20), target_of([0, 2, 4, 6, 8, 10, 14]), reads_back=True, rules=RULES
    ),
    "rules begin": lambda: Scene(row(), source_of(16), target_of(range(10), ()), rules=RULES),
    "rules begin, some beyond": lambda: Scene(
        row(), source_of(16), MemoryLog().append_records([original(n) for n in range(12)], (OURS, 1)), rules=RULES
    ),
    "rules end": lambda: Scene(ruled(), source_of(16), beyond()),
    "rules end, some beyond": lambda: Scene(ruled(), source_of(16), beyond(10)),
    "rules change": lambda: Scene(ruled(), source_of(16), beyond(), rules=OTHER_RULES),
    "rules change, some beyond": lambda: Scene(ruled(), source_of(16), beyond(10), rules=OTHER_RULES),
    "rules change, some beyond, progress": lambda: Scene(
        ruled(), source_of(16), beyond(10), [PROGRESS_COUNTS], rules=OTHER_RULES
    ),
    "rules change, some beyond are the same": lambda: Scene(
        ruled(transform="rules-before"), source_of(16), beyond(10, 12), rules=RULES
    ),
    "rules change, read back, some beyond": lambda: Scene(
        ruled(read_back=True), source_of(16), target_of([0, 2, 4, 6, 8, 10]), reads_back=True, rules=OTHER_RULES
    ),
    "rules change in transactions": lambda: Scene(
        ruled(transactional=True, producer_id=7000, producer_epoch=0),
        source_of(16),
        beyond(),
        [TRANSACTIONS],
        committed=11,
        rules=OTHER_RULES,
    ),
    "rules change, a record is in quarantine": lambda: Scene(
        ruled(skips=((12, 12),)), source_of(16), beyond(), rules=OTHER_RULES
    ),
    "all is dropped": lambda: Scene(
        row(upstream=9, downstream=-1, sequence=-1, transform=ALL.version), source_of(16), MemoryLog(), rules=ALL
    ),
}
