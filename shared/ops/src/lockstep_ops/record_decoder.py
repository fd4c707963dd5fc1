"""Decodes records of every topic that a flow keeps, ours and MM2's, for people and for programs. Pure.

Nothing raises: if a record cannot be read, its line says so.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lockstep_state.codecs.connect_offsets import OffsetChange
from lockstep_state.codecs.mm2_codec import decode_checkpoint, decode_heartbeat, decode_offset_sync
from lockstep_state.codecs.strict_json import parse_json, parse_object, require_shallow
from lockstep_state.commands.command import decode_command
from lockstep_state.events import decode_event
from lockstep_state.rows.state_rows import decode_row

UNDECODED = "undecoded"
"""The kind of a record that is not what its topic should hold."""

LONGEST = 80
"""Characters of one value in a line for people."""

UNSAID = frozenset(
    {"version", "at_ms", "term", "asked_ms", "age_window", "latency_window", "commit_window", "sync_window"}
)
"""Fields of a row that change with each writing and say nothing about its state. Lines for people leave them out."""


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record that was read: the kind of fact, its subject (`about`), a text, and JSON values."""

    kind: str
    about: str
    text: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def decode(role: str, key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode a record of the topic with this role, which is a key of `ROLES`.

    It never raises: a record that cannot be read is of kind `UNDECODED`. Of a state row it gives everything;
    `RowChanges` gives what is new.
    """
    try:
        decoded = ROLES[role](key, value)
        require_shallow(decoded.detail)  # fields that no release knows were not checked
        kind, about = _printable(str(decoded.kind)), _printable(str(decoded.about))
        return replace(decoded, kind=kind, about=about)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as exc:
        return _undecoded(key, value, str(exc) or type(exc).__name__)


class RowChanges:
    """The rows of one state topic, each as what it changes. Feed it every record in log order."""

    def __init__(self) -> None:
        self._rows: dict[str, Mapping[str, Any]] = {}

    def decode(self, key: bytes | None, value: bytes | None) -> DecodedRecord | None:
        """Return what the record changes, or None if it changes nothing."""
        decoded = decode("state", key, value)
        if decoded.kind == UNDECODED:
            return decoded
        name = f"{decoded.kind}/{decoded.about}"
        before = self._rows.get(name)
        if value is None:
            self._rows.pop(name, None)
            return decoded
        self._rows[name] = decoded.detail
        if before is None:
            return decoded
        fields = decoded.detail.items()
        changed = {name: value for name, value in fields if name not in UNSAID and before.get(name) != value}
        if not changed:
            return None
        words = ", ".join(f"{name} {_short(before.get(name))} -> {_short(now)}" for name, now in changed.items())
        return replace(decoded, text=words)


def _state(key: bytes | None, value: bytes | None) -> DecodedRecord:
    kind, slash, about = (key or b"").decode().partition("/")
    if not slash:
        raise ValueError("the key of a row is KIND/...")
    if value is None:
        return DecodedRecord(kind, about, "deleted")
    decode_row(key or b"", value)  # a row that this release would misread is none
    body = _object(value)
    stated = {name: value for name, value in body.items() if name not in UNSAID and value not in ("", [], None)}
    return DecodedRecord(kind, about, _fields(stated), body)


def _event(key: bytes | None, value: bytes | None) -> DecodedRecord:
    event = decode_event(_present(value))
    words = [f"by {event.service}", _fields(event.detail), f"answers {event.answers}" if event.answers else ""]
    return DecodedRecord(event.kind, event.subject, "  ".join(filter(None, words)), _object(_present(value)))


def _command(key: bytes | None, value: bytes | None) -> DecodedRecord:
    command = decode_command(_present(value))
    words = [
        f"id {command.id}",
        f"by {_short(command.by)}" if command.by else "",
        f"to {command.service}" if command.service else "",
        _fields(command.arguments),
    ]
    return DecodedRecord(
        command.verb, command.subject or "flow", "  ".join(filter(None, words)), _object(_present(value))
    )


def _offset_sync(key: bytes | None, value: bytes | None) -> DecodedRecord:
    sync = decode_offset_sync(key, value)
    text = f"upstream {sync.upstream} is downstream {sync.downstream}"
    return DecodedRecord("offset-sync", f"{sync.topic}-{sync.partition}", text, asdict(sync))


def _checkpoint(key: bytes | None, value: bytes | None) -> DecodedRecord:
    checkpoint = decode_checkpoint(key, value)
    offsets = f"upstream {checkpoint.upstream} is downstream {checkpoint.downstream}"
    text = f"{checkpoint.topic}-{checkpoint.partition}  {offsets}"
    return DecodedRecord("checkpoint", checkpoint.group, text, asdict(checkpoint))


def _heartbeat(key: bytes | None, value: bytes | None) -> DecodedRecord:
    beat = decode_heartbeat(key, value)
    return DecodedRecord("heartbeat", f"{beat.source}->{beat.target}", f"timestamp {beat.timestamp_ms}", asdict(beat))


def _progress(key: bytes | None, value: bytes | None) -> DecodedRecord:
    connector, partition = parse_json(_present(key))
    body = None if value is None else parse_json(value)
    offset = None if body is None else body.get("offset")
    if not (offset is None or type(offset) is int):
        raise ValueError(f"an offset is a number, not {_short(offset)}")
    place = OffsetChange(partition, offset).source_partition()
    if place is None:  # of another connector: its partition has other fields
        text = "reset" if body is None else _short(body)
        return DecodedRecord(
            "offset", str(connector), f"{_fields(partition)}  {text}", {"partition": partition, "offset": body}
        )
    cluster, (topic, number) = place
    text = ("reset" if offset is None else f"copied to {offset}") + f"  by {connector} of {cluster}"
    detail = {"connector": connector, "cluster": cluster, "topic": topic, "partition": number, "offset": offset}
    return DecodedRecord("offset", f"{topic}-{number}", text, detail)


def _quarantined(key: bytes | None, value: bytes | None) -> DecodedRecord:
    sizes = {"key_bytes": len(key or b""), "value_bytes": len(value or b"")}
    return DecodedRecord("quarantined", "", _fields(sizes), sizes)


ROLES: Mapping[str, Callable[[bytes | None, bytes | None], DecodedRecord]] = MappingProxyType(
    {
        "events": _event,
        "state": _state,
        "commands": _command,
        "checkpoints": _checkpoint,
        "offset-syncs": _offset_sync,
        "heartbeats": _heartbeat,
        "offsets": _progress,
        "quarantine": _quarantined,
    }
)
"""The decoders of records, by the role of the topic."""


def _undecoded(key: bytes | None, value: bytes | None, reason: str) -> DecodedRecord:
    text = f"{_printable(reason)}; key {_short(key)}, value {_short(value)}"
    return DecodedRecord(UNDECODED, "", text, {"why": reason, "key": _hex(key), "value": _hex(value)})


def _present(data: bytes | None) -> bytes:
    if data is None:
        raise ValueError("it has no value, or no key")
    return data


def _object(value: bytes) -> dict[str, Any]:
    return parse_object(value)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _fields(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{_printable(name)} {_short(value)}" for name, value in values.items())


def _printable(text: str) -> str:
    """Return the text without characters that a terminal would obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _short(value: object) -> str:
    """Return a value in few printable characters."""
    if isinstance(value, bytes):
        text = value.hex()
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    return _printable(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
