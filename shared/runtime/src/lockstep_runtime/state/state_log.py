"""A flow's state topic as one service sees it: the fold of its records, and the way to append to it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lockstep_kafka.common.errors import LeadershipLost
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_state.rows.state_rows import Leader, MalformedRow, Row


class StateLog(StateFold):
    """Rows by key, current to within a fetch, and appending in our term.

    `rows` (not to be changed), `all` and `get` never wait. A write returns once the row is acknowledged and read
    back.
    """

    def __init__(
        self, unreadable: UnreadableRecords, clock_ms: Callable[[], int], find_term: Callable[[Row], int]
    ) -> None:
        """Take the clock of rows, and what returns the term in which this replica may write a row."""
        super().__init__()
        self._unreadable = unreadable
        self._clock_ms = clock_ms
        self._find_term = find_term
        self._topic_log: ControlTopicLog | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._listeners: list[Callable[[Row], None]] = []
        self._replaced_rows: dict[str, Row] = {}
        """Rows, by key, of the state topic that was replaced, as far as they are not written again."""

    @property
    def topic(self) -> str:
        """Return the topic's name. Raises LeadershipLost while it is not open."""
        return self._opened().topic

    def _opened(self) -> ControlTopicLog:
        if self._topic_log is None:
            raise LeadershipLost("the state topic is not open")
        return self._topic_log

    # -- reading -------------------------------------------------------------------------------------------------------

    async def changed(self, after: int) -> int:
        """Wait until something beyond offset `after` was folded, and return the new position."""
        while self.position <= after:
            folded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((after, folded))
            await folded
        return self.position

    def listen(self, call: Callable[[Row], None]) -> None:
        """Call for each row that counts and changes its key, in log order, within the event loop.

        `call` must not raise.
        """
        self._listeners.append(call)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def write(self, row: Row) -> None:
        """Append the row with the present time and our term; it is in `rows` afterwards. Raises as `write_all`."""
        await self.write_all([row])

    async def write_all(self, rows: Iterable[Row]) -> None:
        """Append rows in order with the present time and our term; all are in `rows` when this returns.

        What was appended before an error stays.

        Raises:
            LeadershipLost: This replica does not act.
            NotAppended: A row was not acknowledged.
            NotPermitted: The topic may not be written.
        """
        topic_log, now = self._opened(), self._clock_ms()
        records = [replace(row, at_ms=now, term=self._find_term(row)).encode() for row in rows]
        if records:
            offsets = await topic_log.append_all(records, partition=0)
            await self.changed(max(offsets) - 1)

    async def write_if_changed(self, row: Row) -> bool:
        """Append the row unless its key holds the same (time and term aside); return whether it was appended."""
        if not self.differs(row):
            return False
        await self.write(row)
        return True

    def differs(self, row: Row) -> bool:
        """Return whether the row differs from that of its key (time and term aside), or its key was overwritten."""
        present = self.rows.get(row.key())
        is_same = present is not None and replace(present, at_ms=0, term=0) == replace(row, at_ms=0, term=0)
        return not is_same or row.key() in self.overwritten

    async def claim(self, row: Leader) -> int:
        """Append a leader row, and return its offset, which is the term."""
        topic_log = self._opened()
        key, value = replace(row, at_ms=self._clock_ms()).encode()
        return await topic_log.append(key, value, partition=0)

    # -- for the runner ------------------------------------------------------------------------------------------------

    def open(
        self,
        topic_log: ControlTopicLog,
        on_leader: Callable[[str, str, int], None],
        wants: frozenset[type[Row]] | None = None,
    ) -> None:
        """Begin with an empty fold: the topic is about to be replayed. `on_leader`, `wants`: see `StateFold`."""
        self._topic_log = topic_log
        self._replaced_rows |= self.rows
        self._unreadable.begin(topic_log.topic)
        self.begin(on_leader, wants)

    def compare(self, *, replaced: bool) -> None:
        """Find the rows that were lost with the former topic, once the present one was read to its end.

        `replaced`: the topic is another one, on the same cluster. `restore` writes the lost rows.
        """
        lost = self._replaced_rows if replaced else {}
        self._replaced_rows = {key: row for key, row in lost.items() if key not in self.rows}

    async def restore(self, is_ours: Callable[[Row], bool]) -> int:
        """Write the rows again that are lost and ours to write, and return how many. Raises as `write_all`."""
        rows = [row for key, row in self._replaced_rows.items() if key not in self.rows and is_ours(row)]
        if rows:
            await self.write_all(rows)
            self._replaced_rows = {key: row for key, row in self._replaced_rows.items() if key not in self.rows}
        return len(rows)

    def receive(self, records: Sequence[Record]) -> None:
        """Fold the records of the follower. Raises NewerVersion."""
        for record in records:
            try:
                row = self.fold(record.offset, record.key, record.value)
            except MalformedRow as exc:
                self._unreadable.pass_over(record, exc, stays=True)
                continue
            self._unreadable.was_read(record)
            if row is not None:
                for call in self._listeners:
                    call(row)
        self._announce()

    def _announce(self) -> None:
        waiting, self._waiting = self._waiting, []
        for after, folded in waiting:
            if self.position <= after:
                self._waiting.append((after, folded))
            elif not folded.done():
                folded.set_result(None)
