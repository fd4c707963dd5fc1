"""Lengths and strings as flexible messages have them (KIP-482), for the requests that are written here (no I/O)."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from lockstep_kafka.messages.message_versions import Parts
from lockstep_state.codecs.varint import unsigned

NO_TAGS = NULL = b"\0"
_NO_ID = bytes(16)


def length(count: int) -> bytes:
    """Of an array, a string or bytes with so many entries: an unsigned varint of one more, for 0 is null."""
    return unsigned(count + 1)


def compact_string(text: str) -> bytes:
    """Its length and its bytes."""
    encoded = text.encode()
    return length(len(encoded)) + encoded


def by_topic(topics: Mapping[UUID | str | None, Sequence[Parts]]) -> list[bytes | memoryview]:
    """What is said of partitions, topic by topic: each goes by its name, or by its id (None: it has none)."""
    parts: list[bytes | memoryview] = [length(len(topics))]
    for topic, entries in topics.items():
        key = compact_string(topic) if isinstance(topic, str) else _NO_ID if topic is None else topic.bytes
        parts += (key, length(len(entries)))
        for entry in entries:
            parts += entry
        parts.append(NO_TAGS)
    return parts
