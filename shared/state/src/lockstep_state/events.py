"""The records of the events topic, in past tense (`architecture.md` §3).

No decision reads them, except that a command counts as done when an event answers it.
"""

from dataclasses import dataclass, field
from typing import Any

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.row import ControlRecord
from lockstep_state.rows.value_types import Count, UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ControlRecord):
    """An event of a flow. `kind` is a past-tense name such as `TopicCreated`, `subject` what it is about."""

    kind: str
    service: str
    flow: str
    subject: str = ""
    at_ms: UnixMs = 0
    term: Count = 0
    instance: str = ""
    answers: str = ""
    """The id of the command this event answers; empty for what happened unasked."""
    detail: dict[str, Any] = field(default_factory=dict)
    """JSON values only: ranges, names, reasons, as the kind needs them."""

    def encode(self) -> tuple[bytes, bytes]:
        """Return key (the subject) and value as in the topic."""
        return self.subject.encode(), self.encode_value()


def cause_detail(cause: Reason) -> dict[str, Any]:
    """Return the fields of an event's detail about its cause: `reason` has the sentence, `cause` the code."""
    return {"reason": format_sentence(cause), "cause": cause.to_json()} if cause else {}


def event_words(kind: str) -> str:
    """Return a kind as people read it: `TopicCreated` is "topic created"."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()


def decode_event(value: bytes) -> Event:
    """Return the event in a value. Raises as `ControlRecord.decode_value`."""
    return Event.decode_value(value, "event", "kind")
