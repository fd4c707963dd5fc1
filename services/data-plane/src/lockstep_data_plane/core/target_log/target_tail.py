"""The evidence of our append sequence in the target's log behind a row (no I/O).

It shows how far the sequence goes, what of it is still in the log, and what retention or a cleaner has removed
(`kafka-wire.md` §2). Progress is written after the fact, so the log may be further on than the row. The producer id,
epoch and sequence of each batch stay in the log for ever. The leader knows the last sequence of each producer even
beyond the high watermark. Together they show exactly how many records of ours the log holds more than the row.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from lockstep_data_plane.record_batch.layout import CONTROL, Batch, add_sequence
from lockstep_rules.offsets.gap_policy import GapCase
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.errors import NeedsDecision, RetriableError
from lockstep_state.offsets import SEQUENCES
from lockstep_state.rows.state_rows import PartitionProgress

SEARCHED = 1_000
"""The number of offsets of the target's log in front of a new chain that must hold nothing of that chain."""


@dataclass(frozen=True, slots=True)
class LastAppend:
    """The last record of our sequence: its sequence and its downstream offset.

    Attributes:
        sequence: The sequence of the last record under the partition's own producer id.
        downstream: The offset of the last record under any of our producer ids.
        last: The last batch of ours that was read and still holds a record.
        others: The ends under other producer ids (`PartitionProgress.others`).
        read_to: The offset up to which everything of ours is known.
        behind: How many records of ours were appended behind the batch `last`. None of them is left.
        stretches: (first offset, records) of what was appended behind the row, in order, as far as it was read. None:
            some of it is gone, so the offset of each record is unknown.
        compared_runs: The offset runs of the records that were compared one by one (`log_read_back.py`).
    """

    sequence: int
    downstream: int
    last: Batch | None = field(default=None, compare=False)
    others: tuple[tuple[int, int], ...] = ()
    read_to: int = field(default=-1, compare=False)
    behind: int = field(default=0, compare=False)
    stretches: tuple[tuple[int, int], ...] | None = field(default=(), compare=False)
    compared_runs: tuple[Run, ...] = field(default=(), compare=False)

    @classmethod
    def from_row(cls, row: PartitionProgress) -> "LastAppend":
        """Return the end that the row says."""
        return cls(row.sequence, row.downstream, others=row.others)

    def last_sequence_of(self, producer_id: int, own: int) -> int:
        """Return the last sequence under this producer id; -1: there is none.

        `own` is the partition's own producer id.
        """
        return self.sequence if producer_id == own else dict(self.others).get(producer_id, -1)

    def extended_to(self, producer_id: int, own: int, sequence: int) -> "LastAppend":
        """Return the end of a chain that goes on to `sequence` under this producer id, with all records between gone.

        `own` is the partition's own producer id.
        """
        ends = {**dict(self.others), own: self.sequence}
        missing = (sequence - ends.get(producer_id, -1)) % SEQUENCES
        ends[producer_id] = sequence
        own_end = ends.pop(own)
        return replace(
            self, sequence=own_end, others=tuple(sorted(ends.items())), behind=self.behind + missing, stretches=None
        )

    def with_batch(self, batch: Batch, own: int) -> "LastAppend":
        """Return the end behind a batch of ours that was read.

        `own` is the partition's own producer id.
        """
        end = self.extended_to(batch.producer_id, own, add_sequence(batch.base_sequence, batch.last_offset_delta))
        count = end.behind - self.behind
        is_whole = self.stretches is not None and count <= batch.last_offset_delta + 1
        stretches = _joined(self.stretches or (), batch.last_offset + 1 - count, count) if is_whole else None
        end = replace(end, downstream=batch.last_offset, stretches=stretches)
        return replace(end, last=batch, behind=0) if batch.record_count else end


def _joined(stretches: tuple[tuple[int, int], ...], first: int, count: int) -> tuple[tuple[int, int], ...]:
    if stretches and sum(stretches[-1]) == first:
        return (*stretches[:-1], (stretches[-1][0], stretches[-1][1] + count))
    return (*stretches, (first, count)) if count else stretches


class LogContradiction(NeedsDecision):
    """The clusters do not hold what our row says.

    The message says how they differ. `epoch` is that of records of ours that the row does not include: their own row
    has not reached us, or it was lost. -1: the contradiction is another one.
    """

    def __init__(self, sentence: str, case: GapCase = GapCase.DOUBT, epoch: int = -1) -> None:
        super().__init__(sentence)
        self.case = case
        self.epoch = epoch


class NotReplicated(RetriableError):
    """The target's leader has appended more of ours than its replicas have, or than our row includes.

    To continue would be a guess.
    """


def last_append_in(
    end: LastAppend, batches: Iterable[Batch], producer_id: int, epoch: int, others: Set[int] = frozenset()
) -> LastAppend:
    """Return the end of the sequence behind some batches of the target's log.

    It counts batches of our own producer id and of `others` of ours. Batches of other writers, and markers, do not
    matter.

    Raises:
        LogContradiction: The log holds batches of a later epoch of ours.
    """
    for batch in batches:
        is_ours = batch.producer_id == producer_id or batch.producer_id in others
        if not is_ours or batch.attributes & CONTROL:
            continue
        if batch.producer_epoch > epoch:
            raise LogContradiction(
                f"the target's log holds epoch {batch.producer_epoch} of our producer {batch.producer_id} at offset "
                f"{batch.base_offset}, our row knows epoch {epoch} only",
                epoch=batch.producer_epoch,
            )
        if batch.producer_epoch == epoch:
            end = end.with_batch(batch, producer_id)
    return end


class TargetTail:
    """The target's log from the last record of a row on, batch by batch, in order, and its leader's memory."""

    def __init__(
        self,
        row: PartitionProgress,
        others: Set[int] = frozenset(),
        *,
        log_end: int = -1,
        shared: bool = False,
        name: str = "",
        alias: str = "",
    ) -> None:
        """Begin at the end that the row says.

        Args:
            row: The written progress.
            others: The producer ids of ours other than the row's.
            log_end: The end of the replicated log; -1: no single log of the target is evidence.
            shared: Others append to the topic as well. So what is gone need not have been ours, and the row's offset
                may be that of a record of theirs.
            name: The name of the partition.
            alias: The alias of its cluster.
        """
        self._row = row
        self._others = others
        self._name = name
        self._alias = alias
        self._next = row.downstream + 1
        self._remembered: Mapping[int, int] = {}
        self._appended_to = -1
        """The end of the leader's log, if the leader says nothing of producers; -1: it does say, or was not asked."""
        self.log_end = log_end
        self.shared = shared
        self._begin = LastAppend.from_row(row)
        self.end = replace(self._begin, read_to=log_end - 1)
        self.removed = -1
        """The last offset, behind all seen records of ours, that no batch covers any more: retention or the cleaner has
        removed what was there. -1: there is none.
        """
        self.contradiction: LogContradiction | None = None
        """The contradiction between the log and the row; None: none was found."""

    @property
    def is_short(self) -> bool:
        """Return whether the log ends before the last record that was appended and acknowledged."""
        return 0 <= self.log_end <= self._row.downstream

    @property
    def reads_from(self) -> int:
        """Return the first offset that has to be read.

        That is the offset of the row's last record. For a chain that begins, it is the first offset of what may lie in
        front.
        """
        if not self._row.begun:
            return self._row.downstream + 1 - SEARCHED
        return self._row.downstream + (1 if self.shared else 0)

    def is_confirmed_by(self, producers: Mapping[int, tuple[int, int]]) -> bool:
        """Return whether the leader reports that nothing of ours was appended since the row.

        Then the log need not be read. `producers` has (epoch, last sequence) by producer id.
        """
        row = self._row
        return row.sequence >= 0 and all(
            producers.get(p) == (row.producer_epoch, self.end.last_sequence_of(p, row.producer_id))
            for p in {row.producer_id, *self._others}
        )

    def add_batches(self, batches: Iterable[Batch]) -> None:
        """Take batches in order.

        Raises:
            LogContradiction: There is a later epoch of ours, or another record is at the offset of the row's last
                record. Or the row's sequence has yet to begin, and something of it is in the log.
        """
        for batch in batches:
            if batch.last_offset <= self._row.downstream:
                self._check_still_ours(batch)
                continue
            if batch.base_offset <= self._row.downstream:
                self._check_still_ours(batch)
            if batch.base_offset > self._next:
                self.removed = batch.base_offset - 1
            self._next = batch.last_offset + 1
            end = last_append_in(self.end, (batch,), self._row.producer_id, self._row.producer_epoch, self._others)
            if end != self.end:
                self.end, self.removed = end, -1

    def ends(self, producers: Mapping[int, tuple[int, int]] | None, appended_to: int) -> None:
        """Note that nothing more is to come before `log_end`.

        Args:
            producers: (epoch, last sequence) of ours that the leader remembers, by producer id. None: the leader does
                not say, so the log alone counts, once it is replicated up to `appended_to`.
            appended_to: The end of the leader's own log.

        Raises:
            LogContradiction: As in `add_batches`. Or what was removed may have been ours, or the leader remembers
                appends of ours that the row does not include.
        """
        row, epoch = self._row, self._row.producer_epoch
        if producers is None:
            producers, self._appended_to = {}, appended_to
        if self._next < self.log_end:
            self.removed, self._next = self.log_end - 1, self.log_end
        self.end = replace(self.end, read_to=self.log_end - 1)
        if self.removed >= 0 and row.producer_id not in producers and not self.shared:
            raise LogContradiction(
                f"the target's log of {self._name} has nothing any more at offset {self.removed}, after our last "
                f"known record at {self.end.downstream}. Its leader {self._memory} our producer {row.producer_id}. "
                "The removed records may have been ours"
            )
        self._remembered = {
            p: sequence for p, (producer_epoch, sequence) in producers.items() if producer_epoch == epoch
        }
        all_read = self.log_end >= appended_to
        if all_read and self.removed >= 0:
            self.end = self.end_from_leader(self._remembered)
        for producer_id, (producer_epoch, sequence) in sorted(producers.items()):
            if producer_epoch > epoch:
                raise LogContradiction(
                    f"the target knows epoch {producer_epoch} of our producer {producer_id}, our row knows {epoch}",
                    epoch=producer_epoch,
                )
            nothing = producer_epoch == epoch and self.end.last_sequence_of(producer_id, row.producer_id) < 0
            if all_read and not row.begun and nothing:
                raise LogContradiction(
                    f"the leader of {self._name} remembers our sequence {sequence} of producer {producer_id} in epoch "
                    f"{epoch}, which our row does not include",
                    epoch=epoch,
                )

    def end_from_leader(self, ends: Mapping[int, int]) -> LastAppend:
        """Return the sequence's end if the leader remembers these last sequences of ours, by producer id.

        Records that the log does not show were at offsets from which something was removed.
        """
        end, own = self.end, self._row.producer_id
        for producer_id, sequence in ends.items():
            if (sequence - end.last_sequence_of(producer_id, own)) % SEQUENCES in range(1, SEQUENCES // 2):
                end = replace(end.extended_to(producer_id, own, sequence), downstream=max(end.downstream, self.removed))
        return end

    @property
    def _memory(self) -> str:
        return "has forgotten" if self._appended_to < 0 else "does not say what it knows of"

    @property
    def _awaits_replicas(self) -> bool:
        """Return whether the log may hold more of ours than was read, because the leader says nothing of producers."""
        return self.log_end < self._appended_to

    @property
    def is_settled(self) -> bool:
        """Return whether asking again would show nothing new: what the leader has of ours was read."""
        waits = self._awaits_replicas or bool(self._differing)
        return self.is_short or self.contradiction is not None or not waits

    def require_row(self) -> None:
        """Require that the log holds what the row says.

        Raises:
            LogContradiction: It does not.
        """
        if self.contradiction is not None:
            raise self.contradiction
        if self.is_short:
            raise LogContradiction(
                f"the target's log of {self._name} ends at {self.log_end}, but our row says that "
                f"{self._row.downstream} was appended: it was truncated",
                GapCase.TARGET_TRUNCATED,
            )

    def last_append(self) -> LastAppend:
        """Return where the row's chain ends.

        Raises:
            LogContradiction: The log does not hold what the row, or the leader, says.
            NotReplicated: The leader has more than the replicated log.
        """
        self.require_row()
        if self._awaits_replicas:
            raise NotReplicated(
                f"the log of {self._name} on the leader of cluster {self._alias} ends at {self._appended_to}, what is "
                f"replicated at {self.log_end}, and the cluster does not say which producers it knows"
            )
        for sequence, end in self._differing:
            if (sequence - end) % SEQUENCES > SEQUENCES // 2:
                raise LogContradiction(
                    f"the target's log of {self._name} ends at our sequence {sequence}, but up to {end} was appended: "
                    "it was truncated",
                    GapCase.TARGET_TRUNCATED,
                )
            raise NotReplicated(
                f"the leader of {self._name} on cluster {self._alias} holds our sequence {sequence}, "
                f"what is replicated ends at {end}"
            )
        return self.end

    @property
    def _differing(self) -> list[tuple[int, int]]:
        """Return pairs (sequence that the leader remembers, sequence that was read) that contradict each other.

        The remembered sequence is beyond the one that was read, or before the row's. The leader is asked before the log
        is read. So another slot may have appended meanwhile what was read behind the remembered sequences.
        """
        own, differing = self._row.producer_id, []
        for producer_id, sequence in sorted(self._remembered.items()):
            begin, end = (append.last_sequence_of(producer_id, own) for append in (self._begin, self.end))
            if (sequence - begin) % SEQUENCES > (end - begin) % SEQUENCES:
                differing.append((sequence, end))
        return differing

    def _check_still_ours(self, batch: Batch) -> None:
        """Check that a batch at or before the row's last record is ours.

        A batch that was appended in our place after a truncation has another id, epoch or sequence. What a cleaner left
        of our batch still has all three.

        Raises:
            LogContradiction: The batch is another one.
        """
        row = self._row
        if not row.begun and self._is_in_sequence(batch):
            raise LogContradiction(
                f"the target's log holds at offset {batch.base_offset} what our producer {batch.producer_id} appended "
                f"in epoch {batch.producer_epoch}, which our row does not include",
                epoch=batch.producer_epoch,
            )
        inside = batch.base_offset <= row.downstream <= batch.last_offset
        if not inside or row.sequence < 0 or batch.magic < 2 or batch.attributes & CONTROL:
            return
        sequence = add_sequence(batch.base_sequence, row.downstream - batch.base_offset)
        begin_sequence = self._begin.last_sequence_of(batch.producer_id, row.producer_id)
        if begin_sequence == sequence and batch.producer_epoch == row.producer_epoch:
            return
        expected = f"not our record with sequence {row.sequence} of producer {row.producer_id}"
        present = f"what producer {batch.producer_id} appended there with sequence {sequence}, {expected}. It was"
        if batch.producer_id < 0:
            present = f"a record without a producer id, {expected}. Either the target does not keep these, or it was"
        raise LogContradiction(
            f"the target's log holds at offset {row.downstream} {present} truncated and has grown again",
            GapCase.TARGET_TRUNCATED,
        )

    def _is_in_sequence(self, batch: Batch) -> bool:
        """Return whether the batch has records of ours that are not of a former epoch."""
        is_ours = batch.producer_id == self._row.producer_id or batch.producer_id in self._others
        return is_ours and not batch.attributes & CONTROL and batch.producer_epoch >= self._row.producer_epoch
