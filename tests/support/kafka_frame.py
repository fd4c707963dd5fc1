"""A request or an answer of Kafka's protocol as kio's entities, header and body."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from io import BytesIO
from types import MappingProxyType
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

LENGTH_BYTES = 4
ZEROS: Mapping[str, Any] = MappingProxyType(
    {
        "bool": False,
        "bytes": b"",
        "error_code": ErrorCode.none,
        "string": "",
        "timedelta_i32": timedelta(),
        "timedelta_i64": timedelta(),
        "uuid": None,
    }
)


class Frame(NamedTuple):
    """One message with its header."""

    header: Any
    body: Any


def read_frame(frame: bytes, schema: Any) -> Frame:
    """Return the message of this schema, whose length comes before it."""
    header, header_bytes = entity_reader(schema.__header_schema__)(frame, LENGTH_BYTES)
    body, _ = entity_reader(schema)(frame, LENGTH_BYTES + header_bytes)
    return Frame(header, body)


def written_frame(frame: Frame) -> bytes:
    """Return the bytes of a message, its length before it."""
    buffer = BytesIO()
    for entity in frame:
        entity_writer(type(entity))(buffer, entity)
    content = buffer.getvalue()
    return len(content).to_bytes(LENGTH_BYTES) + content


def filled(schema: Any, **values: Any) -> Any:
    """Return an entity with these values; all others are empty."""
    empty = {part.name: _zero(part) for part in fields(schema) if part.default is MISSING}
    return schema(**{**empty, **values})


def _zero(part: Field[Any]) -> Any:
    kafka_type = part.metadata.get("kafka_type")
    return () if kafka_type is None else ZEROS.get(kafka_type, 0)
