"""Schemas of the control topics, rows of earlier releases and rows of newer ones."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from lockstep_state.commands.command import Command, decode_command
from lockstep_state.events import Event, decode_event
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import ROWS, Row, decode_row
from lockstep_state.schemas import names, schema
from tests.support.control_records import records_of
from tests.support.json_schema import faults
from tools.docs.schemas import LIMITS, generated

OLD = Path(__file__).parent / "old"

Kept = dict[str, Any]
"""A record as a release wrote it: `release`, `key`, `value`."""


def kept(name: str) -> list[Kept]:
    return [json.loads(line) for line in (OLD / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, list) else value


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_every_kind_has_its_schema() -> None:
    assert generated().keys() <= set(names())


def test_every_field_is_in_its_schema_and_no_other() -> None:
    for kind, cls in ROWS.items():
        assert schema(kind, cls.version)["properties"].keys() == {"version"} | {f.name for f in fields(cls)}
    assert schema("event")["properties"].keys() == {"version"} | {f.name for f in fields(Event)}
    assert schema("command")["properties"].keys() == {"version"} | {f.name for f in fields(Command)}


def test_unknown_schema_is_refused_with_the_known_schemas() -> None:
    with pytest.raises(KeyError, match=r"no schema of 'topics' in version 1; there are acl-binding\.v1"):
        schema("topics")


@pytest.mark.parametrize("kind", sorted(ROWS.keys() - LIMITS.keys()))
def test_every_row_that_can_be_is_valid(kind: str) -> None:
    @given(records_of(ROWS[kind]))
    def check(row: Row) -> None:
        assert list(faults(json.loads(row.encode()[1]), schema(kind))) == []

    check()


@given(records_of(Event), records_of(Command))
def test_every_event_and_command_is_valid(event: Event, command: Command) -> None:
    assert list(faults(json.loads(event.encode()[1]), schema("event"))) == []
    assert list(faults(json.loads(command.encode()[1]), schema("command"))) == []


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        ("wanted", {"version": 1, "phase": "paused"}, "row lacks scope"),
        ("wanted", {"version": 2, "scope": "topic:t"}, "row.version is 2"),
        ("topic", {"version": 1, "source_topic": 3, "target_topic": "A.t"}, "row.source_topic is no string"),
        ("assignment", {"version": 1, "slot": 0, "ending": 1}, "row.ending is no boolean"),
        ("assignment", {"version": 1, "slot": 0, "partitions": [["t"]]}, "row.partitions[0] has 1 items"),
        ("group", {"version": 1, "group": "g", "phase": "x", "positions": [["t", "0", 1, 2]]}, "is no integer"),
        ("command", {"version": 1, "id": "c"}, "row lacks verb"),
    ],
)
def test_schema_names_the_fault_of_a_malformed_row(kind: str, value: Any, fault: str) -> None:
    assert any(fault in text for text in faults(value, schema(kind)))


# -- what earlier releases wrote ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", kept("rows"), ids=lambda old: f"{old['release']} {old['key']}")
def test_old_rows_are_read_as_they_were_meant(old: Kept) -> None:
    key, value = old["key"].encode(), as_bytes(old["value"])
    row = decode_row(key, value)
    assert row is not None
    assert row.key() == old["key"]
    for name, meant in old["value"].items():
        if name != "version":
            assert getattr(row, name) == frozen(meant), name
    assert list(faults(old["value"], schema(row.kind, old["value"]["version"]))) == [] or row.kind in LIMITS


def test_rows_of_every_kind_are_kept() -> None:
    """A new kind gets a line in `old/rows.jsonl`, and so does a new version of one. Lines are never changed."""
    versions = {(old["key"].partition("/")[0], old["value"]["version"]) for old in kept("rows")}
    assert versions >= {(kind, version) for kind, cls in ROWS.items() for version in range(1, cls.version + 1)}


@pytest.mark.parametrize(
    ("kind", "decode", "old"),
    [
        pytest.param(
            kind, decode, old, id=f"{old['release']} {kind} {old['value'].get('kind', old['value'].get('verb'))}"
        )
        for kind, decode in (("event", decode_event), ("command", decode_command))
        for old in kept(f"{kind}s")
    ],
)
def test_old_events_and_commands_are_read_with_every_field(
    kind: str, decode: Callable[[bytes], Event | Command], old: Kept
) -> None:
    record = decode(as_bytes(old["value"]))
    assert {name: getattr(record, name) for name in old["value"] if name != "version"} | {"version": 1} == old["value"]
    assert list(faults(old["value"], schema(kind))) == []


# -- what newer releases write -----------------------------------------------------------------------------------------


def newer(old: Kept, read: int) -> bytes:
    """A later release may have changed everything but the field `version`."""
    return as_bytes({**old["value"], "version": read + 1, "phase": {"of": "a later release"}})


@pytest.mark.parametrize("old", kept("rows"), ids=lambda old: old["key"])
def test_a_newer_row_of_any_kind_stops_with_that_sentence(old: Kept) -> None:
    read = ROWS[old["key"].partition("/")[0]].version
    sentence = f"was written in version {read + 1}, this release reads up to {read}: run the newer release everywhere"
    with pytest.raises(NewerVersion, match=sentence):
        decode_row(old["key"].encode(), newer(old, read))


@pytest.mark.parametrize(("name", "decode"), [("events", decode_event), ("commands", decode_command)])
def test_a_newer_event_or_command_stops_with_that_sentence(name: str, decode: Callable[[bytes], object]) -> None:
    for old in [*kept(name), {"value": {}}]:
        with pytest.raises(NewerVersion, match="run the newer release everywhere"):
            decode(newer(old, 1))
