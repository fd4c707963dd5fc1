"""kio's messages by API and version: their entities, their bytes, and how an answer is read (no I/O)."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer

from lockstep_data_plane.wire.frame_protocol import EncodedRequest
from lockstep_protocol.kafka_apis import APIS

NAMES = {api.key: name for name, api in APIS.items()}


class MessageVersion(NamedTuple):
    """How an answer of an API's version is read. `is_flexible`: headers have tags, in requests and in answers."""

    reader: Callable[[memoryview, int], tuple[Any, int]]
    is_flexible: bool


@cache
def message(api: str, version: int, side: str) -> Any:
    """Return kio's module with the entities of an API's `request` or `response` in this version."""
    return import_module(f"kio.schema.{api}.v{version}.{side}")


@cache
def has_field(entity: type, name: str) -> bool:
    """Return whether an entity of kio's, which is of one version, has a field of this name."""
    return any(field.name == name for field in fields(entity))


def encoded(entity: Any) -> EncodedRequest:
    """Return a message of kio's as it is sent."""
    body = BytesIO()
    entity_writer(type(entity))(body, entity)
    return EncodedRequest(int(entity.__api_key__), int(entity.__version__), [body.getvalue()])


@cache
def message_version(key: int, version: int) -> MessageVersion:
    """Return how an answer to a request of this API and version is read."""
    name = "".join(part.title() for part in NAMES[key].split("_"))
    answer = getattr(message(NAMES[key], version, "response"), f"{name}Response")
    return MessageVersion(entity_reader(answer), answer.__flexible__)
