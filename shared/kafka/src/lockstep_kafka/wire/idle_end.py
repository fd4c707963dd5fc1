"""Close a connection on which nothing was asked for long."""

import asyncio
from typing import Any, Protocol


class Closable(Protocol):
    """What the end of an idle connection needs of it."""

    @property
    def silent_s(self) -> float:
        """Seconds since something was asked or answered last."""

    @property
    def unanswered(self) -> int:
        """Requests whose answer is still out."""

    def close(self) -> Any:
        """Close the connection."""


class IdleEnd:
    """Closes a connection that was idle for `after_s`. None: never."""

    def __init__(self, connection: Closable, after_s: float | None) -> None:
        self._connection = connection
        self._after_s = after_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check from now on. The time begins anew with each request and each answer."""
        if self._after_s is not None:
            self._check_in(self._after_s, self._after_s)

    def _check_in(self, seconds: float, after_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check, after_s)

    def _check(self, after_s: float) -> None:
        if self._connection.unanswered:  # the limits of answers end it
            self._check_in(after_s, after_s)
        elif (left_s := after_s - self._connection.silent_s) > 0:
            self._check_in(left_s, after_s)
        else:
            self._connection.close()

    def cancel(self) -> None:
        """Check no more."""
        if self._timer is not None:
            self._timer.cancel()
