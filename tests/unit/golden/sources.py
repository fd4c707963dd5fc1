"""Where the golden tests find what the code says. Only this module, and `programs.py` for what runs, import the code:
where modules move, or classes and functions get other names, nothing else here is to change.

They give plain values: texts, bytes, mappings. What these are to be stands in the `*.txt` files beside them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lockstep_config import FlowSettings, load
from lockstep_config.flow import client_settings as clients
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_data_plane.admin.legacy_group import commit_metadata
from lockstep_data_plane.core.quarantine_entry import QuarantineEntry
from lockstep_kafka.topics import control_topics
from lockstep_rules.offsets import gap_policy
from lockstep_state import names
from lockstep_state.codecs import mm2_codec
from lockstep_state.codecs.connect_offsets import OffsetChange, OffsetFold, encode_change, parse_changes
from lockstep_state.codecs.mm2_codec import Checkpoint, Heartbeat, OffsetSync
from lockstep_state.commands.command import Command, decode_command
from lockstep_state.commands.command_vocabulary import (
    SERVICES,
    VERBS,
    Connector,
    Scope,
    answering_services,
    owner_of_wanted,
)
from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import ROWS, Row, decode_row
from lockstep_state.schemas import names as schema_names
from lockstep_state.schemas import schema

Bytes = tuple[bytes, bytes | None]

AB = Flow("A", "B")
FILE = """clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
A->B.topics = orders.*
"""

# -- what the code scanner looks for -----------------------------------------------------------------------------------

EVENT_CALLS = ("event", "_event", "TopicEvent", "Answer")
"""Their first text is an event's kind, or (`ProduceAnswer`) a verb's answer; the rest is its detail."""
NO_DETAIL = {"text", "loud", "quiet", "answers", "level"}
"""Keywords of these calls that are not in the event."""
HAPPENED_CALLS, ANSWER_CALLS, MEMBER_CALLS = ("add_event",), ("Answer",), ("App",)
ROUND_CALLS, SPAN_CALLS, NOTE_CALLS, ADMIN_CALLS = (
    ("every",),
    ("span_interval", "step"),
    ("set_attributes",),
    ("_blocking", "_answer", "_collect", "_list_topics"),
)
STATUS_FUNCTIONS = ("status", "_upstream_status")
"""Those that say what `/status` shows."""
ROLE_CALLS = {
    "client_id": 1,
    **dict.fromkeys(
        ("source_admin", "target_admin", "source_consumer", "target_consumer", "target_follower", "StateTopicRows"), 1
    ),
    **dict.fromkeys(("source_producer", "target_producer", "offset_syncs_producer", "offset_syncs_consumer"), 1),
}
"""Which argument is the client's role."""


def gap_details() -> Mapping[str, Sequence[str]]:
    """Detail that these events take from what was found and decided."""
    found = gap_policy.GapFound(
        case=gap_policy.GapCase.TARGET_TRUNCATED,
        text="",
        next_upstream=5,
        start=0,
        end=9,
        acked_downstream=4,
        target_end=3,
    )
    decision = gap_policy.GapDecision(begin=0, policy="skip").facts()
    went_on = dict.fromkeys(("GapSkipped", "CopyRestarted", "ResumedWithDoubt"), tuple(decision))
    return {"GapFound": tuple(found.facts()), **went_on}


# -- control topics ----------------------------------------------------------------------------------------------------


def schemas() -> Mapping[str, Mapping[str, Any]]:
    """Of records, by `NAME.vVERSION`."""
    kinds = {name: name.rpartition(".v") for name in schema_names()}
    return {
        name: schema(kind, int(version))
        for name, (kind, _, version) in kinds.items()
        if kind in (*ROWS, "event", "command")
    }


def row_kinds() -> Mapping[str, int]:
    """With their versions."""
    return {kind: row.version for kind, row in ROWS.items()}


def record(name: str, body: Mapping[str, Any]) -> Bytes:
    """Key and value of a row of that kind, an `event` or a `command`."""
    if name == "event":
        return Event(**body).encode()
    return Command(**body).encode() if name == "command" else row_of(name, body).encode()


def derived_fields(kind: str) -> tuple[str, ...]:
    """Return the fields of a row that follow from others."""
    return tuple(field.name for field in fields(ROWS[kind]) if not field.init) if kind in ROWS else ()


def row_of(kind: str, body: Mapping[str, Any]) -> Row:
    """The row of that kind with these fields, as JSON has them."""
    return ROWS[kind].decode_value(json.dumps({"version": ROWS[kind].version, **body}).encode(), kind)


def again(name: str, key: bytes, value: bytes) -> Bytes:
    """What is decoded, encoded anew."""
    if name == "event":
        return decode_event(value).encode()
    if name == "command":
        return decode_command(value).encode()
    row = decode_row(key, value)
    assert row is not None
    return row.encode()


def verbs() -> Mapping[str, str]:
    """With the event that answers each."""
    return {verb: command.answer for verb, command in VERBS.items()}


def scopes() -> Sequence[str]:
    """Of each kind one, of connectors all, as they are written again."""
    given = ["flow", *(f"connector:{c.value}" for c in Connector), "slot:3", "topic:t", "partition:t-7", "group:g"]
    return [str(Scope.parse(text)) for text in given]


def answering(verb: str, scope: str) -> Sequence[str]:
    """The services that answer; none where the verb is not for the scope."""
    try:
        return sorted(answering_services(verb, Scope.parse(scope)))
    except ValueError:
        return []


def placed(scope: str) -> tuple[int, str]:
    """The partition of its commands, and who owns what is wanted of it."""
    return Scope.parse(scope).commands_partition, owner_of_wanted(scope)


# -- MirrorMaker 2's records -------------------------------------------------------------------------------------------


def mirror_records() -> Iterator[tuple[str, Bytes, object, object]]:
    """Name, key and value, the record, and what is read again from the bytes."""
    up, down = UpstreamOffset(3), DownstreamOffset(4)
    sync = OffsetSync("tö", 2, up, down)
    checkpoint = Checkpoint("g1", "A.tö", 2, UpstreamOffset(10), DownstreamOffset(5), "meta")
    beat = Heartbeat("A", "B", 1234567890)
    written = mm2_codec.encode_offset_sync(sync)
    yield "offset sync", written, sync, mm2_codec.decode_offset_sync(*written)
    written = mm2_codec.encode_checkpoint(checkpoint)
    yield "checkpoint", written, checkpoint, mm2_codec.decode_checkpoint(*written)
    written = mm2_codec.encode_heartbeat(beat)
    yield "heartbeat", written, beat, mm2_codec.decode_heartbeat(*written)
    progress: Bytes = mm2_codec.encode_source_progress("A", "tö", 2, 123)
    yield "source offset", progress, ("A", "tö", 2, 123), _progress(progress)
    progress = mm2_codec.encode_source_progress_reset("A", "tö", 2, "A->B.MirrorSourceConnector")
    yield "source offset, reset", progress, ("A", "tö", 2, None), _progress(progress)
    for connector, partition in PARTITIONS.items():
        name = Connector(connector).value
        for offset in (0, None):
            body = {"partition": partition, "offset": None if offset is None else {"offset": offset}}
            (change,) = parse_changes(Connector(connector), {"offsets": [body]})
            progress = encode_change(name, change)
            fold = OffsetFold()
            fold.apply(*progress)
            read = fold.for_connector(name).get(progress[0], replace(change, offset=None))
            yield f"{name}, {'reset' if offset is None else 'altered'}", progress, change, read


PARTITIONS: Mapping[str, Mapping[str, Any]] = {
    "MirrorSourceConnector": {"cluster": "A", "topic": "tö", "partition": 2},
    "MirrorCheckpointConnector": {"group": "g", "topic": "tö", "partition": 2},
    "MirrorHeartbeatConnector": {"sourceClusterAlias": "A", "targetClusterAlias": "B"},
}


def _progress(written: Bytes) -> tuple[object, ...]:
    key, value = written
    (_, partition), offset = json.loads(key), None if value is None else json.loads(value)["offset"]
    place = OffsetChange(partition, offset).source_partition()
    assert place is not None
    cluster, (topic, number) = place
    return cluster, topic, number, offset


def quarantined() -> Bytes:
    """Headers as JSON, and key and value."""
    key, value, headers = QuarantineEntry(5, 6, b"k", b"v", (("own", b"x"),), 1700).record("t", 3, "why")
    return json.dumps([(name, text.decode()) for name, text in headers]).encode(), (key or b"") + b" " + (value or b"")


# -- names -------------------------------------------------------------------------------------------------------------


@cache
def settings() -> FlowSettings:
    with a_file() as file:
        return load(file, {}).flows[0]


@contextmanager
def a_file() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mm2.properties"
        file.write_text(FILE)
        yield file


def topics() -> Iterator[tuple[str, Mapping[str, object]]]:
    """Topics of the flow with what they are created with."""
    flow = settings()
    created = [*control_topics.flow_topics(AB, None, 3), *control_topics.flow_topics(AB, "two", 3)[:1]]
    created += [control_topics.source_offsets_topic(flow.control), control_topics.offset_syncs_topic(flow)]
    for topic in created:
        about = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
        yield topic.name, about | dict(sorted(topic.configs.items()))
    others = (names.quarantine_topic(AB), names.quarantine_topic(AB, "two"), names.progress_topic(AB))
    for name in (*others, flow.checkpoints_topic, flow.policy.heartbeats_topic()):
        yield name, {}


def groups() -> Iterator[str]:
    for group_id in (None, "two"):
        yield from (names.service_group(service, AB, group_id) for service in SERVICES)


def transactional_ids() -> Sequence[str]:
    return [names.transactional_id(AB, group_id, "t", 3) for group_id in (None, "two")]


def client_settings() -> Iterator[tuple[str, Mapping[str, object]]]:
    """What clients are made with where the file says nothing."""
    flow = settings()
    yield "admin of the source", clients.source_admin(flow)
    yield "admin of the target", clients.target_admin(flow)
    yield "consumer of the source", clients.source_consumer(flow, "role")
    yield "consumer of the target", clients.target_consumer(flow, "role")
    yield "producer to the source", clients.source_producer(flow, "role")
    yield "producer to the target", clients.target_producer(flow, "role")
    yield "producer of offset syncs", clients.offset_syncs_producer(flow)
    yield "consumer of offset syncs", clients.offset_syncs_consumer(flow)


def committed_metadata() -> str:
    return commit_metadata(AB, 4000)


def client_id(role: str) -> str:
    return clients.client_id(settings(), role, {})


# -- keys of clients ---------------------------------------------------------------------------------------------------


def client_keys() -> Iterator[tuple[str, ...]]:
    """Keys of a whole cluster, and those of each kind of client."""
    yield from (("connection", name) for name in sorted(CONNECTION))
    for kind, keys in CLIENT.items():
        for key in sorted(keys.values(), key=lambda key: key.name):
            limits = "" if key.minimum is None and key.maximum is None else f"{key.minimum} to {key.maximum}"
            yield kind, key.name, key.status.value, key.librdkafka, limits, ", ".join(key.choices)
