"""Records of every control topic as lines."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_cli.commands.watch import TOPICS
from lockstep_ops.record_decoder import ROLES, UNDECODED, RowChanges, decode
from lockstep_state.codecs.mm2_codec import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
    encode_source_progress,
    encode_source_progress_reset,
)
from lockstep_state.commands.command import Command
from lockstep_state.events import Event
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import PartitionProgress

Bytes = tuple[bytes, bytes | None]

EVENT = Event(kind="TopicCreated", service="topic-sync", flow="A->B", subject="orders", detail={"partitions": 4})
COMMAND = Command(id="7", verb="pause", subject="topic:orders")
SYNC = OffsetSync("orders", 3, UpstreamOffset(5), DownstreamOffset(9))
CHECKPOINT = Checkpoint("billing", "A.orders", 1, UpstreamOffset(5), DownstreamOffset(9))


def test_every_topic_offered_can_be_decoded() -> None:
    assert set(TOPICS) == set(ROLES)


@pytest.mark.parametrize(
    ("role", "record", "kind", "about", "text"),
    [
        ("events", EVENT.encode(), "TopicCreated", "orders", "by topic-sync  partitions 4"),
        ("commands", COMMAND.encode(), "pause", "topic:orders", "id 7"),
        ("commands", replace(COMMAND, by="alice").encode(), "pause", "topic:orders", "id 7  by alice"),
        ("offset-syncs", encode_offset_sync(SYNC), "offset-sync", "orders-3", "upstream 5 is downstream 9"),
        (
            "checkpoints",
            encode_checkpoint(CHECKPOINT),
            "checkpoint",
            "billing",
            "A.orders-1  upstream 5 is downstream 9",
        ),
        ("heartbeats", encode_heartbeat(Heartbeat("A", "B", 77)), "heartbeat", "A->B", "timestamp 77"),
        (
            "offsets",
            encode_source_progress("A", "orders", 0, 123),
            "offset",
            "orders-0",
            "copied to 123  by MirrorSourceConnector of A",
        ),
        (
            "offsets",
            encode_source_progress_reset("A", "orders", 0, "A->B.MirrorSourceConnector"),
            "offset",
            "orders-0",
            "reset  by A->B.MirrorSourceConnector of A",
        ),
        (
            "offsets",
            (b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A"}]', b'{"offset":0}'),
            "offset",
            "MirrorHeartbeatConnector",
            'sourceClusterAlias A  {"offset":0}',
        ),
        ("quarantine", (b"k", b"value"), "quarantined", "", "key_bytes 1, value_bytes 5"),
        ("state", (b"leader/x", None), "leader", "x", "deleted"),
        ("state", (b"later/x/1", b'{"version":9,"new":"field"}'), "later", "x/1", "new field"),
    ],
)
def test_records_as_they_are_written(role: str, record: Bytes, kind: str, about: str, text: str) -> None:
    decoded = decode(role, *record)
    assert (decoded.kind, decoded.about, decoded.text) == (kind, about, text)
    json.dumps(dict(decoded.detail))


def test_decoded_answer_names_the_command_it_answers() -> None:
    answer = Event(kind="Paused", service="heartbeat", flow="A->B", answers="7")
    assert decode("events", *answer.encode()).text == "by heartbeat  answers 7"


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=50)
@given(key=st.none() | st.binary(), value=st.none() | st.binary())
def test_decoder_shows_any_record(role: str, key: bytes | None, value: bytes | None) -> None:
    decoded = decode(role, key, value)
    assert "\n" not in decoded.text
    json.dumps(dict(decoded.detail))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=25)
@given(key=JSON_VALUES, value=JSON_VALUES)
def test_json_that_is_something_else_is_shown(role: str, key: object, value: object) -> None:
    decoded = decode(role, json.dumps(key).encode(), json.dumps(value).encode())
    json.dumps(dict(decoded.detail))


@pytest.mark.parametrize("role", ["events", "state", "commands", "offsets"])
def test_field_that_no_release_knows_is_shown_only_if_programs_can_go_through_it(role: str) -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    row = PartitionProgress(topic="t", partition=0)
    records = {"events": EVENT.encode(), "state": row.encode(), "commands": COMMAND.encode()}
    key, value = records.get(role, (b'["c",{"x":1}]', b"{}"))
    decoded = decode(role, key, json.dumps(json.loads(value) | {"unknown": deep}).encode())
    assert decoded.kind == UNDECODED
    assert "nested deeper" in decoded.text
    json.dumps(asdict(decoded))


def test_undecodable_record_has_its_reason_and_its_bytes() -> None:
    decoded = decode("heartbeats", b"\x00", None)
    assert decoded.kind == UNDECODED
    assert "heartbeat value: missing" in decoded.text
    assert decoded.detail["key"] == "00"


@pytest.mark.parametrize(
    "value",
    [b'{"kind":"X","service":"s","flow":"f","detail":5}', b'{"kind":"X","service":"s","flow":"f","subject":{}}'],
)
def test_an_event_with_fields_of_other_types_is_shown(value: bytes) -> None:
    assert isinstance(decode("events", b"", value).about, str)


def test_record_of_a_newer_release_is_undecoded_with_a_remedy() -> None:
    decoded = decode("events", b"", b'{"version":9,"kind":"X","service":"s","flow":"f"}')
    assert decoded.kind == UNDECODED
    assert "run the newer release everywhere" in decoded.text


def test_row_of_a_newer_release_is_undecoded_and_an_unknown_kind_is_not() -> None:
    key, value = PartitionProgress(topic="t", partition=0).encode()
    newer = decode("state", key, value.replace(b'"version":1', b'"version":9'))
    assert newer.kind == UNDECODED
    assert "version 9" in newer.text
    assert decode("state", b"novelty/x", b'{"version":9,"a":1}').kind == "novelty"


def test_decoder_removes_terminal_escapes() -> None:
    event = Event(kind="X", service="s", flow="A->B", detail={"a": "\x1b[31m\n"})
    assert decode("events", *event.encode()).text == "by s  a ?[31m?"


# -- rows as changes --------------------------------------------------------------------------------------------------


@pytest.fixture
def fed() -> Callable[..., str | None]:
    changes = RowChanges()

    def feed(**fields: object) -> str | None:
        row = PartitionProgress(topic="t", partition=0, **fields)  # type: ignore[arg-type] # fields by name
        decoded = changes.decode(*row.encode())
        return None if decoded is None else decoded.text

    return feed


def test_decoded_first_row_is_complete_and_later_rows_are_differences(fed: Callable[..., str | None]) -> None:
    first = fed(upstream=5)
    assert first is not None
    assert "upstream 5" in first
    assert fed(upstream=7, lag_records=2, at_ms=9) == "upstream 5 -> 7, lag_records 0 -> 2"


def test_decoded_row_without_a_change_is_not_shown(fed: Callable[..., str | None]) -> None:
    fed(upstream=5, at_ms=1)
    assert fed(upstream=5, at_ms=2, term=3) is None


def test_a_row_that_was_deleted_is_new_again() -> None:
    changes, (key, value) = RowChanges(), PartitionProgress(topic="t", partition=0).encode()
    assert changes.decode(key, value) is not None
    gone = changes.decode(key, None)
    assert gone is not None
    assert gone.text == "deleted"
    again = changes.decode(key, value)
    assert again is not None
    assert "->" not in again.text


def test_garbage_among_rows_is_shown() -> None:
    decoded = RowChanges().decode(b"no row", b"\xff")
    assert decoded is not None
    assert decoded.kind == UNDECODED
