"""The progress of every partition of a flow, as its state topic says it (no I/O, no clock).

All slots write theirs there each second, and each slot reads all of it. So with many slots nearly every row is of a
partition that this one does not copy. Such a row is kept as bytes, and decoded if somebody asks for it.
"""

from collections.abc import Iterator, Mapping

from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress, decode_row
from lockstep_runtime.state.state_fold import READ_BY_ALL

PREFIX = f"{PartitionProgress.kind}/".encode()
EPOCH = b'"producer_epoch":'
"""In JSON a quote within a text has a backslash before it, so these bytes are the field and nothing else."""


class ProgressRows(Mapping[TopicPartition, PartitionProgress]):
    """The newest row of each partition that no row of a later epoch has made outdated."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        """By key, as they are in the log."""
        self._decoded: dict[bytes, PartitionProgress] = {}

    def fold(self, key: bytes, value: bytes | None) -> bool:
        """Fold one record. Returns whether it is such a row; a removed one is ignored. Raises MalformedRow and
        NewerVersion for what is not kept as bytes."""
        if not key.startswith(PREFIX):
            return False
        if value is None:
            return True
        known = self._values.get(key)
        if value.startswith(READ_BY_ALL) and (known is None or _epoch(known) == _epoch(value) != b""):
            self._values[key] = value
            self._decoded.pop(key, None)
            return True
        row = _decode(key, value)
        if known is None or not row.is_outdated_by(self._read(key)):
            self._values[key], self._decoded[key] = value, row
        return True

    def __getitem__(self, tp: TopicPartition) -> PartitionProgress:
        return self._read(b"%b%b/%d" % (PREFIX, tp[0].encode(), tp[1]))

    def __iter__(self) -> Iterator[TopicPartition]:
        for key in self._values:
            topic, _, number = key.removeprefix(PREFIX).decode().rpartition("/")
            yield topic, int(number)

    def __len__(self) -> int:
        return len(self._values)

    def _read(self, key: bytes) -> PartitionProgress:
        """Raises KeyError where there is none."""
        if (row := self._decoded.get(key)) is None:
            row = self._decoded[key] = _decode(key, self._values[key])
        return row


def _decode(key: bytes, value: bytes) -> PartitionProgress:
    row = decode_row(key, value)
    assert isinstance(row, PartitionProgress), "the key says so"
    return row


def _epoch(value: bytes) -> bytes:
    """The producer epoch in the bytes of a row; empty where it is not found."""
    begin = value.find(EPOCH)
    return b"" if begin < 0 else value[begin : value.find(b",", begin)]
