"""Rows, events and commands: what our own topics hold (`architecture.md` §3)."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_protocol.commands.command import Command, decode_command
from lockstep_protocol.events import Event, decode_event
from lockstep_protocol.reason import Reason
from lockstep_protocol.rows.state_rows import (
    ROWS,
    MalformedRow,
    MirroredTopic,
    NewerVersion,
    Row,
    SlotStatus,
    decode_row,
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
st.register_type_strategy(str, texts)
st.register_type_strategy(
    Reason,
    st.builds(
        lambda code, details: Reason(code, tuple(sorted(details.items()))),
        texts,
        st.dictionaries(texts, texts | st.integers(), max_size=3),
    ),
)
any_row: st.SearchStrategy[Row] = st.one_of(*(st.from_type(cls) for cls in ROWS.values()))
details = st.dictionaries(texts, json_values, max_size=3)
events = st.builds(
    Event,
    kind=texts,
    service=texts,
    flow=texts,
    subject=texts,
    at_ms=st.integers(),
    term=st.integers(),
    instance=texts,
    answers=texts,
    detail=details,
)
commands = st.builds(
    Command, id=texts, verb=texts, service=texts, subject=texts, at_ms=st.integers(), arguments=details
)

SLOT = SlotStatus(slot=3, phase="started", run="r", at_ms=5, term=2)


def changed(value: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(value), **fields}).encode()


@pytest.mark.parametrize("kind", sorted(ROWS))
def test_every_kind_of_row_survives_the_journey(kind: str) -> None:
    @given(st.from_type(ROWS[kind]))
    def check(row: Row) -> None:
        key, value = row.encode()
        read = decode_row(key, value)
        assert read == row
        assert type(read) is ROWS[kind]
        assert hash(read) == hash(row)
        assert row.encode() == (key, value)
        assert key.decode().startswith(f"{kind}/")

    check()


@given(events)
def test_events_survive_the_journey(event: Event) -> None:
    key, value = event.encode()
    assert key.decode() == event.subject
    assert decode_event(value) == event


@given(commands)
def test_commands_survive_the_journey(command: Command) -> None:
    key, value = command.encode()
    assert key.decode() == command.id
    assert decode_command(value) == command


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
    with pytest.raises(MalformedRow, match="state row b'slot/3'"):
        decode_row(b"slot/3", value)


def test_a_row_under_anothers_key_is_malformed() -> None:
    _, value = SLOT.encode()
    with pytest.raises(MalformedRow, match="its value belongs to 'slot/3'"):
        decode_row(b"slot/4", value)


@pytest.mark.parametrize("value", [b"", b"nonsense", b"[]", b"7", b"{}", b'{"id":1,"kind":2}', b"\xff"])
def test_malformed_event_or_command_raises_value_error(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"not an event|Expecting value|utf-8"):
        decode_event(value)
    with pytest.raises(ValueError, match=r"not a command|Expecting value|utf-8"):
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
