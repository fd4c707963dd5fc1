"""Records of the commands topic: what an operator asked for (`architecture.md` §3).

Each is answered by an event with the same id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lockstep_protocol.rows.row import NewerVersion

__all__ = ["Command", "decode_command"]

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request. `service` names who is asked (empty: every service of the flow); `verb` what for."""

    id: str
    verb: str
    """`refresh`, `pause`, `resume`, `stop`, `restart`, `offsets-list`, `offsets-alter` or `offsets-reset` (`verbs`)."""
    service: str = ""
    subject: str = ""
    """What it is about: "" or `flow`, `connector:NAME`, `slot:N`, `topic:T`, `partition:T-N`, `group:G`."""
    at_ms: int = 0
    arguments: dict[str, Any] = field(default_factory=dict)
    """JSON values. Of `offsets-alter` the body of Connect's `PATCH /connectors/NAME/offsets`."""

    def encode(self) -> tuple[bytes, bytes]:
        """Key (the id) and value as they lie in the topic."""
        body = {
            "version": VERSION,
            "id": self.id,
            "verb": self.verb,
            "service": self.service,
            "subject": self.subject,
            "at_ms": self.at_ms,
            "arguments": self.arguments,
        }
        return self.id.encode(), json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode_command(value: bytes) -> Command:
    """Read a command. Raises ValueError when the bytes are none, NewerVersion when they are a newer release's."""
    body = json.loads(value)
    version = body.get("version", 0) if isinstance(body, dict) else 0
    if not isinstance(version, int):
        raise ValueError(f"not a command: its version is {version!r}")
    if version > VERSION:
        raise NewerVersion(f"command {body.get('id')}", version, VERSION)
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("id", "verb")):
        raise ValueError("not a command: a JSON object with the texts id and verb is expected")
    names = ("id", "verb", "service", "subject", "at_ms", "arguments")
    return Command(**{name: body[name] for name in names if name in body})
