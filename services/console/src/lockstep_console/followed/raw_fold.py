"""A fold of the state topic that reads rows of partitions and slots only when somebody asks for them. Pure.

While records move, each of them writes its row every second. To read the JSON of such a row costs ten times as much as
to keep it, and while nobody looks all but the last one of each key are read for nothing.
"""

import re
from collections.abc import Mapping
from itertools import islice

from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.rows.row import MalformedRow, NewerVersion
from lockstep_state.rows.state_rows import PartitionProgress, Row, SlotStatus

CHAINED = f"{PartitionProgress.kind}/".encode()
LATE = (CHAINED, f"{SlotStatus.kind}/".encode())
"""The first bytes of the keys whose rows are kept as bytes. No row of another key depends on them."""

IDS = (
    re.compile(rb'"producer_id":-?\d+,"producer_epoch":-?\d+'),
    re.compile(rb'"source_topic_id":"[^"\\]*","target_topic_id":"[^"\\]*"'),
)
"""The fields by which a row is outdated by another one (`PartitionProgress.is_outdated_by`), as rows are written.

A pattern for each two that are side by side, for its beginning is found fast.
"""


class RawFold:
    """The rows of the state topic. Every record has to be added in log order. The rows are those of `StateFold`."""

    def __init__(self) -> None:
        self._fold, self._late_fold = StateFold(), StateFold()
        self._waiting: dict[bytes, tuple[Record, list[list[bytes]]]] = {}
        """The last record of each key that is not read yet, and its `IDS`, in log order."""
        self._unreadable: dict[bytes, str] = {}
        self._newer: dict[bytes, NewerVersion] = {}
        self._merged: dict[str, Row] | None = {}
        self.position = -1
        """The offset of the last record that was added."""

    @property
    def rows(self) -> Mapping[str, Row]:
        """Return the rows by key.

        Raises:
            NewerVersion: A row is of a newer release.
        """
        self._read_waiting()
        if self._newer:
            raise next(iter(self._newer.values())).with_traceback(None)
        if self._merged is None:
            self._merged = {**self._fold.rows, **self._late_fold.rows}
        return self._merged

    def get(self, key: str) -> Row | None:
        """Return one row. Those of partitions and slots are read only if it is one of them.

        Raises:
            NewerVersion: It is of a newer release.
        """
        name = key.encode()
        is_late = name.startswith(LATE)
        if is_late:
            self._read_waiting()
        if name in self._newer:
            raise self._newer[name].with_traceback(None)
        return (self._late_fold if is_late else self._fold).rows.get(key)

    @property
    def unreadable(self) -> Mapping[bytes, str]:
        """Return sentences about records that are no rows, by key."""
        self._read_waiting()
        return self._unreadable

    def add(self, record: Record) -> None:
        """Take a record."""
        if record.offset <= self.position:
            return
        self.position = record.offset
        key, value = record.key, record.value
        if key is None:
            return
        self._merged = None
        if not key.startswith(LATE):
            self._read(self._fold, record)
        elif value is None:
            self._waiting.pop(key, None)
            self._read(self._late_fold, record)
        else:
            ids: list[list[bytes]] = []
            if key.startswith(CHAINED):
                ids, waiting = [pattern.findall(value) for pattern in IDS], self._waiting.get(key)
                if waiting is not None and not (all(ids) and waiting[1] == ids):
                    self._read_waiting()  # a slot that woke late may have written this one
            self._waiting.pop(key, None)  # so that it becomes the last one
            self._waiting[key] = record, ids

    def read_some(self, most: int) -> bool:
        """Read at most so many records that were kept as bytes, oldest first, and return whether more are left."""
        for key in list(islice(self._waiting, most)):
            self._merged = None
            self._read(self._late_fold, self._waiting.pop(key)[0])
        return bool(self._waiting)

    def _read_waiting(self) -> None:
        """Read what was kept as bytes."""
        while self._waiting:
            self.read_some(len(self._waiting))

    def _read(self, fold: StateFold, record: Record) -> None:
        name = record.key or b""
        try:
            # A deletion may have been read before records of other keys that were kept, and that it came behind.
            fold.position = min(fold.position, record.offset - 1)
            fold.fold(record.offset, record.key, record.value)
        except MalformedRow as exc:
            self._unreadable[name] = f"{record.location}: {exc}"
        except NewerVersion as exc:
            self._newer[name] = exc
        else:
            self._unreadable.pop(name, None)
            self._newer.pop(name, None)
