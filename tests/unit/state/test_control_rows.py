"""Rows, events and commands of the control topics (`architecture.md` §3)."""

import contextlib
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.commands.command import Command, decode_command
from lockstep_state.events import Event, decode_event
from lockstep_state.rows.row import ControlRecord
from lockstep_state.rows.state_rows import ROWS, MalformedRow, MirroredTopic, NewerVersion, Row, SlotStatus, decode_row
from lockstep_state.rows.value_types import field_readers
from tests.support.control_records import GARBAGE, damaged, example, records_of

any_row: st.SearchStrategy[Row] = st.one_of(*map(records_of, ROWS.values()))

SLOT = SlotStatus(slot=3, phase="started", run="r", at_ms=5, term=2)


def changed(value: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(value), **fields}).encode()


@pytest.mark.parametrize("kind", sorted(ROWS))
def test_row_of_each_kind_survives_encoding_and_decoding(kind: str) -> None:
    @given(records_of(ROWS[kind]))
    def check(row: Row) -> None:
        key, value = row.encode()
        read = decode_row(key, value)
        assert read == row
        assert type(read) is ROWS[kind]
        assert hash(read) == hash(row)
        assert row.encode() == (key, value)
        assert key.decode().startswith(f"{kind}/")

    check()


@given(records_of(Event) | records_of(Command))
def test_event_or_command_survives_encoding_and_decoding(record: Event | Command) -> None:
    key, value = record.encode()
    assert key.decode() == (record.subject if isinstance(record, Event) else record.id)
    assert (decode_event(value) if isinstance(record, Event) else decode_command(value)) == record


@given(st.lists(any_row, max_size=8))
def test_folding_the_log_twice_changes_nothing(rows: list[Row]) -> None:
    log = [row.encode() for row in rows]

    def fold(state: dict[bytes, Row], records: list[tuple[bytes, bytes]]) -> dict[bytes, Row]:
        for key, value in records:
            row = decode_row(key, value)
            assert row is not None
            state = {**state, key: row}
        return state

    once = fold({}, log)
    assert fold(once, log) == once
    assert once == {row.key().encode(): row for row in rows}


def test_tombstones_and_unknown_kinds_are_nothing() -> None:
    key, value = SLOT.encode()
    assert decode_row(key, None) is None
    assert decode_row(b"colours/t/0", value) is None
    assert decode_row(b"colours/t/0", b"not even JSON") is None
    assert decode_row(b"", b"") is None


def test_fields_of_a_later_release_are_ignored() -> None:
    key, value = SLOT.encode()
    assert decode_row(key, changed(value, colour="blue")) == SLOT
    event = Event(kind="TopicCreated", service="topic-sync", flow="A->B")
    assert decode_event(changed(event.encode()[1], colour="blue")) == event
    command = Command(id="1", verb="pause")
    assert decode_command(changed(command.encode()[1], colour="blue")) == command


def test_fields_an_earlier_release_did_not_write_take_their_defaults() -> None:
    row = decode_row(b"topic/t", b'{"version":1,"source_topic":"t","target_topic":"A.t"}')
    assert row == MirroredTopic(source_topic="t", target_topic="A.t")


def test_a_newer_version_stops_the_reader_with_a_sentence() -> None:
    key, value = SLOT.encode()
    with pytest.raises(NewerVersion) as caught:
        decode_row(key, changed(value, version=2, phase=7))
    assert str(caught.value) == (
        "'slot/3' was written in version 2, this release reads up to 1: run the newer release everywhere"
    )
    assert (caught.value.key, caught.value.version) == ("slot/3", 2)
    with pytest.raises(
        NewerVersion, match="'event k' was written in version 2, this release reads up to 1: run the newer"
    ):
        decode_event(changed(Event(kind="k", service="s", flow="f").encode()[1], version=2))
    with pytest.raises(
        NewerVersion, match="'command 1' was written in version 2, this release reads up to 1: run the newer"
    ):
        decode_command(changed(Command(id="1", verb="pause").encode()[1], version=2))


@pytest.mark.parametrize("value", [b"", b"nonsense", b"[]", b"7", b"{}", b'{"version":1}', b'{"version":"x"}', b"\xff"])
def test_malformed_row_names_its_key(value: bytes) -> None:
    with pytest.raises(MalformedRow, match="state row 'slot/3': "):
        decode_row(b"slot/3", value)


def test_a_row_under_anothers_key_is_malformed() -> None:
    _, value = SLOT.encode()
    with pytest.raises(MalformedRow, match="its value belongs to 'slot/3'"):
        decode_row(b"slot/4", value)


@pytest.mark.parametrize("value", [b"", b"nonsense", b"[]", b"7", b"{}", b'{"id":1,"kind":2}', b"\xff"])
def test_malformed_event_or_command_is_no_record(value: bytes) -> None:
    with pytest.raises(MalformedRow, match="event: "):
        decode_event(value)
    with pytest.raises(MalformedRow, match="command: "):
        decode_command(value)


def test_rows_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SLOT.phase = "released"  # type: ignore[misc]  # that it is refused is the point


def test_names_beyond_ascii_stay_readable_in_the_topic() -> None:
    key, value = MirroredTopic(source_topic="größe", target_topic="A.größe").encode()
    assert key == "topic/größe".encode()
    assert "größe" in value.decode()


def test_a_row_without_a_key_of_its_own_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="Row has no key of its own"):
        Row().encode()


KINDS = {**ROWS, "event": Event, "command": Command}


def read(kind: str, key: bytes, value: bytes) -> ControlRecord | None:
    if kind == "event":
        return decode_event(value)
    return decode_command(value) if kind == "command" else decode_row(key, value)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_record_with_a_wrong_value_is_malformed_or_has_its_types(kind: str) -> None:
    """What passes is written again with the same bytes, and read again: nothing in it can surprise its reader."""
    key, value = example(KINDS[kind]).encode()
    refused = 0
    for wrong in damaged(value):
        try:
            record = read(kind, key, wrong)
        except MalformedRow:
            refused += 1
            continue
        assert record is not None
        hash(record if isinstance(record, Row) else record.encode_value())
        assert read(kind, key, record.encode_value()) == record
    assert refused > 20


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("value", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_malformed_and_no_newer_version(kind: str, value: bytes) -> None:
    key, _ = example(KINDS[kind]).encode()
    with pytest.raises(MalformedRow):
        read(kind, key, value)


@given(st.binary(max_size=60), st.binary(max_size=200), st.sampled_from(sorted(ROWS)))
def test_reader_of_rows_raises_only_its_own_errors(identity: bytes, value: bytes, kind: str) -> None:
    with contextlib.suppress(MalformedRow):
        decode_row(f"{kind}/".encode() + identity, value)


def test_wrong_value_is_named_with_its_field_and_what_is_expected() -> None:
    key, value = SLOT.encode()
    expected = r"state row 'slot/3': field 'term': '9' is not an integer from 0 to 9223372036854775807"
    with pytest.raises(MalformedRow, match=expected):
        decode_row(key, changed(value, term="9"))


def test_every_field_of_every_record_has_a_type_that_is_checked() -> None:
    for record in KINDS.values():
        assert field_readers(record).keys() == {field.name for field in dataclasses.fields(record)}


@pytest.mark.parametrize("levels", [31, 40, 900])
def test_detail_nested_too_deeply_is_malformed(levels: int) -> None:
    value = Event(kind="k", service="s", flow="f").encode()[1]
    deep = value.replace(b'"detail":{}', b'"detail":{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}")
    if levels < 32:
        decode_event(deep)
    else:
        with pytest.raises(MalformedRow, match="nested"):
            decode_event(deep)
