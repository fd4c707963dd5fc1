"""What becomes of a batch: each row of the table in `batches.md` is a case."""

import struct
from dataclasses import replace
from typing import NamedTuple

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from lockstep_data_plane.record_batch.classify import BatchAction, BatchCase, TargetLimits, classify
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_rules.record_rules import DropHeaders, RecordRules
from tests.support.batch_bytes import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    TRANSACTIONAL,
    batch,
    batch_bytes,
    records,
    with_head,
)

PLAIN = batch(records(10, 3))
PASS, REBUILD, SKIP, REFUSE = BatchAction.PASS, BatchAction.REBUILD, BatchAction.SKIP, BatchAction.REFUSE


def damaged(good: bytes) -> Batch:
    """The last byte of the records is another one; the header is as it was."""
    (result,) = scan(good[:-1] + bytes([good[-1] ^ 1]))
    return result


def old(magic: int, offset: int = 10) -> Batch:
    builder = LegacyRecordBatchBuilder(magic, 0, 10_000)
    builder.append(0, None if magic == 0 else 5, b"k", b"v")
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, offset)
    (result,) = scan(bytes(raw))
    return result


class Case(NamedTuple):
    """A batch, the arguments it is judged with, and the reason for which it does not pass."""

    about: str
    source: Batch
    action: BatchAction = PASS
    reason: str = ""
    position: int = 10
    limits: TargetLimits = TargetLimits()
    aborted: bool = False


def three(**shape: int) -> Batch:
    return batch(records(10, 3), **shape)


def empty(**shape: int) -> Batch:
    return batch([], base_offset=10, last_offset=14, **shape)


SIZE = len(PLAIN.data)
RECOMPRESS = TargetLimits(codec=LZ4, recompress=True)
UNCOMPRESS = TargetLimits(recompress=True)
NO_LZ4 = TargetLimits(refused_codecs=frozenset({LZ4}))
CASES = [
    Case("an ordinary batch", PLAIN),
    Case("behind a gap", PLAIN, position=0),
    Case("compressed", three(codec=GZIP)),
    Case("with a horizon", three(attributes=DELETE_HORIZON)),
    Case("committed", three(attributes=TRANSACTIONAL)),
    Case("begins before the position", PLAIN, REBUILD, "begins before the position", 12),
    Case("ends before the position", PLAIN, SKIP, "before the position", 13),
    Case("gap inside", batch([*records(10, 1), *records(12, 1)]), REBUILD, "compacted"),
    Case("gap at the end", three(last_offset=15), REBUILD, "compacted"),
    Case("gap at the beginning", batch(records(11, 2), base_offset=10), REBUILD, "compacted"),
    Case("empty", empty(), SKIP, "empty batch"),
    Case("control", batch(records(10, 1), attributes=CONTROL | TRANSACTIONAL), SKIP, "control batch"),
    Case("aborted", three(attributes=TRANSACTIONAL), SKIP, "aborted transaction", aborted=True),
    Case("log append time", three(attributes=LOG_APPEND_TIME), REBUILD, "log append time"),
    Case("magic 0", old(0), REBUILD, "old message format"),
    Case("magic 1", old(1), REBUILD, "old message format"),
    Case("a byte above the limit", PLAIN, REBUILD, "larger than the target takes", limits=TargetLimits(SIZE - 1)),
    Case("exactly at the limit", PLAIN, limits=TargetLimits(SIZE)),
    Case("wrong CRC", damaged(batch_bytes(records(10, 3))), REFUSE, "its CRC does not match its bytes"),
    Case("explicit codec, uncompressed", PLAIN, REBUILD, "compression asked for", limits=TargetLimits(codec=LZ4)),
    Case("explicit codec, compressed", three(codec=GZIP), limits=TargetLimits(codec=LZ4)),
    Case("recompress", three(codec=GZIP), REBUILD, "other compression asked for", limits=RECOMPRESS),
    Case("recompress to none", three(codec=GZIP), REBUILD, "other compression asked for", limits=UNCOMPRESS),
    Case("recompress, the codec it has", three(codec=LZ4), limits=RECOMPRESS),
    Case("recompress to none, uncompressed", PLAIN, limits=UNCOMPRESS),
    Case("refused codec", three(codec=LZ4), REBUILD, "its codec is refused by the target", limits=NO_LZ4),
    Case("another refused codec", three(codec=GZIP), limits=NO_LZ4),
]


@pytest.mark.parametrize("case", CASES, ids=[case.about for case in CASES])
def test_batch_of_each_kind_is_classified_by_the_table(case: Case) -> None:
    for _ in range(2):  # a batch judged again meets the same fate
        result = classify(case.source, case.position, case.limits, aborted=case.aborted)
        assert result == (case.action, case.reason)


def test_batch_that_originated_elsewhere_is_skipped() -> None:
    assert classify(PLAIN, 10, TargetLimits(), aborted=False, elsewhere=True) == (SKIP, "originated elsewhere")
    assert classify(PLAIN, 10, TargetLimits(), aborted=False, elsewhere=False) == (PASS, "")


class Everything(NamedTuple):
    """Arguments of `classify` for which one case holds, and every case behind it that can hold at the same time."""

    case: BatchCase
    source: Batch
    position: int
    limits: TargetLimits
    aborted: bool


ASKED = TargetLimits(100, LZ4, recompress=True)
WITH_RULES = replace(ASKED, rules=RecordRules((DropHeaders("a"),)))
NO_GZIP = TargetLimits(recompress=True, refused_codecs=frozenset({GZIP}))
GAPS = [*records(10, 1), *records(12, 2)]
DESCENDING = [
    Everything(BatchCase.UNKNOWN_FORMAT, with_head(batch_bytes(GAPS, base_offset=-7), 16, ">b", 3), 10, ASKED, True),
    Everything(BatchCase.IMPOSSIBLE_OFFSETS, old(1, -7), 10, ASKED, True),
    Everything(BatchCase.OLD_FORMAT, old(1, 5), 10, ASKED, True),
    Everything(BatchCase.BEFORE_THE_POSITION, damaged(batch_bytes(GAPS, attributes=CONTROL)), 20, ASKED, True),
    Everything(BatchCase.WRONG_CRC, damaged(batch_bytes(GAPS, attributes=CONTROL)), 12, ASKED, True),
    Everything(BatchCase.CONTROL_BATCH, empty(attributes=CONTROL), 12, ASKED, True),
    Everything(BatchCase.EMPTY, empty(attributes=LOG_APPEND_TIME), 12, ASKED, True),
    Everything(BatchCase.ABORTED, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, True),
    Everything(BatchCase.ELSEWHERE, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, False),
    Everything(BatchCase.HAS_RULES, batch(GAPS, attributes=LOG_APPEND_TIME), 12, WITH_RULES, False),
    Everything(BatchCase.BEGINS_BEFORE, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, False),
    Everything(BatchCase.COMPACTED, batch(GAPS, attributes=LOG_APPEND_TIME), 10, ASKED, False),
    Everything(BatchCase.APPEND_TIME, three(attributes=LOG_APPEND_TIME), 10, ASKED, False),
    Everything(BatchCase.TOO_LARGE, PLAIN, 10, ASKED, False),
    Everything(BatchCase.CODEC_REFUSED, three(codec=GZIP), 10, NO_GZIP, False),
    Everything(BatchCase.COMPRESSION_ASKED, PLAIN, 10, RECOMPRESS, False),
    Everything(BatchCase.OTHER_COMPRESSION_ASKED, three(codec=GZIP), 10, UNCOMPRESS, False),
    Everything(BatchCase.ANY_OTHER, PLAIN, 10, TargetLimits(), False),
]


@pytest.mark.parametrize("row", DESCENDING, ids=[row.case.name.lower() for row in DESCENDING])
def test_the_first_case_that_holds_decides(row: Everything) -> None:
    cases = list(BatchCase)
    elsewhere = cases.index(row.case) <= cases.index(BatchCase.ELSEWHERE)
    assert classify(row.source, row.position, row.limits, aborted=row.aborted, elsewhere=elsewhere) == row.case.value


def test_each_case_is_tried_in_its_place() -> None:
    assert [row.case for row in DESCENDING] == list(BatchCase)
