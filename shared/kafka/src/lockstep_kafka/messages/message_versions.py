"""Kafka's messages by API and version: their framing, and their encoding by kio (no I/O)."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple, Protocol

from lockstep_kafka.messages.kio_loader import load_kio
from lockstep_state.kafka.kafka_apis import APIS

_kio = load_kio()

Parts = Sequence[bytes | memoryview]

NAMES = {api.key: name for name, api in APIS.items()}

_CORRELATION_ID_SIZE = 4


class ResponseFormat(Protocol):
    """The framing of an API's messages in one version, with the reader of an answer."""

    @property
    def is_flexible(self) -> bool:
        """True if headers have tags (KIP-482)."""

    def read_response(self, frame: memoryview) -> Any:
        """Return the answer in a frame that begins with its correlation id.

        Raises:
            ConnectionError: The frame is not such an answer.
        """


class EncodedRequest(NamedTuple):
    """A request whose bytes, all but its header, are encoded already."""

    api_key: int
    version: int
    parts: Parts
    asked_bytes: int = 0
    """The number of bytes that the request asks for. A far longer answer is refused."""
    format: "ResponseFormat | None" = None
    """The format of the answer. None is kio's."""


class MessageFormat(NamedTuple):
    """The framing of an API's messages in one version, with kio's reader of an answer.

    `is_flexible` is true if headers have tags (KIP-482).
    """

    is_flexible: bool
    reader: Callable[[memoryview, int], tuple[Any, int]]

    def read_response(self, frame: memoryview) -> Any:
        """Return the answer in a frame that begins with its correlation id.

        Raises:
            ConnectionError: The header of the answer has tagged fields.
        """
        if not self.is_flexible:
            return self.reader(frame, _CORRELATION_ID_SIZE)[0]
        if frame[_CORRELATION_ID_SIZE] != 0:
            raise ConnectionError("the broker sent tagged fields in a response header, which no version known here has")
        return self.reader(frame, _CORRELATION_ID_SIZE + 1)[0]


@cache
def load_message(api: str, version: int, side: str) -> Any:
    """Return kio's module with the entities of an API's `request` or `response` in this version."""
    return import_module(f"kio.schema.{api}.v{version}.{side}")


@cache
def message_format(key: int, version: int) -> MessageFormat:
    """Return the format of an API's messages in this version."""
    api = NAMES[key]
    answer = getattr(load_message(api, version, "response"), f"{APIS[api].name}Response")
    return MessageFormat(answer.__flexible__, _kio.entity_reader(answer))


@cache
def _field_names(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def make_entity(kind: type, **values: Any) -> Any:
    """Return an entity with those of the values for which its version has a field.

    The caller knows that a broker of that version does the same without the others.
    """
    names = _field_names(kind)
    return kind(**{name: value for name, value in values.items() if name in names})


def encode_entity(entity: Any, asked_bytes: int = 0) -> EncodedRequest:
    """Return a message of kio's as it is sent.

    `asked_bytes` is that of `EncodedRequest`.
    """
    body = BytesIO()
    _kio.entity_writer(type(entity))(body, entity)
    return EncodedRequest(int(entity.__api_key__), int(entity.__version__), [body.getvalue()], asked_bytes)
