"""Records of control topics as JSON values, within bounds. Pure.

What is in a record was written by anybody: it is text for a page, and never more.
"""

import logging
from collections.abc import Sequence
from typing import Any

from lockstep_ops.control_records import ControlRecord
from lockstep_ops.control_topics import record_as_json
from lockstep_ops.record_decoder import decode
from lockstep_ops.record_parts import parts_as_json
from lockstep_state.event_kinds import EVENT_KINDS

MOST_BYTES = 4_000_000
"""Bytes of values whose details are in one answer. Of the others only the line is."""

LONGEST_HEADER = 1_000
"""Characters of a header's value that are shown."""

OWN_HEADERS = "lockstep."
"""The beginning of the names of our own headers in quarantine. All else of such a record is masked."""


def record_bodies(flow: str, role: str, records: Sequence[ControlRecord]) -> list[dict[str, Any]]:
    """Return the records, the newest first. `cut` says that the details of a record are left out for their size."""
    bodies, left = [], MOST_BYTES
    for entry in reversed(records):
        record = entry.record
        size = len(record.key or b"") + len(record.value or b"")
        body = record_as_json(flow, role, record, decode(role, record.key, record.value))
        body |= {
            "timestamp_ms": record.timestamp_ms,
            "bytes": size,
            "headers": header_bodies(role, entry),
            "warning": role == "events" and is_warning(body["kind"]),
            "cut": False,
        }
        left -= size
        if left < 0:
            body |= {"detail": {}, "cut": True}
        bodies.append(body)
    return bodies


def is_warning(kind: str) -> bool:
    """Return whether an event of this kind is something that an operator should know of."""
    declared = EVENT_KINDS.get(kind)
    return declared is not None and declared.level >= logging.WARNING


def header_bodies(role: str, entry: ControlRecord) -> list[list[Any]] | None:
    """Return the headers as pairs of name and text; None: they cannot be read.

    Of a record in quarantine only our own headers are shown. Those of the customer's record have size and digest.
    """
    if entry.headers is None:
        return None
    shown = []
    for name, value in entry.headers:
        if role == "quarantine" and not name.startswith(OWN_HEADERS):
            shown.append([name, _masked(value)])
        else:
            text = None if value is None else value.decode(errors="backslashreplace")[:LONGEST_HEADER]
            shown.append([name, text])
    return shown


class _Part:
    """A record that consists of one value."""

    timestamp, key = 0, None
    headers: Sequence[tuple[str, bytes | None]] = ()

    def __init__(self, value: bytes | None) -> None:
        self.value = value


def _masked(value: bytes | None) -> Any:
    return parts_as_json(_Part(value), values=False)["value"]
