"""The state topic of one flow in memory, as the commands that switch its sides share it."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_state.rows.state_rows import Row

Happens = Callable[[], object]


class SharedTopic:
    """Each log reads each record at once."""

    def __init__(self, settings: FlowSettings, patch: pytest.MonkeyPatch) -> None:
        self._settings = settings
        self._patch = patch
        self._logs: list[SwitchLog] = []
        self.records: list[Record] = []

    def log(self, *, compacted: bool = False, console: str = "") -> SwitchLog:
        """Return the log of one more command, or of a console. `compacted`: it reads the last record of each key
        only."""
        log = SwitchLog(self._settings, console)
        self._patch.setattr(log, "_topic", _Appending(self), raising=False)
        self._patch.setattr(log, "_follower", _Following(), raising=False)
        self._patch.setattr(log, "catch_up_now", _at_once)
        log._rows._apply(list({record.key: record for record in self.records}.values()) if compacted else self.records)
        self._logs.append(log)
        return log

    def around_append(self, log: SwitchLog, before: Happens | None = None, after: Happens | None = None) -> None:
        """Call `before` before the next append of this log, and `after` after it, before it returns."""
        self._patch.setattr(log, "_topic", _Appending(self, before, after))

    def write(self, row: Row) -> int:
        """Append a row. Returns its offset."""
        key, value = row.encode()
        return self.append(key, value)

    def append(self, key: bytes, value: bytes | None) -> int:
        record = Record("state", 0, len(self.records), key, value, 0)
        self.records.append(record)
        for log in self._logs:
            log._rows._apply([record])
        return record.offset


class _Appending:
    def __init__(self, topic: SharedTopic, before: Happens | None = None, after: Happens | None = None) -> None:
        self._topic = topic
        self._before, self._after = before, after

    async def append_all(self, rows: Iterable[tuple[bytes, bytes | None]], *, partition: int) -> list[int]:
        assert partition == 0
        before, after, self._before, self._after = self._before, self._after, None, None
        if before is not None:
            before()
        offsets = [self._topic.append(*row) for row in rows]
        if after is not None:
            after()
        return offsets


class _Following:
    async def failed(self) -> None:
        await asyncio.Event().wait()


async def _at_once() -> None:
    """Nothing is left to read."""
