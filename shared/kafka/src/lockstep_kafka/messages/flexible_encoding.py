"""Lengths and strings of flexible messages (KIP-482), for the requests that are encoded here (no I/O)."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from lockstep_kafka.messages.message_versions import Parts
from lockstep_state.codecs.varint import unsigned

NO_TAGS = NULL = b"\0"
_NO_ID = bytes(16)


def encode_length(count: int) -> bytes:
    """Return the encoded length of an array, a string or bytes.

    It is an unsigned varint of `count` + 1, because 0 is null.
    """
    return unsigned(count + 1)


def encode_string(text: str) -> bytes:
    """Return an encoded string: its length and its bytes."""
    encoded = text.encode()
    return encode_length(len(encoded)) + encoded


def encode_topics(topics: Mapping[UUID | str | None, Sequence[Parts]]) -> list[bytes | memoryview]:
    """Return the encoded array of topics with the entries of their partitions.

    A topic goes by its name or by its id. The key None is a topic without an id.
    """
    parts: list[bytes | memoryview] = [encode_length(len(topics))]
    for topic, entries in topics.items():
        key = encode_string(topic) if isinstance(topic, str) else _NO_ID if topic is None else topic.bytes
        parts += (key, encode_length(len(entries)))
        for entry in entries:
            parts += entry
        parts.append(NO_TAGS)
    return parts
