"""Lengths and strings as flexible messages have them (KIP-482), for the requests that are written here (no I/O)."""

from __future__ import annotations

from uuid import UUID

__all__ = ["NO_TAGS", "NULL", "length", "string", "topic_key"]

NO_TAGS = NULL = b"\0"
_SHORT = tuple(bytes([written]) for written in range(0x80))
_NO_ID = bytes(16)


def length(count: int) -> bytes:
    """Of an array, a string or bytes with so many entries: an unsigned varint of one more, for 0 is null."""
    left = count + 1
    if left < 0x80:
        return _SHORT[left]
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def string(text: str) -> bytes:
    """Its length and its bytes."""
    encoded = text.encode()
    return length(len(encoded)) + encoded


def topic_key(topic: UUID | str | None) -> bytes:
    """What a message calls a topic by: its name, or its id; None: it has no id."""
    if isinstance(topic, str):
        return string(topic)
    return _NO_ID if topic is None else topic.bytes
