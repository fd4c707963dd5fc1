"""The stream of changes (server-sent events): what has changed, put together, at most ten messages a second.

A client that reads slowly gets fewer messages, not more memory: what waits for it is a set of flows, the last value of
each row, and so many events.
"""

from collections.abc import Mapping
from typing import Any, Protocol


class Published(Protocol):
    """An open stream, which is to know what the console itself does, such as the outcome of a command."""

    def on_published(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
        """Take note of it."""


class ChangeBroadcast:
    """The streams that are open."""

    def __init__(self) -> None:
        self._streams: list[Published] = []

    @property
    def count(self) -> int:
        """Return the number of open streams."""
        return len(self._streams)

    def publish(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
        """Send something to every open stream that shows this flow, such as `command` with an outcome."""
        for stream in list(self._streams):
            stream.on_published(kind, flow, body)
