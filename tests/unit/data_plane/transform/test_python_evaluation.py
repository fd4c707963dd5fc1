"""Record batches through a Python function: what it leaves alone keeps its bytes, what it must not do is refused, and a
record that it fails for is named without a value."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.layout import GappedOffsets
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform import python_evaluation
from lockstep_data_plane.transform.python_evaluation import Evaluated, EvaluationLimits, evaluate
from lockstep_data_plane.transform.python_function import FunctionRefused, TableFunction
from lockstep_data_plane.transform.python_table import SCHEMA, RowRules
from tests.support import table_functions
from tests.support.batch_bytes import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    ZSTD,
    batch_bytes,
    crc_is_right,
    decoded,
    record,
    record_lists,
    records,
)

NOW = 1_790_000_000_000
LIMITS = EvaluationLimits(1_000_000, 1 << 27)
Call = Callable[[Any], Any]


def asked(
    call: Call,
    *batches: bytes,
    start: int = 0,
    rules: RowRules | None = None,
    limits: EvaluationLimits = LIMITS,
) -> Evaluated:
    function = TableFunction("acme.masking:mask", table_functions, call, None)
    return evaluate(function, b"".join(batches), start, "orders", 3, rules or RowRules(), limits)


def left(answer: Evaluated) -> list[PlainRecord]:
    """The records of an answer, with their source offsets."""
    if not answer.batch:
        return []
    assert crc_is_right(answer.batch)
    offsets = GappedOffsets(tuple(answer.stretches))
    return [each._replace(offset=offset) for offset, each in zip(offsets, decoded(answer.batch), strict=True)]


@pytest.mark.parametrize("call", [table_functions.unchanged, table_functions.remade, lambda t: t.select(["offset"])])
@given(content=record_lists(), codec=st.sampled_from((0, GZIP, LZ4, ZSTD)))
def test_a_record_that_is_not_changed_keeps_its_bytes(call: Call, content: list[PlainRecord], codec: int) -> None:
    answer = asked(call, batch_bytes(content, codec=codec))
    assert left(answer) == content
    dense = [each._replace(offset=index) for index, each in enumerate(content)]
    if not codec:
        assert answer.batch == batch_bytes(dense, leader_epoch=-1)
    assert (answer.covers, answer.is_whole, answer.failures) == (content[-1].offset, True, ())
    assert answer.oldest == min(each.timestamp for each in content)


@given(content=record_lists())
def test_a_filtered_record_is_a_missing_offset(content: list[PlainRecord]) -> None:
    answer = asked(table_functions.even, batch_bytes(content), rules=RowRules(passes_tombstones=False))
    assert left(answer) == [each for each in content if not each.offset % 2]
    assert answer.covers == content[-1].offset
    assert answer.is_whole


def test_the_table_has_the_columns_of_sparks_kafka_source() -> None:
    seen: list[Any] = []

    def see(table: Any) -> Any:
        seen.append(table)
        return table

    asked(
        see,
        batch_bytes([record(7, b"v", timestamp=1234, headers=[("a", b"1"), ("a", None)])]),
        batch_bytes([record(9, None, key=None)], attributes=LOG_APPEND_TIME, max_timestamp=NOW),
    )
    (table,) = seen
    assert table.schema == SCHEMA
    table.validate(full=True)
    first, second = table.to_pylist()
    assert {name: value for name, value in first.items() if name != "timestamp"} == {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestampType": 0,
        "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
    }
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1234, NOW]
    assert (second["key"], second["value"], second["headers"], second["timestampType"]) == (None, None, None, 1)


def with_column(name: str, values: Any) -> Call:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values(table))


def test_columns_are_made_anew() -> None:
    source = batch_bytes([record(4, b"abc", headers=[("h", b"1")]), record(6, b"def")], codec=LZ4)

    def call(table: Any) -> Any:
        headers = pa.array([None, [{"key": "n", "value": None}]], SCHEMA.field("headers").type)
        times = pa.array([None, 5], SCHEMA.field("timestamp").type)
        return pa.table(
            {
                "offset": table["offset"],
                "key": pa.array(["ä", None], pa.large_string()),
                "value": pc.utf8_upper(table["value"].cast(pa.string())),
                "headers": headers,
                "timestamp": times,
            }
        )

    assert left(asked(call, source)) == [
        PlainRecord(4, -1, "ä".encode(), b"ABC", ()),
        PlainRecord(6, 5, None, b"DEF", (("n", None),)),
    ]


def test_slices_and_chunks_come_back_as_they_are() -> None:
    source = batch_bytes(records(0, 20, headers=[("h", b"1")]))

    def call(table: Any) -> Any:
        table = table_functions.remade(table)
        return pa.concat_tables([table.slice(1, 3), table.slice(7, 0), table.slice(9)])

    assert [each.offset for each in left(asked(call, source))] == [1, 2, 3, *range(9, 20)]
    assert left(asked(call, source)) == [
        each for each in records(0, 20, headers=(("h", b"1"),)) if each.offset in (1, 2, 3) or each.offset > 8
    ]


REFUSED: list[tuple[Call, str]] = [
    (lambda table: None, "NO_TABLE"),
    (lambda table: table.to_pylist(), "NO_TABLE"),
    (lambda table: table.drop_columns(["offset"]), "OFFSET_MISSING"),
    (with_column("offset", lambda t: t["offset"].cast(pa.int32())), "COLUMN_TYPE"),
    (with_column("offset", lambda t: pa.nulls(2, pa.int64())), "OFFSET_NULL"),
    (with_column("offset", lambda t: pa.array([4, 5])), "OFFSET_UNKNOWN"),
    (with_column("offset", lambda t: pa.array([4, 4])), "OFFSET_REPEATED"),
    (with_column("offset", lambda t: pa.array([6, 4])), "OFFSETS_UNSORTED"),
    (lambda table: table.append_column("card 4111", table["value"]), "COLUMN_UNKNOWN"),
    (lambda table: table.append_column("value", table["value"]), "COLUMN_REPEATED"),
    (with_column("value", lambda t: t["offset"]), "COLUMN_TYPE"),
    (with_column("value", lambda t: pa.array([{"4111": 1}] * 2)), "COLUMN_TYPE"),
    (with_column("key", lambda t: t["key"].dictionary_encode()), "COLUMN_TYPE"),
    (with_column("timestamp", lambda t: t["timestamp"].cast(pa.timestamp("us", "UTC"))), "COLUMN_TYPE"),
    (with_column("headers", lambda t: t["value"]), "COLUMN_TYPE"),
    (with_column("topic", lambda t: pa.array(["a", "b"])), "COLUMN_FIXED"),
    (with_column("partition", lambda t: pa.array([3, 3])), "COLUMN_FIXED"),
    (
        with_column(
            "value",
            lambda t: pa.Array.from_buffers(
                pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
            ),
        ),
        "COLUMN_DAMAGED",
    ),
]


@pytest.mark.parametrize(("call", "code"), REFUSED)
def test_what_a_function_must_not_return_is_refused_without_a_value(call: Call, code: str) -> None:
    with pytest.raises(FunctionRefused) as refused:
        asked(call, batch_bytes([record(4, b"4111"), record(6, b"4111", key=b"4111")]))
    assert refused.value.code == code
    assert refused.value.message.startswith("acme.masking:mask ")
    assert "4111" not in refused.value.message


def test_a_record_that_fails_is_found_and_those_in_front_are_kept() -> None:
    content = [record(2 * n, b"bad" if n == 5 else b"good") for n in range(9)]
    answer = asked(table_functions.fails_for_bad, batch_bytes(content))
    assert left(answer) == content[:5]
    ((offset, condition, fragment),) = answer.failures
    assert (offset, condition, answer.covers, answer.is_whole) == (10, "ValueError", 10, False)
    assert fragment.startswith("acme.masking:mask (table_functions.py, line ")
    behind = asked(table_functions.fails_for_bad, batch_bytes(content), start=11)
    assert (left(behind), behind.is_whole) == (content[6:], True)
    first = asked(table_functions.fails_for_bad, batch_bytes(content), start=10)
    assert (first.batch, first.covers, first.failures) == (b"", 10, [(10, "ValueError", fragment)])


def test_a_function_that_fails_for_records_together_is_refused() -> None:
    with pytest.raises(FunctionRefused) as refused:
        asked(table_functions.fails_together, batch_bytes(records(0, 3)))
    assert refused.value.code == "NOT_BY_RECORD"


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        (
            with_column("timestamp", lambda t: pa.array([5, -2], t.schema.field("timestamp").type)),
            "TIMESTAMP_BEFORE_1970",
        ),
        (
            with_column(
                "headers", lambda t: pa.array([None, [{"key": None, "value": b"1"}]], t.schema.field("headers").type)
            ),
            "HEADER_WITHOUT_KEY",
        ),
        (
            with_column("headers", lambda t: pa.array([None, [None]], t.schema.field("headers").type)),
            "HEADER_WITHOUT_KEY",
        ),
    ],
)
def test_a_row_that_cannot_be_a_record_fails(call: Call, condition: str) -> None:
    content = [record(4), record(6)]
    answer = asked(lambda table: call(table) if table.num_rows == 2 else table, batch_bytes(content))
    assert (answer.covers, answer.is_whole) == (6, False)
    assert answer.failures == [(6, condition, "acme.masking:mask")]
    assert [each.offset for each in left(answer)] == [4]


def test_a_time_before_1970_of_the_record_itself_stays() -> None:
    content = [record(4, timestamp=-9), record(5, timestamp=-1)]
    assert left(asked(table_functions.unchanged, batch_bytes(content))) == content


TOMBSTONES = [record(1), record(2, None), record(3, None, key=None), record(5, b"x"), record(7, None)]


def test_tombstones_pass_a_filter_with_their_own_key() -> None:
    answer = asked(lambda table: table.select(["offset"]).slice(0, 1), batch_bytes(TOMBSTONES))
    assert left(answer) == [each for each in TOMBSTONES if each.value is None or each.offset == 1]


def test_tombstones_pass_a_filter_beside_values_that_are_made_anew() -> None:
    answer = asked(table_functions.upper, batch_bytes(TOMBSTONES))
    assert [each.value for each in left(answer)] == [b"V", None, None, b"X", None]
    sliced = asked(lambda table: table_functions.upper(table).slice(3, 1), batch_bytes(TOMBSTONES))
    assert left(sliced) == [TOMBSTONES[1], TOMBSTONES[2], record(5, b"X"), TOMBSTONES[4]]


def test_a_tombstone_keeps_no_value() -> None:
    def call(table: Any) -> Any:
        return table.select(["offset"]).append_column("value", pa.array([b"made"] * table.num_rows))

    assert [each.value for each in left(asked(call, batch_bytes(TOMBSTONES)))] == [b"made", None, None, b"made", None]
    all_values = asked(call, batch_bytes(TOMBSTONES), rules=RowRules(passes_tombstones=False))
    assert [each.value for each in left(all_values)] == [b"made"] * 5


def test_a_tombstone_whose_key_may_be_made_anew_does_not_pass_without_a_row() -> None:
    def call(table: Any) -> Any:
        return table.filter(pc.is_valid(table["value"]))  # with all columns

    answer = asked(call, batch_bytes(TOMBSTONES))
    assert (left(answer), answer.covers, answer.failures) == (
        [TOMBSTONES[0]],
        2,
        [(2, "ROW_MISSING", "acme.masking:mask")],
    )
    dropped = asked(call, batch_bytes(TOMBSTONES), rules=RowRules(passes_tombstones=False))
    assert [each.offset for each in left(dropped)] == [1, 5]


def test_a_filtered_record_with_a_key_becomes_a_tombstone() -> None:
    content = [record(1), record(2, key=None), record(3, headers=(("h", b"1"),)), record(4)]
    rules = RowRules(leaves_tombstones=True)
    answer = asked(lambda table: table.select(["offset"]).slice(3), batch_bytes(content), rules=rules)
    assert left(answer) == [content[0]._replace(value=None), content[2]._replace(value=None), content[3]]
    anew = asked(lambda table: table_functions.upper(table).slice(3), batch_bytes(content), rules=rules)
    assert [each.value for each in left(anew)] == [None, None, b"V"]
    failed = asked(lambda table: table.slice(3), batch_bytes(content), rules=rules)
    assert failed.failures == [(1, "ROW_MISSING", "acme.masking:mask")]


def test_an_answer_ends_before_its_batch_is_too_large() -> None:
    content = [record(2 * n, bytes([n]) * 100) for n in range(50)]
    limits = EvaluationLimits(1000, 1 << 27)
    whole: list[PlainRecord] = []
    start = 0
    while True:
        answer = asked(table_functions.unchanged, batch_bytes(content), start=start, limits=limits)
        assert len(answer.batch) <= 1000
        whole += left(answer)
        if answer.is_whole:
            break
        assert answer.covers >= start
        start = answer.covers + 1
    assert whole == content


def test_a_table_that_grows_too_large_is_asked_for_in_parts() -> None:
    content = records(0, 7)

    def call(table: Any) -> Any:
        return table.select(["offset"]).append_column("value", pa.array([bytes(1000)] * table.num_rows))

    limits = EvaluationLimits(1_000_000, 3000)
    answer = asked(call, batch_bytes(content), limits=limits)
    assert (len(left(answer)), answer.covers, answer.is_whole) == (1, 0, False)
    alone = asked(call, batch_bytes(content), limits=EvaluationLimits(1_000_000, 1000))
    assert (alone.failures, alone.covers) == ([(0, "RECORD_TOO_LARGE", "acme.masking:mask")], 0)


def test_batches_that_take_much_memory_are_evaluated_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_evaluation, "TABLE_BYTES", 10)
    first, second = batch_bytes(records(0, 3)), batch_bytes(records(3, 3))
    answer = asked(table_functions.unchanged, first, second)
    assert (answer.covers, answer.is_whole, len(left(answer))) == (2, False, 3)
    answer = asked(table_functions.unchanged, first, second, start=3)
    assert (answer.covers, answer.is_whole, len(left(answer))) == (5, True, 3)


def test_control_batches_are_passed_over_and_the_codec_is_that_of_the_first_record_left() -> None:
    control = batch_bytes([record(3)], attributes=CONTROL)
    batches = (
        batch_bytes(records(1, 2), codec=GZIP),
        control,
        batch_bytes(records(4, 2), codec=LZ4),
        batch_bytes([record(6)], attributes=CONTROL),
    )
    answer = asked(lambda table: table.select(["offset"]).slice(2), *batches)
    assert answer.batch[22] & 7 == LZ4
    assert ([each.offset for each in left(answer)], answer.covers) == ([4, 5], 6)
    assert asked(table_functions.unchanged, control).covers == 3


def test_a_damaged_batch_is_refused() -> None:
    good = batch_bytes(records(0, 2))
    with pytest.raises(FunctionRefused) as refused:
        asked(table_functions.unchanged, good[:-1] + bytes([good[-1] ^ 1]))
    assert refused.value.code == "BATCH_CORRUPT"


def test_names_of_headers_that_are_no_texts_stay_unless_they_are_changed() -> None:
    content = [record(0, headers=[("ok", b"1")]), record(1, headers=[("h", b"1")])]
    source = bytearray(batch_bytes(content))
    at = source.rindex(b"h")
    source[at] = 0xFF
    from google_crc32c import value as crc32c

    source[17:21] = crc32c(bytes(source[21:])).to_bytes(4, "big")
    for call in (table_functions.unchanged, table_functions.remade, table_functions.even_offsets):
        answer = asked(call, bytes(source))
        assert b"\xff" in answer.batch or call is table_functions.even_offsets
        assert not answer.failures

    def changed(table: Any) -> Any:
        headers = pa.array([[{"key": "n", "value": None}]] * table.num_rows, SCHEMA.field("headers").type)
        return table.select(["offset"]).append_column("headers", headers)

    assert asked(changed, bytes(source)).failures == [(1, "HEADER_NAME_NOT_UTF8", "acme.masking:mask")]


@given(content=record_lists(), cuts=st.sets(st.integers(0, 60)))
def test_an_answer_does_not_depend_on_where_a_request_begins(content: list[PlainRecord], cuts: set[int]) -> None:
    source = batch_bytes(content)
    rules = RowRules(passes_tombstones=False)
    whole = left(asked(table_functions.even, source, rules=rules))
    for cut in cuts:
        start = content[0].offset + cut
        answer = left(asked(table_functions.even, source, start=start, rules=rules))
        assert answer == [each for each in whole if each.offset >= start]
