"""The progress of every partition of a flow, from its state topic (no I/O, no clock).

All slots write their rows to that topic each second, and each slot reads all of it. With many slots, nearly every
row is of a partition that this slot does not copy. Such a row is kept as bytes, and decoded only when it is looked
up. If it cannot be read then, the row before it counts, as in every fold.
"""

from collections.abc import Callable, Iterator, Mapping

from lockstep_runtime.state.state_fold import READ_BY_ALL
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MalformedRow, PartitionProgress, Row, decode_row

PREFIX = f"{PartitionProgress.kind}/".encode()
EPOCH = b'"producer_epoch":'
"""The JSON name of the producer epoch. A quote within a JSON text is escaped, so only a field name matches these bytes.
A detail of `cause` may have this name too. `cause` comes first, so the last match is the field.
"""


class ProgressRows(Mapping[TopicPartition, PartitionProgress]):
    """The newest row of each partition, unless a row with a later epoch has made it outdated."""

    def __init__(self, on_malformed: Callable[[MalformedRow], None] = lambda error: None) -> None:
        """Call `on_malformed` for a row that was kept as bytes and cannot be read."""
        self._on_malformed = on_malformed
        self._values: dict[bytes, tuple[bytes, ...]] = {}
        """The rows of each key as bytes: the last one, then an earlier one that counts if the last cannot be read."""
        self._decoded: dict[bytes, tuple[bytes, PartitionProgress]] = {}
        """The last decoded row of each key, with its bytes."""

    def fold(self, key: bytes, value: bytes | None) -> bool:
        """Fold one record, and return whether its key is that of a progress row.

        The removal of a row is ignored.

        Raises:
            MalformedRow: The key names no partition, or the row was decoded at once and cannot be read.
            NewerVersion: The row was decoded at once and is of a later version.
        """
        if not key.startswith(PREFIX):
            return False
        if value is None:
            return True
        present = self._values.get(key)
        if present is None and not _names_partition(key):
            raise MalformedRow(f"state row {key!r}: its key names no partition")
        if value.startswith(READ_BY_ALL) and (present is None or _epoch(present[0]) == _epoch(value) != b""):
            self._values[key] = (value,) if present is None else (value, present[0])
            return True
        row = _decode(key, value)
        if not ((before := self._find(key)) and row.is_outdated_by(before)):
            self._values[key], self._decoded[key] = (value,), (value, row)
        return True

    def __getitem__(self, tp: TopicPartition) -> PartitionProgress:
        row = self._find(b"%b%b/%d" % (PREFIX, tp[0].encode(), tp[1]))
        if row is None:
            raise KeyError(tp)
        return row

    def __iter__(self) -> Iterator[TopicPartition]:
        for key in self._values:
            topic, _, number = key.removeprefix(PREFIX).decode().rpartition("/")
            yield topic, int(number)

    def __len__(self) -> int:
        return len(self._values)

    def _find(self, key: bytes) -> PartitionProgress | None:
        """Return the newest row that can be read, and forget the rows after it."""
        decoded, values = self._decoded.get(key), self._values.get(key, ())
        for index, value in enumerate(values):
            if decoded is not None and decoded[0] is value:
                self._values[key] = values[index:]
                return decoded[1]
            row = readable_row(key, value, self._on_malformed)
            if not isinstance(row, PartitionProgress):
                continue
            self._values[key], self._decoded[key] = values[index:], (value, row)
            return row
        if decoded is None:
            self._values.pop(key, None)
            return None
        self._values[key] = (decoded[0],)
        return decoded[1]


def readable_row(key: bytes, value: bytes, on_malformed: Callable[[MalformedRow], None]) -> Row | None:
    """Return a row that was kept as bytes. If it cannot be read, call `on_malformed` and return None.

    Raises:
        NewerVersion: The row is of a later version.
    """
    try:
        return decode_row(key, value)
    except MalformedRow as why:
        on_malformed(why)
        return None


def _decode(key: bytes, value: bytes) -> PartitionProgress:
    row = decode_row(key, value)
    assert isinstance(row, PartitionProgress), "the key says so"
    return row


def _names_partition(key: bytes) -> bool:
    topic, _, number = key.removeprefix(PREFIX).rpartition(b"/")
    return bool(topic) and number.isdigit()


def _epoch(value: bytes) -> bytes:
    """Return the producer epoch in the bytes of a row, or empty bytes if there is none."""
    begin = value.rfind(EPOCH)
    return b"" if begin < 0 else value[begin : value.find(b",", begin)]
