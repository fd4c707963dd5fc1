"""The parts of a record as commands read and show them.

Without `values` they are masked: only sizes and digests are shown.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, Protocol

from confluent_kafka import Message

from lockstep_ops.exit_codes import CannotUse

PARTS = ("timestamp", "key", "value", "headers")
DIGEST = 12
"""The number of characters of a SHA-256 that stand for a masked value."""

_HEADERS_OF: Callable[[Message], list[tuple[str, bytes | None]] | None] = methodcaller("headers")
"""Reads headers. At a name that is no UTF-8 confluent-kafka returns a list, and leaves its error to a later call.
Python checks for such an error if C code has made the call, as here, and not always otherwise.
"""


class RecordParts(Protocol):
    """A record with the parts of `PARTS`."""

    @property
    def timestamp(self) -> int:
        """The Unix milliseconds."""

    @property
    def key(self) -> bytes | None:
        """The key."""

    @property
    def value(self) -> bytes | None:
        """The value."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """The headers, in their order."""


def message_headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of a message.

    Raises:
        CannotUse: The name of one is no UTF-8.
    """
    try:
        return tuple(_HEADERS_OF(message) or [])
    except (UnicodeDecodeError, SystemError) as exc:
        raise CannotUse(
            f"{message.topic()}-{message.partition()}: a header of the record at offset {message.offset()} has a name "
            "that is no UTF-8, which this command cannot read. Slots can"
        ) from exc


def parts_as_json(record: RecordParts, *, values: bool) -> dict[str, Any]:
    """Return the parts of a record for programs; with `values` their bytes too."""
    return {
        "timestamp": record.timestamp,
        "key": _as_json(record.key, values),
        "value": _as_json(record.value, values),
        "headers": [[name, _as_json(value, values)] for name, value in record.headers],
    }


def part_text(part: Any, show: Callable[[bytes], str] | None) -> str:
    """Return a part of a record as a text. `show` makes a text of bytes; None: they are masked."""
    if isinstance(part, tuple):
        return ", ".join(f"{name}={part_text(value, show)}" for name, value in part) or "none"
    if not isinstance(part, bytes):
        return "null" if part is None else str(part)
    if show is not None:
        return show(part)
    return f"{len(part):,} bytes, sha256 {_digest(part)}"


def _as_json(data: bytes | None, values: bool) -> Any:
    if data is None:
        return None
    whole = {"bytes": len(data), "sha256": _digest(data)}
    return {**whole, "base64": base64.b64encode(data).decode()} if values else whole


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST]
