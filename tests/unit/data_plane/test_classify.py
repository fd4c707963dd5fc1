"""What becomes of a batch: each row of the table in `batches.md` is a case."""

import struct
from typing import NamedTuple

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from lockstep_data_plane.record_batch.classify import (
    BatchAction,
    BatchCase,
    TargetLimits,
    classify,
)
from lockstep_data_plane.record_batch.layout import Batch, scan
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
    (found,) = scan(good[:-1] + bytes([good[-1] ^ 1]))
    return found


def old(magic: int, offset: int = 10) -> Batch:
    builder = LegacyRecordBatchBuilder(magic, 0, 10_000)
    builder.append(0, None if magic == 0 else 5, b"k", b"v")
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, offset)
    (found,) = scan(bytes(raw))
    return found


SIZE = len(PLAIN.data)


@pytest.mark.parametrize(
    ("one", "position", "limits", "aborted", "action", "why"),
    [
        pytest.param(PLAIN, 10, TargetLimits(), False, PASS, "", id="an ordinary batch passes"),
        pytest.param(PLAIN, 0, TargetLimits(), False, PASS, "", id="so does one behind a gap"),
        pytest.param(
            batch(records(10, 3), codec=GZIP), 10, TargetLimits(), False, PASS, "", id="so does a compressed one"
        ),
        pytest.param(
            batch(records(10, 3), attributes=DELETE_HORIZON),
            10,
            TargetLimits(),
            False,
            PASS,
            "",
            id="so does one with a horizon",
        ),
        pytest.param(
            batch(records(10, 3), attributes=TRANSACTIONAL),
            10,
            TargetLimits(),
            False,
            PASS,
            "",
            id="so does a committed one",
        ),
        pytest.param(
            PLAIN, 12, TargetLimits(), False, REBUILD, "begins before the position", id="begins before the position"
        ),
        pytest.param(PLAIN, 13, TargetLimits(), False, SKIP, "before the position", id="ends before the position"),
        pytest.param(
            batch([*records(10, 1), *records(12, 1)]), 10, TargetLimits(), False, REBUILD, "compacted", id="gap inside"
        ),
        pytest.param(
            batch(records(10, 3), last_offset=15), 10, TargetLimits(), False, REBUILD, "compacted", id="gap at the end"
        ),
        pytest.param(
            batch(records(11, 2), base_offset=10),
            10,
            TargetLimits(),
            False,
            REBUILD,
            "compacted",
            id="gap at the beginning",
        ),
        pytest.param(
            batch([], base_offset=10, last_offset=14), 10, TargetLimits(), False, SKIP, "empty batch", id="empty"
        ),
        pytest.param(
            batch(records(10, 1), attributes=CONTROL | TRANSACTIONAL),
            10,
            TargetLimits(),
            False,
            SKIP,
            "control batch",
            id="control",
        ),
        pytest.param(
            batch(records(10, 3), attributes=TRANSACTIONAL),
            10,
            TargetLimits(),
            True,
            SKIP,
            "aborted transaction",
            id="aborted transaction",
        ),
        pytest.param(
            batch(records(10, 3), attributes=LOG_APPEND_TIME),
            10,
            TargetLimits(),
            False,
            REBUILD,
            "log append time",
            id="log append time",
        ),
        pytest.param(old(0), 10, TargetLimits(), False, REBUILD, "old message format", id="magic 0"),
        pytest.param(old(1), 10, TargetLimits(), False, REBUILD, "old message format", id="magic 1"),
        pytest.param(
            PLAIN,
            10,
            TargetLimits(SIZE - 1),
            False,
            REBUILD,
            "larger than the target takes",
            id="one byte above the limit",
        ),
        pytest.param(PLAIN, 10, TargetLimits(SIZE), False, PASS, "", id="exactly at the limit"),
        pytest.param(
            damaged(batch_bytes(records(10, 3))),
            10,
            TargetLimits(),
            False,
            REFUSE,
            "its CRC does not match its bytes",
            id="wrong CRC",
        ),
        pytest.param(
            PLAIN,
            10,
            TargetLimits(codec=LZ4),
            False,
            REBUILD,
            "compression asked for",
            id="explicit codec, uncompressed batch",
        ),
        pytest.param(
            batch(records(10, 3), codec=GZIP),
            10,
            TargetLimits(codec=LZ4),
            False,
            PASS,
            "",
            id="explicit codec, compressed batch",
        ),
        pytest.param(
            batch(records(10, 3), codec=GZIP),
            10,
            TargetLimits(codec=LZ4, recompress=True),
            False,
            REBUILD,
            "other compression asked for",
            id="recompress, another codec",
        ),
        pytest.param(
            batch(records(10, 3), codec=GZIP),
            10,
            TargetLimits(recompress=True),
            False,
            REBUILD,
            "other compression asked for",
            id="recompress to none",
        ),
        pytest.param(
            batch(records(10, 3), codec=LZ4),
            10,
            TargetLimits(codec=LZ4, recompress=True),
            False,
            PASS,
            "",
            id="recompress, the codec it has",
        ),
        pytest.param(
            batch(records(10, 3), codec=LZ4),
            10,
            TargetLimits(refused_codecs=frozenset({LZ4})),
            False,
            REBUILD,
            "its codec is refused by the target",
            id="the target refuses its codec",
        ),
        pytest.param(
            batch(records(10, 3), codec=GZIP),
            10,
            TargetLimits(refused_codecs=frozenset({LZ4})),
            False,
            PASS,
            "",
            id="the target refuses another codec",
        ),
        pytest.param(PLAIN, 10, TargetLimits(recompress=True), False, PASS, "", id="recompress to none, uncompressed"),
    ],
)
def test_batch_of_each_kind_is_classified_by_the_table(
    one: Batch, position: int, limits: TargetLimits, aborted: bool, action: BatchAction, why: str
) -> None:
    assert classify(one, position, limits, aborted=aborted) == (action, why)
    assert classify(one, position, limits, aborted=aborted) == (action, why), "a batch judged again meets the same fate"


def test_batch_that_originated_elsewhere_is_skipped() -> None:
    assert classify(PLAIN, 10, TargetLimits(), aborted=False, elsewhere=True) == (SKIP, "originated elsewhere")
    assert classify(PLAIN, 10, TargetLimits(), aborted=False, elsewhere=False) == (PASS, "")


class Everything(NamedTuple):
    """Arguments of `classify` for which one case holds, and every case behind it that can hold at the same time."""

    case: BatchCase
    one: Batch
    position: int
    limits: TargetLimits
    aborted: bool


ASKED = TargetLimits(100, LZ4, recompress=True)
GAPS = [*records(10, 1), *records(12, 2)]
DESCENDING = [
    Everything(BatchCase.UNKNOWN_FORMAT, with_head(batch_bytes(GAPS, base_offset=-7), 16, ">b", 3), 10, ASKED, True),
    Everything(BatchCase.IMPOSSIBLE_OFFSETS, old(1, -7), 10, ASKED, True),
    Everything(BatchCase.OLD_FORMAT, old(1, 5), 10, ASKED, True),
    Everything(BatchCase.BEFORE_THE_POSITION, damaged(batch_bytes(GAPS, attributes=CONTROL)), 20, ASKED, True),
    Everything(BatchCase.WRONG_CRC, damaged(batch_bytes(GAPS, attributes=CONTROL)), 12, ASKED, True),
    Everything(BatchCase.CONTROL_BATCH, batch([], base_offset=10, last_offset=14, attributes=CONTROL), 12, ASKED, True),
    Everything(BatchCase.EMPTY, batch([], base_offset=10, last_offset=14, attributes=LOG_APPEND_TIME), 12, ASKED, True),
    Everything(BatchCase.ABORTED, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, True),
    Everything(BatchCase.ELSEWHERE, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, False),
    Everything(BatchCase.BEGINS_BEFORE, batch(GAPS, attributes=LOG_APPEND_TIME), 12, ASKED, False),
    Everything(BatchCase.COMPACTED, batch(GAPS, attributes=LOG_APPEND_TIME), 10, ASKED, False),
    Everything(BatchCase.APPEND_TIME, batch(records(10, 3), attributes=LOG_APPEND_TIME), 10, ASKED, False),
    Everything(BatchCase.TOO_LARGE, PLAIN, 10, ASKED, False),
    Everything(
        BatchCase.CODEC_REFUSED,
        batch(records(10, 3), codec=GZIP),
        10,
        TargetLimits(recompress=True, refused_codecs=frozenset({GZIP})),
        False,
    ),
    Everything(BatchCase.COMPRESSION_ASKED, PLAIN, 10, TargetLimits(codec=LZ4, recompress=True), False),
    Everything(
        BatchCase.OTHER_COMPRESSION_ASKED, batch(records(10, 3), codec=GZIP), 10, TargetLimits(recompress=True), False
    ),
    Everything(BatchCase.ANY_OTHER, PLAIN, 10, TargetLimits(), False),
]


@pytest.mark.parametrize("row", DESCENDING, ids=[row.case.name.lower() for row in DESCENDING])
def test_the_first_case_that_holds_decides(row: Everything) -> None:
    cases = list(BatchCase)
    elsewhere = cases.index(row.case) <= cases.index(BatchCase.ELSEWHERE)
    assert classify(row.one, row.position, row.limits, aborted=row.aborted, elsewhere=elsewhere) == row.case.value


def test_each_case_is_tried_in_its_place() -> None:
    assert [row.case for row in DESCENDING] == list(BatchCase)


@pytest.mark.parametrize(
    ("one", "position", "action", "why"),
    [
        pytest.param(old(1, 5), 10, REBUILD, "old message format", id="only its records say where an old set ends"),
        pytest.param(
            damaged(batch_bytes(records(10, 3))),
            20,
            SKIP,
            "before the position",
            id="damage behind us is not our trouble",
        ),
        pytest.param(
            damaged(batch_bytes(records(10, 1), attributes=CONTROL)),
            10,
            REFUSE,
            "CRC",
            id="damage before what the header says",
        ),
        pytest.param(
            batch([], base_offset=10, last_offset=14, attributes=CONTROL),
            10,
            SKIP,
            "control batch",
            id="control before empty",
        ),
        pytest.param(
            batch([], base_offset=10, last_offset=14, attributes=LOG_APPEND_TIME),
            12,
            SKIP,
            "empty batch",
            id="empty before any reason to rebuild",
        ),
    ],
)
def test_batch_under_two_rules_follows_the_safer_one(one: Batch, position: int, action: BatchAction, why: str) -> None:
    found, reason = classify(one, position, TargetLimits(), aborted=False)
    assert found is action
    assert why in reason
