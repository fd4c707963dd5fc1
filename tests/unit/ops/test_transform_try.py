"""Records before and after a transform: what became of each, and that nothing of a value is shown unasked."""

import json
from pathlib import Path

import pytest

from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_ops.transform.record_file import partitions_of, read_record_file
from lockstep_ops.transform.transform_try import (
    changed_fields,
    counts,
    exit_code,
    part_rows,
    shown_part,
    tried_records,
)
from lockstep_state.codecs.transform_trial import TrialOutcome, TrialPartition, TrialRecord

BEFORE = b'{"name": "Erika", "n": 1}'
AFTER = b'{"name": "***", "n": 1}'


def kept(offset: int, **changes: object) -> TrialOutcome:
    record = {"offset": offset, "timestamp": 5, "key": b"k", "value": BEFORE, **changes}
    return TrialOutcome("t", 0, offset, "kept", TrialRecord(**record))  # type: ignore[arg-type]  # fields by name


OUTCOMES = (
    kept(0, value=AFTER),
    kept(1),
    TrialOutcome("t", 0, 2, "dropped"),
    TrialOutcome("t", 0, 3, "failed", None, "JSON_MALFORMED", "json_mask(value, '$.a', 'mask')"),
    kept(4, key=b"other", timestamp=6, value=None, headers=(("h", b"secret"),)),
)
RECORDS = tried_records([TrialPartition("t", 0, tuple(TrialRecord(n, 5, b"k", BEFORE) for n in range(5)))], OUTCOMES)


def test_what_became_of_each() -> None:
    assert [record.state for record in RECORDS] == ["changed", "unchanged", "dropped", "failed", "changed"]
    assert RECORDS[4].changed_parts == ("timestamp", "key", "value", "headers")
    assert counts(RECORDS) == {"changed": 2, "unchanged": 1, "dropped": 1, "failed": 1}


@pytest.mark.parametrize(
    ("records", "code"), [(RECORDS, Exit.TROUBLE), (RECORDS[:3], Exit.FINE), ((), Exit.NOT_VERIFIED)]
)
def test_exit_codes(records: tuple[object, ...], code: Exit) -> None:
    assert exit_code(records) == code  # type: ignore[arg-type]  # a part of RECORDS


def test_rows_have_a_part_each_and_no_value() -> None:
    rows = list(part_rows(RECORDS, values=False))
    assert [(row.record, row.part, row.state) for row in rows] == [
        ("t-0 0", "value", "changed"),
        ("t-0 1", "value", "unchanged"),
        ("t-0 2", "value", "dropped"),
        ("t-0 3", "value", "failed"),
        ("t-0 4", "timestamp", "changed"),
        ("", "key", "changed"),
        ("", "value", "changed"),
        ("", "headers", "changed"),
    ]
    assert rows[0].after.endswith(", 1 field differs")
    assert rows[3].after == "failed: JSON_MALFORMED in json_mask(value, '$.a', 'mask')"
    text = repr(rows)
    assert not any(word in text for word in ("Erika", "***", "secret", "other"))
    assert "Erika" in repr(list(part_rows(RECORDS, values=True)))


def test_json_has_values_only_if_asked() -> None:
    masked, whole = (json.dumps([record.as_json(values=values) for record in RECORDS]) for values in (False, True))
    assert "base64" not in masked
    assert json.loads(masked)[0]["changed_fields"] == 1
    assert json.loads(whole)[0]["changed_fields"] == ["$.name"]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (BEFORE, AFTER, ("$.name",)),
        (b'{"a":[1,{"b":2}]}', b'{"a":[1,{"b":3}],"c":null}', ("$.a[1].b", "$.c")),
        (b'{"a":1}', b'{"a":"1"}', ("$.a",)),
        (b'{"a":{}}', b'{"a":[]}', ("$.a",)),
        (b"{}", b"{", None),
        (None, b"{}", None),
        (b"[" + b"1," * 20_000 + b"1]", b"[]", None),
        (b"[" * 50_000, b"[]", None),
    ],
)
def test_fields_that_differ(before: bytes | None, after: bytes, changed: tuple[str, ...] | None) -> None:
    found = changed_fields(before, after)
    assert (found if found is None else tuple(sorted(found))) == changed


def test_a_long_value_is_cut() -> None:
    assert shown_part(b"x" * 10_000_000, True).endswith("… (10,000,000 bytes)")
    assert shown_part(b"\xff\0", True) == "\\xff\0"
    assert shown_part((("h", None),), False) == "h=null"


FILE = Path("samples.jsonl")


def test_records_of_a_file() -> None:
    lines = [
        b' { "key": "a" ,"value": {"n": 1.50,  "big": 12345678901234567890.1}, "headers": {"h": "x"}, "timestamp": 7}',
        b'{"value_base64": "/w==", "partition": 1, "offset": 40}',
        b'{"key": null, "value": "text", "headers": [["h", null], ["h", "y"]]}',
    ]
    assert partitions_of(FILE, "t", lines) == (
        TrialPartition(
            "t",
            0,
            (
                TrialRecord(0, 7, b"a", b'{"n": 1.50,  "big": 12345678901234567890.1}', (("h", b"x"),)),
                TrialRecord(1, -1, None, b"text", (("h", None), ("h", b"y"))),
            ),
        ),
        TrialPartition("t", 1, (TrialRecord(40, -1, None, b"\xff"),)),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "a line is an object"),
        ("{", "record 1: "),
        ('{"vaule": 1}', "'vaule' is none of key, value"),
        ('{"offset": -1}', "offset is no number from 0 on"),
        ('{"timestamp": true}', "timestamp is no number from -1 on"),
        ('{"value_base64": "?"}', "value_base64 is no base64"),
        ('{"value": "", "value_base64": ""}', "exclude each other"),
        ('{"headers": [1]}', "headers are"),
    ],
)
def test_lines_that_are_no_record(line: str, message: str) -> None:
    with pytest.raises(CannotUse, match=r"samples\.jsonl: record 1: ") as raised:
        partitions_of(FILE, "t", [line.encode()])
    assert message in str(raised.value)


def test_offsets_ascend() -> None:
    with pytest.raises(CannotUse, match="record 2: offset 4 comes after 4"):
        partitions_of(FILE, "t", [b'{"offset": 4}', b'{"offset": 4}'])


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text('{"value": "1"}\n\n{"value": "2"}\nno record\n')
    (partition,) = read_record_file(file, "t", 2)
    assert [record.value for record in partition.records] == [b"1", b"2"]
    with pytest.raises(CannotUse, match="cannot be read"):
        read_record_file(tmp_path / "none", "t", 2)
