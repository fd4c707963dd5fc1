"""The console as all its routes share it."""

import asyncio
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lockstep_console.access import ConsoleAccess
from lockstep_console.changes import ChangeBroadcast
from lockstep_console.flow_watches import FlowWatches
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_runtime.telemetry.log import FlowLog

VERSION = version("lockstep-kafka-runtime")  # all distributions have one version (decision 0063)


class ConsolePart(Protocol):
    """Something that lives as long as the console, such as the commands that it has asked."""

    def __init__(self, console: "Console") -> None: ...


P = TypeVar("P", bound=ConsolePart)


@dataclass(frozen=True, slots=True)
class ConsoleIdentity:
    """The console's own name, and the file whose flows it shows."""

    instance: str
    file: Path


class Console:
    """The flows that are watched, who may do what, and what goes on in the background."""

    def __init__(
        self, identity: ConsoleIdentity, watches: FlowWatches, access: ConsoleAccess, changes: ChangeBroadcast
    ) -> None:
        self.identity = identity
        self.watches = watches
        self.access = access
        self.changes = changes
        self.log = FlowLog("console", "")
        self._parts: dict[type[Any], Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def part(self, kind: type[P]) -> P:
        """Return the only `kind` of this console. It is made with the first request for it."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        part: P = self._parts[kind]
        return part

    def spawn(self, what: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work beside the requests, until it ends or the console does. A failure of it is logged under `what`."""
        task = asyncio.ensure_future(self._logged(what, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _logged(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as exc:  # noqa: BLE001  # a mistake in one piece of work must not end the console
            self.log.failed(what, exc)

    async def close(self) -> None:
        """End all work in the background."""
        await cancelled(list(self._tasks))
