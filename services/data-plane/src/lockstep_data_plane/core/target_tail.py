"""What the target's log says of our chain behind what a row tells (no I/O): how far it goes, what of it is still there,
and what retention or a cleaner has removed since (`kafka-wire.md` §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from lockstep_data_plane.record_batch.layout import CONTROL, Batch
from lockstep_data_plane.record_batch.stamp import SEQUENCES, add_sequence
from lockstep_protocol.errors import NeedsDecision
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = [
    "SEARCHED",
    "InDoubt",
    "LastAppend",
    "LaterEpoch",
    "TargetShort",
    "TargetTail",
    "Unaccounted",
    "last_append_in",
]

SEARCHED = 1_000
"""Offsets of the target's log in front of a chain that begins in which nothing of that chain may lie."""


@dataclass(frozen=True, slots=True)
class LastAppend:
    """The last record of our chain: its sequence and its offset downstream. `others`: where it ends under other
    producer ids (`PartitionProgress.others`); the offset is that of the last record of all. What of ours lies up to
    `read_to` is known.

    `last`: the last batch of ours that was read and still holds a record; `behind`: so many records of ours were
    appended behind that batch, none of which is left.
    """

    sequence: int
    downstream: int
    last: Batch | None = field(default=None, compare=False)
    others: tuple[tuple[int, int], ...] = ()
    read_to: int = field(default=-1, compare=False)
    behind: int = field(default=0, compare=False)

    def sequence_under(self, producer_id: int, own: int) -> int:
        """Under this producer id, of which `own` is the partition's own; -1: nothing."""
        return self.sequence if producer_id == own else dict(self.others).get(producer_id, -1)

    def further(self, producer_id: int, own: int, sequence: int) -> LastAppend:
        """The chain ends at `sequence` under this id: what lies between is gone from the log."""
        ends = {**dict(self.others), own: self.sequence}
        gone = (sequence - ends.get(producer_id, -1)) % SEQUENCES
        ends[producer_id] = sequence
        own_end = ends.pop(own)
        return replace(self, sequence=own_end, others=tuple(sorted(ends.items())), behind=self.behind + gone)


class InDoubt(NeedsDecision):
    """The target's log does not continue what our row says; the message says how. Somebody has to decide."""


class Unaccounted(InDoubt):
    """The log holds batches of ours, under this epoch, of which the row does not tell: the one that does we have not
    seen, or it was lost."""

    def __init__(self, sentence: str, epoch: int) -> None:
        super().__init__(sentence)
        self.epoch = epoch


class LaterEpoch(Unaccounted):
    """They are of a later epoch than the row knows: a decision was taken."""


class TargetShort(InDoubt):
    """The target's log ends before what was appended and acknowledged, or holds something else there: it was
    truncated."""


def last_append_in(
    found: LastAppend, batches: Iterable[Batch], producer_id: int, epoch: int, others: Set[int] = frozenset()
) -> LastAppend:
    """Follow the chain through some batches of the target's log, under our own producer id and `others` of ours;
    batches of others, and markers, do not matter.

    Raises LaterEpoch when the log holds batches of a later epoch of ours."""
    for batch in batches:
        ours = batch.producer_id == producer_id or batch.producer_id in others
        if not ours or batch.attributes & CONTROL:
            continue
        if batch.producer_epoch > epoch:
            raise LaterEpoch(
                f"the target's log holds epoch {batch.producer_epoch} of our producer {batch.producer_id} at offset "
                f"{batch.base_offset}, our row knows epoch {epoch} only",
                batch.producer_epoch,
            )
        if batch.producer_epoch == epoch:
            found = found.further(
                batch.producer_id, producer_id, add_sequence(batch.base_sequence, batch.last_offset_delta)
            )
            found = replace(found, downstream=batch.last_offset)
            if batch.record_count:
                found = replace(found, last=batch, behind=0)
    return found


class TargetTail:
    """The target's log from the last record of a row on, batch by batch, in order."""

    def __init__(self, row: PartitionProgress, others: Set[int]) -> None:
        """`others`: producer ids of ours other than the row's."""
        self._row = row
        self._others = others
        self._next = row.downstream + 1
        self.end = LastAppend(row.sequence, row.downstream, others=row.others)
        self.removed = -1
        """The last offset behind all that was seen of ours which no batch covers any more: what lay there, retention or
        the cleaner has removed. -1: none."""

    def add(self, batches: Iterable[Batch]) -> None:
        """Raises LaterEpoch; TargetShort where something else lies at the offset of the row's last record; Unaccounted
        where the row's chain has yet to begin, and something of it lies there."""
        for batch in batches:
            if batch.last_offset <= self._row.downstream:
                self._still_there(batch)
                continue
            if batch.base_offset <= self._row.downstream:
                self._still_there(batch)
            if batch.base_offset > self._next:
                self.removed = batch.base_offset - 1
            self._next = batch.last_offset + 1
            end = last_append_in(self.end, (batch,), self._row.producer_id, self._row.producer_epoch, self._others)
            if end != self.end:
                self.end, self.removed = end, -1

    def ends(self, end: int) -> None:
        """The log ends there, nothing more is to come."""
        if self._next < end:
            self.removed, self._next = end - 1, end
        self.end = replace(self.end, read_to=end - 1)

    def remembered(self, ends: Mapping[int, int]) -> LastAppend:
        """The chain's end, where the leader remembers these last sequences of ours, by producer id: what the log does
        not show lay where something was removed."""
        end, own = self.end, self._row.producer_id
        for producer_id, sequence in ends.items():
            if (sequence - end.sequence_under(producer_id, own)) % SEQUENCES in range(1, SEQUENCES // 2):
                end = replace(end.further(producer_id, own, sequence), downstream=max(end.downstream, self.removed))
        return end

    def _still_there(self, batch: Batch) -> None:
        """A batch that was appended in our place after a truncation has another id, epoch or sequence. What a cleaner
        left of our batch still has all three."""
        row = self._row
        if not row.begun and self._of_the_chain(batch):
            raise Unaccounted(
                f"the target's log holds at offset {batch.base_offset} what our producer {batch.producer_id} appended "
                f"in epoch {batch.producer_epoch}, of which our row does not tell",
                batch.producer_epoch,
            )
        inside = batch.base_offset <= row.downstream <= batch.last_offset
        if not inside or row.sequence < 0 or batch.magic < 2 or batch.attributes & CONTROL:
            return
        at = add_sequence(batch.base_sequence, row.downstream - batch.base_offset)
        known = {row.producer_id: row.sequence, **dict(row.others)}
        if known.get(batch.producer_id) == at and batch.producer_epoch == row.producer_epoch:
            return
        raise TargetShort(
            f"the target's log holds at offset {row.downstream} what producer {batch.producer_id} appended there with "
            f"sequence {at}, not our record with sequence {row.sequence} of producer {row.producer_id}: it was "
            "truncated and has grown again"
        )

    def _of_the_chain(self, batch: Batch) -> bool:
        """Records of ours that are not of a former epoch."""
        ours = batch.producer_id == self._row.producer_id or batch.producer_id in self._others
        return ours and not batch.attributes & CONTROL and batch.producer_epoch >= self._row.producer_epoch
