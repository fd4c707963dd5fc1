"""Records of the events topic: what happened, past tense (`architecture.md` §3). Nothing decides from them, save that a
command counts as done when an event answers it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lockstep_protocol.rows.row import NewerVersion

__all__ = ["Event", "decode_event", "event_words"]

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. `kind` is a past-tense name such as `TopicCreated`; `subject` what it happened to."""

    kind: str
    service: str
    flow: str
    subject: str = ""
    at_ms: int = 0
    term: int = 0
    instance: str = ""
    answers: str = ""
    """The id of the command this event answers; empty for what happened unasked."""
    detail: dict[str, Any] = field(default_factory=dict)
    """JSON values only: ranges, names, reasons, as the kind needs them."""

    def encode(self) -> tuple[bytes, bytes]:
        """Key (the subject) and value as they lie in the topic."""
        body = {"version": VERSION, **asdict(self)}
        return self.subject.encode(), json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def event_words(kind: str) -> str:
    """A kind as people read it: `TopicCreated` is "topic created"."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()


def decode_event(value: bytes) -> Event:
    """Read an event. Raises ValueError when the bytes are none, NewerVersion when they are a newer release's."""
    body = json.loads(value)
    version = body.get("version", 0) if isinstance(body, dict) else 0
    if not isinstance(version, int):
        raise ValueError(f"not an event: its version is {version!r}")
    if version > VERSION:
        raise NewerVersion(f"event {body.get('kind')}", version, VERSION)
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("kind", "service", "flow")):
        raise ValueError("not an event: a JSON object with the texts kind, service and flow is expected")
    return Event(**{one.name: body[one.name] for one in fields(Event) if one.name in body})
