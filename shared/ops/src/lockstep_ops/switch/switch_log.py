"""The state topic of a flow while a switch goes on: its rows as they come, and the switch's own rows.

One command at a time writes these. Its first row claims the switch, and each later one counts only as long as no other
command has claimed it since. Before and after each step it checks that. A command that was taken over so ends without
doing more. The first row of a new switch does not count while another switch is under way.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

from lockstep_config import FlowSettings
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_ops.command_client import producing
from lockstep_ops.switch.followed_flow import FollowedFlow
from lockstep_ops.switch.switch_steps import UNDER_WAY
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.state_rows import Row, Switch

APPENDED_WITHIN_S = 30.0

WRITES_WITHIN_S = 5.0
"""A command that has begun a switch writes the row of its first step within this time."""


class TakenOver(Exception):
    """Another command continues the switch, so this one does nothing more. The message is a sentence."""


class SwitchLog(FollowedFlow):
    """The state topic of a flow, and the rows of its switch. Use it within `following`."""

    def __init__(self, settings: FlowSettings, console: str = "") -> None:
        """Take the flow, and the name of the console that writes, or "" for a command in a terminal."""
        super().__init__(settings)
        self.operator = uuid.uuid4().hex
        self.console = console
        self._writing = asyncio.Lock()
        """Rows of the switch are written one by one. A sign of life repeats the row that was read back last."""
        self._topic: ControlTopicLog
        self._switch: Switch | None = None
        self._previous: Switch | None = None
        """The switch as it was before the last row that counts."""
        self._replaced: Switch | None = None
        """The last switch as it was when our claim came."""
        self._claims: set[str] = set()
        """Commands that have written the row: the first row of each claims the switch."""
        self._holder = ""

    @property
    def switch(self) -> Switch | None:
        """Return the last switch by this flow, or None if there was none.

        It is as the command that claimed it last has written it.
        """
        return self._switch

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        """Read the topic to its end, and go on reading. Raises as `StateTopicRows.following`."""
        async with super().following(), producing(self.settings, APPENDED_WITHIN_S) as producer:
            self._topic = ControlTopicLog(producer, self._rows.topic)
            yield self

    async def append(self, *rows: Row) -> None:
        """Append rows, and return once they were read back.

        Raises:
            NotAppended: The cluster did not acknowledge them.
            TakenOver: Another command has written meanwhile.
        """
        dated = [replace(row, at_ms=now_ms()) for row in rows]
        offsets = await self._topic.append_all([row.encode() for row in dated], partition=0)
        await self.catch_up(max(offsets, default=-1))  # without a topic left there is no row
        self.require_ours()

    async def write(self, row: Switch) -> Switch:
        """Append the switch's row under our name, and return it. Raises as `append`."""
        own_row = replace(row, operator=self.operator, console=self.console, progress="")
        async with self._writing:
            await self.append(own_row)
        return own_row

    async def say_alive(self, progress: str) -> None:
        """Append the switch's row once more, with what its step waits for. Raises as `append`."""
        async with self._writing:
            self.require_ours()
            if self._switch is not None and self._switch.phase in UNDER_WAY:
                await self.append(replace(self._switch, progress=progress))

    async def let_go(self) -> None:
        """Write that no console carries the switch out any more, so that none takes it up unasked.

        Raises as `append`.
        """
        async with self._writing:
            self.require_ours()
            if self._switch is not None and self._switch.phase in UNDER_WAY:
                await self.append(replace(self._switch, console="", progress=""))

    async def begin(self, row: Switch) -> Switch | None:
        """Append the row of a new switch under our name, and return it.

        It returns None if another switch was under way by then, so that ours does not count. Our row is then the last
        one of its key, and compaction would keep it. The command of the other switch replaces it with its next row.
        If none comes, that command may have ended, or waits for a cluster. Then the row of its switch is restored
        under its own name. It raises as `append`.
        """
        try:
            return await self.write(row)
        except TakenOver:
            present = self._switch
            if present is None or present.id == row.id:
                raise
        if not await self.wait_until(lambda: self._newest_id() != row.id, WRITES_WITHIN_S):
            await self._restore(self._switch or present)
        return None

    async def _restore(self, row: Switch) -> None:
        """Append another command's row as it is, so that it goes on. A row that it wrote in the meantime counts."""
        before = row
        while True:
            await self.catch_up(max(await self._topic.append_all([row.encode()], partition=0)))
            previous = self._previous
            if previous is None or self._switch != row or previous in (before, row):
                return
            before, row = row, previous

    def _newest_id(self) -> str:
        """Return the id of the switch in the last row, also if that row does not count."""
        row = self._rows.fold.get(Switch, "current")
        return "" if row is None else row.id

    async def claim(self, derive: Callable[[], Switch]) -> Switch:
        """Take the last switch over under our name, as `derive` makes it of `switch`, and return the row.

        The command that has it may write until our row is appended, even that the switch is done. Our row would take
        that back. So that row is restored then, and `derive` is called again. It raises as `append`, and what
        `derive` raises.
        """
        read = self._switch
        row = await self.write(derive())
        if self._replaced is None or self._replaced == read:
            return row
        await self.write(self._replaced)
        return await self.write(derive())

    def require_ours(self) -> None:
        """Check that this command has written the switch's row last.

        Raises:
            TakenOver: Another command has.
        """
        row = self.switch
        if (
            row is not None and row.operator != self.operator
        ):  # the newest claim counts, also if another one writes later
            raise TakenOver(f"another command continues this {row.verb} since, so this one does nothing more")

    def _counts(self, row: Switch) -> bool:
        """Return whether the row is by the command that has claimed the switch, or claims it now."""
        if row.operator == self._holder:
            return True
        present = self._switch
        begins = present is None or row.id == present.id or present.phase not in UNDER_WAY
        return begins and row.operator not in self._claims

    def _on_record(self) -> None:
        row = self._rows.fold.get(Switch, "current")
        if row is not None and self._counts(row):
            if row.operator == self.operator and row.operator not in self._claims:
                self._replaced = self._switch
            self._claims.add(row.operator)
            self._holder, self._previous, self._switch = row.operator, self._switch, row
        super()._on_record()
