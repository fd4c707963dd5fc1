"""Framing of requests, with what is needed to read their answers (no I/O)."""

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from lockstep_kafka.messages.flexible_encoding import NO_TAGS
from lockstep_kafka.messages.message_versions import EncodedRequest, ResponseFormat, encode_entity, message_format

NUMBER = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")
"""API key, version and correlation id of a request.

The client id follows, and then the tags if the version has any. We have none.
"""
ANSWER_BYTES = 256 * 1024 * 1024
"""Bytes by which an answer may be longer than what was asked for.

A broker sends a larger batch whole, and the metadata of the whole cluster.
"""


class PendingRequest(NamedTuple):
    """A request without an answer.

    `format` is the answer's format. `framed_at` is when the request was framed, in seconds of the monotonic clock.
    `on_response` is called with the answer, and `largest` is the largest size of the answer in bytes.
    """

    format: ResponseFormat
    framed_at: float
    on_response: Callable[[Any], None] | None
    largest: int

    def read(self, frame: memoryview, correlation_id: int) -> Any:
        """Return the answer.

        Raises:
            ConnectionError: The frame does not have this correlation id, or cannot be read.
        """
        if NUMBER.unpack_from(frame)[0] != correlation_id:
            raise ConnectionError("the broker answered another question than the one that was next")
        return self.format.read_response(frame)


FramedRequest = tuple[bytes, int, PendingRequest, "asyncio.Future[Any]"]
"""The frame, its correlation id, the pending request, and the answer's future."""


class RequestFraming:
    """The framing of the requests of one connection, each with a correlation id of its own."""

    def __init__(self, client_id: str) -> None:
        client = client_id.encode()
        named = struct.pack(f">h{len(client)}s", len(client), client)
        self._client_id_headers = named, named + NO_TAGS
        self._correlation_id = 0

    def framed(self, entity: Any, on_response: Callable[[Any], None] | None = None) -> FramedRequest:
        """Return a message of kio's, or an EncodedRequest, as it is sent.

        Call it in a running event loop, which owns the future of the answer. `on_response` is called with the answer.
        """
        key, version, parts, asked_bytes, response_format = (
            entity if isinstance(entity, EncodedRequest) else encode_entity(entity)
        )
        self._correlation_id = correlation_id = (self._correlation_id + 1) % 2**31
        response_format = response_format or message_format(key, version)
        client_id_header = self._client_id_headers[response_format.is_flexible]
        size = _HEADER.size + len(client_id_header) + sum(map(len, parts))
        frame = b"".join((NUMBER.pack(size), _HEADER.pack(key, version, correlation_id), client_id_header, *parts))
        pending = PendingRequest(response_format, time.monotonic(), on_response, asked_bytes + ANSWER_BYTES)
        return frame, correlation_id, pending, asyncio.get_running_loop().create_future()
