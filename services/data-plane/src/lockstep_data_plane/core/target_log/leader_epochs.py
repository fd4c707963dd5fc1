"""The leader epochs that show up to where the source's log still is the one that was copied (no I/O).

See `kafka-wire.md` §2, line 2. A record's offset and leader epoch identify it: logs that agree on both agree on
everything before. So the batch that holds the last copied offset decides. OffsetForLeaderEpoch is the shorter way to
the same answer.
"""

from typing import NamedTuple

from lockstep_data_plane.record_batch.layout import Batch

UNKNOWN = -1
"""The leader epoch of a batch that no leader has numbered."""


class EpochEvidence(NamedTuple):
    """The evidence about the leader epoch of the last copied record.

    `upstream` is its offset, and `epoch` its leader epoch. `start` and `end` are those of the source's log now.

    `answered` is where the epoch ends by OffsetForLeaderEpoch. It is -1 if the leader does not know, and None if the
    cluster does not support the request.

    `batch` is the source's batch that holds `upstream`, or else the first one behind it. It is None if it was not read,
    or if there is none.
    """

    upstream: int
    epoch: int
    start: int
    end: int
    answered: int | None
    batch: Batch | None = None

    @property
    def needs_batch(self) -> bool:
        """Return whether the batch has to be read: there is no answer, or one that says that the record is gone."""
        return (self.answered is None or self._says_gone) and self.start <= self.upstream < self.end

    @property
    def contradicts(self) -> bool:
        """Return whether the log disproves the answer: it begins behind the answer, or still holds the record."""
        return self._says_gone and ((self.answered or 0) < self.start or self._is_same)

    @property
    def parted(self) -> bool:
        """Return whether the log holds something else now where the last copied record was."""
        if self.contradicts:
            return False
        if self.batch is not None and self.batch.base_offset <= self.upstream:
            return self.batch.leader_epoch not in (self.epoch, UNKNOWN)
        return self._says_gone

    @property
    def _says_gone(self) -> bool:
        return self.answered is not None and 0 <= self.answered <= self.upstream

    @property
    def _is_same(self) -> bool:
        """Return whether the log holds the record's epoch at its offset.

        If a cleaner removed the record, the next batch behind it counts.
        """
        return self.batch is not None and self.batch.leader_epoch == self.epoch

    def search(self) -> "PartingSearch":
        """Return the search for the offset where the log parts from the one that was copied.

        It has to read batches only where nothing but their epochs shows that offset.
        """
        if not self.parted:
            answered = self.end if self.answered is None or self.contradicts or self.answered < 0 else self.answered
            return PartingSearch(self.epoch, min(answered, self.end))
        if self.batch is not None and self.batch.leader_epoch > self.epoch:
            return PartingSearch(self.epoch, self.start, max(self.start, self.batch.base_offset))
        # The log holds nothing there, or all of it is another log.
        return PartingSearch(self.epoch, self.start if self.answered is None else min(self.answered, self.end))


class PartingSearch:
    """The binary search for the first offset of a later leader epoch. The epochs of a log never decrease."""

    def __init__(self, epoch: int, low: int, high: int | None = None) -> None:
        """Begin with the bounds of the offset; `high` None: the offset is `low`."""
        self._epoch = epoch
        self._low = low
        self._high = low if high is None else high

    @property
    def is_open(self) -> bool:
        """Return whether a batch has to be read."""
        return self._low < self._high

    @property
    def middle(self) -> int:
        """Return the offset whose batch, or else the first one behind it, is to be read next."""
        return (self._low + self._high) // 2

    @property
    def agreed(self) -> int:
        """Return the offset that was searched, once the search is over."""
        return self._low

    def narrow(self, batch: Batch | None) -> None:
        """Take the batch that was read at `middle`; None: there is no batch."""
        middle = self.middle
        if batch is None or batch.leader_epoch > self._epoch:
            self._high = middle if batch is None else max(self._low, min(middle, batch.base_offset))
        else:
            self._low = min(self._high, batch.last_offset + 1)
