"""A flow's state topic as one service sees it: the fold of everything in it, and the way to add to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from lockstep_protocol.state import Leader, MalformedRow, Row
from lockstep_runtime.facts import FactLog
from lockstep_runtime.fold import StateFold
from lockstep_runtime.follow import Record
from lockstep_runtime.log import FlowLog

__all__ = ["StateLog", "StoodDown"]

R = TypeVar("R", bound=Row)


class StoodDown(Exception):
    """We may not act (any more): somebody else leads, or our group has not been heard from lately. Ends the main loop
    quietly."""


class StateLog:
    """Rows by key, current to within a fetch, and appending in our term.

    `rows`, `all` and `get` never wait. `write` returns once the row is acknowledged; it appears in `rows` a moment
    later, when it has been read back.
    """

    def __init__(self, log: FlowLog, clock_ms: Callable[[], int], term_of: Callable[[Row], int]) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._term_of = term_of
        self._facts: FactLog | None = None
        self._fold = StateFold()
        self._news = asyncio.Condition()
        self._listeners: list[Callable[[Row], None]] = []

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> dict[str, Row]:
        """Every row that counts, by key. Do not change it."""
        return self._fold.rows

    @property
    def position(self) -> int:
        """Offset of the last record folded; -1 before the first."""
        return self._fold.position

    def all(self, kind: type[R]) -> list[R]:
        """Every row of a kind, in the order of the keys."""
        return self._fold.all(kind)

    def get(self, kind: type[R], *identity: str) -> R | None:
        """The row with this identity (`Row.identity()`), or None."""
        return self._fold.get(kind, *identity)

    async def changed(self, after: int) -> int:
        """Wait until something beyond offset `after` was folded; returns the new position."""
        async with self._news:
            await self._news.wait_for(lambda: self.position > after)
            return self.position

    def listen(self, call: Callable[[Row], None]) -> None:
        """Call for each row that counts and changes its key, in log order, within the event loop. Must not raise."""
        self._listeners.append(call)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def write(self, row: R) -> R:
        """Append the row with the present time and our term. Returns it as written. Raises StoodDown, NotAppended,
        NotPermitted."""
        stamped = replace(row, at_ms=self._clock_ms(), term=self._term_of(row))
        await self._append(stamped)
        return stamped

    async def write_if_changed(self, row: Row) -> bool:
        """Append the row unless it says what its key holds already (time and term aside). True when it was appended."""
        known = self.rows.get(row.key())
        same = known is not None and replace(known, at_ms=0, term=0) == replace(row, at_ms=0, term=0)
        if same and row.key() not in self._fold.overwritten:
            return False
        await self.write(row)
        return True

    async def claim(self, row: Leader) -> int:
        """Append a leader row; its offset is the term."""
        return await self._append(replace(row, at_ms=self._clock_ms()))

    async def _append(self, row: Row) -> int:
        if self._facts is None:
            raise StoodDown("the state topic is not open")
        key, value = row.encode()
        return await self._facts.append(key, value, partition=0)

    # -- from the edge -------------------------------------------------------------------------------------------------

    def open(self, facts: FactLog, on_leader: Callable[[str, str, int], None]) -> None:
        """Begin (again) from nothing: the topic is about to be replayed."""
        self._facts = facts
        self._fold = StateFold(on_leader)

    def receive(self, records: Sequence[Record]) -> None:
        """What the follower hands over. Raises NewerVersion."""
        for record in records:
            try:
                row = self._fold.fold(record.offset, record.key, record.value)
            except MalformedRow as exc:
                self._log.warn("state row ignored", str(exc), offset=record.offset)
                continue
            if row is not None:
                for call in self._listeners:
                    call(row)
        asyncio.get_running_loop().create_task(self._announce())

    async def _announce(self) -> None:
        async with self._news:
            self._news.notify_all()
