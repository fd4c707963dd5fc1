"""An answer that goes on until the client or the page ends it, such as server-sent events."""

from typing import Self, cast

from aiohttp import web

from lockstep_runtime.http.guard import GuardedConnection

EVENTS = "text/event-stream; charset=utf-8"
"""The content type of server-sent events."""


class AnswerStream:
    """An answer in parts. Each part has a deadline of its own (`GuardedConnection.wait_written`)."""

    def __init__(self, connection: GuardedConnection, answer: web.StreamResponse) -> None:
        """Take an answer whose head was sent. `open` makes both."""
        self._connection = connection
        self.answer = answer

    @classmethod
    async def open(cls, request: web.Request, content_type: str = EVENTS) -> Self | None:
        """Send the head of the answer; None if there are too many streams at once.

        Raises:
            ConnectionResetError: The client has gone.
        """
        connection = connection_of(request)
        if not connection.begin_stream():
            return None
        headers = {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Accel-Buffering": "no",  # nginx would keep parts back until it has some kilobytes of them
        }
        answer = web.StreamResponse(headers=headers)
        answer.force_close()
        await answer.prepare(request)
        await connection.wait_written()
        return cls(connection, answer)

    @property
    def has_ended(self) -> bool:
        """Return whether the client has gone."""
        return self._connection.ended.is_set()

    async def ended(self) -> None:
        """Wait until the client has gone."""
        await self._connection.ended.wait()

    async def send(self, part: bytes) -> None:
        """Send a part, and return once the kernel has taken it.

        Raises:
            ConnectionResetError: The client has gone, or took nothing for too long.
        """
        await self.answer.write(part)
        await self._connection.wait_written()


def connection_of(request: web.Request) -> GuardedConnection:
    """Return the guarded connection of a request."""
    return cast(GuardedConnection, request.protocol)
