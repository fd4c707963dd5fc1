"""The offset runs of every partition of a flow, from its state topic (no I/O)."""

from collections.abc import Callable, Sequence

from lockstep_data_plane.slot.progress_rows import readable_row
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MalformedRow, OffsetRuns

RUNS = f"{OffsetRuns.kind}/".encode()


class OffsetRunRows:
    """The rows of offset runs by partition and key. They stay bytes until they are looked up, since most never are."""

    def __init__(self, on_malformed: Callable[[MalformedRow], None] = lambda error: None) -> None:
        """Call `on_malformed` for a row that cannot be read.

        Positions that need this row are translated to an earlier one.
        """
        self._on_malformed = on_malformed
        self._chunks: dict[bytes, dict[bytes, bytes]] = {}

    def fold(self, key: bytes, value: bytes | None) -> bool:
        """Fold one record, and return whether its key is that of a row of offset runs."""
        if not key.startswith(RUNS):
            return False
        chunks = self._chunks.setdefault(key.rpartition(b"/")[0], {})
        if value is None:
            chunks.pop(key, None)
        else:
            chunks[key] = value
        return True

    def find(self, tp: TopicPartition) -> Sequence[OffsetRuns]:
        """Return the readable rows of offset runs of one partition."""
        chunks = self._chunks.get(b"%b%b/%d" % (RUNS, tp[0].encode(), tp[1]), {})
        rows = (readable_row(key, value, self._on_malformed) for key, value in chunks.items())
        return [row for row in rows if isinstance(row, OffsetRuns)]
