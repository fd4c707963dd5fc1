"""Up to where the source's log still is the one that was copied, by the leader epochs in it (no I/O; `kafka-wire.md`
§2, line 2).

A record's offset and leader epoch identify it: logs that agree on both agree on all before. So the batch that holds the
last copied offset decides, and OffsetForLeaderEpoch is the shorter way to the same answer."""

from typing import NamedTuple

from lockstep_data_plane.record_batch.layout import Batch

UNKNOWN = -1
"""The leader epoch of a batch that no leader has numbered."""


class EpochEvidence(NamedTuple):
    """Hold what is known about the epoch of the last copied record. `upstream` is its offset, `epoch` its leader epoch.

    `start` and `end`: of the source's log now. `answered`: where the epoch ends by OffsetForLeaderEpoch; -1: its leader
    does not know; None: the cluster does not support the request. `batch`: the one of the source's log that holds
    `upstream`, or else the first behind it; None: not read, or there is none."""

    upstream: int
    epoch: int
    start: int
    end: int
    answered: int | None
    batch: Batch | None = None

    @property
    def needs_batch(self) -> bool:
        """Return whether the log has to say it: there is no answer, or one that says that the record is gone."""
        return (self.answered is None or self._says_gone) and self.start <= self.upstream < self.end

    @property
    def contradicts(self) -> bool:
        """Return whether the answer is disproved: the log begins behind it, or still holds what it says is gone."""
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
        """Return whether the log holds the record's epoch at its offset, or behind it if a cleaner removed the
        record."""
        return self.batch is not None and self.batch.leader_epoch == self.epoch

    def search(self) -> "PartingSearch":
        """Return the search for the offset where the log parts from the one that was copied. It is over at once but
        where only the batches' epochs say it."""
        if not self.parted:
            answered = self.end if self.answered is None or self.contradicts or self.answered < 0 else self.answered
            return PartingSearch(self.epoch, min(answered, self.end))
        if self.batch is not None and self.batch.leader_epoch > self.epoch:
            return PartingSearch(self.epoch, self.start, max(self.start, self.batch.base_offset))
        # Nothing is there, or all of it is another log.
        return PartingSearch(self.epoch, self.start if self.answered is None else min(self.answered, self.end))


class PartingSearch:
    """Finds the first offset of a later leader epoch by halves. The epochs of a log never decrease."""

    def __init__(self, epoch: int, low: int, high: int | None = None) -> None:
        """Take the bounds of the offset. `high` None: the offset is `low`."""
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
        """Return the offset, once the search is over."""
        return self._low

    def learn(self, batch: Batch | None) -> None:
        """Take what was read at `middle`; None: nothing is there."""
        middle = self.middle
        if batch is None or batch.leader_epoch > self._epoch:
            self._high = middle if batch is None else max(self._low, min(middle, batch.base_offset))
        else:
            self._low = min(self._high, batch.last_offset + 1)
