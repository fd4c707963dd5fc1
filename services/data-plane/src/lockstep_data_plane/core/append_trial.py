"""Judge what the target makes of producer ids, epochs and sequences, by a trial before the first record (no I/O).

An append is a compare-and-swap only if all of that is as Kafka has it (`kafka-wire.md` §0, §3). Where it is not,
transactions keep the copy exact, if the target has them. Else the log is read back (`log_read_back.py`)."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode, error_meaning

GAP = 7
"""The sequence of the trial's batch that leaves a gap."""


class AppendFault(StrEnum):
    """Name what the target does not do with producer ids, each with words for people."""

    words: str

    def __new__(cls, word: str, words: str) -> "AppendFault":
        member = str.__new__(cls, word)
        member._value_ = word
        member.words = words
        return member

    IDS_ABSENT = "ids-absent", "gives no producer ids (InitProducerId)"
    IDS_REFUSED = "ids-refused", "refuses a batch with a producer id"
    IDS_LOST = "ids-lost", "does not keep producer id, epoch and sequence of a batch in its log"
    GAPS_TAKEN = "gaps-taken", "takes a batch whose sequence does not follow"
    REPEATS_TAKEN = "repeats-taken", "appends a batch twice"
    SESSION_BOUND = "session-bound", "refuses a producer id on another connection"
    EPOCHS_REFUSED = "epochs-refused", "refuses a next epoch that the client chose"
    EPOCHS_IGNORED = "epochs-ignored", "takes a batch of an earlier epoch"


class TrialAnswer(NamedTuple):
    """The answer to one batch of the trial. `base_offset` -1: it was not appended."""

    code: int
    base_offset: int = -1

    @property
    def is_taken(self) -> bool:
        """Return whether the target has acknowledged the batch."""
        return self.code == KafkaErrorCode.NONE

    @property
    def passes(self) -> bool:
        """Return whether the code says nothing of the batch: asked again, the answer may be another."""
        return error_meaning(self.code) in (ErrorMeaning.RETRIABLE, ErrorMeaning.UNREACHABLE, ErrorMeaning.DENIED)


class AppendTrial(NamedTuple):
    """One record each under a producer id of the trial's own, in epoch `epoch`, on two connections.

    `first` has sequence 0. `again` is the same batch. `gap` has sequence `GAP`. `elsewhere` has sequence 1, on the
    other connection. `next_epoch` has sequence 0 of the next epoch, and `earlier_epoch` sequence 2 of `epoch` after it.
    `log`: the target's batches from `first` on."""

    producer_id: int
    epoch: int
    first: TrialAnswer
    again: TrialAnswer
    gap: TrialAnswer
    elsewhere: TrialAnswer
    next_epoch: TrialAnswer
    earlier_epoch: TrialAnswer
    log: Sequence[Batch]

    def find_faults(self) -> tuple[AppendFault, ...]:
        """Return what the target does not do; empty: it is as Kafka is."""
        found = {
            AppendFault.IDS_LOST: not self._is_kept(self.first, self.epoch, 0),
            AppendFault.GAPS_TAKEN: self.gap.is_taken,
            AppendFault.REPEATS_TAKEN: self.again.is_taken and self.again.base_offset > self.first.base_offset,
            AppendFault.SESSION_BOUND: not self.elsewhere.is_taken,
            AppendFault.EPOCHS_REFUSED: not self.next_epoch.is_taken,
            AppendFault.EPOCHS_IGNORED: self.earlier_epoch.is_taken and self.next_epoch.is_taken,
        }
        if self.elsewhere.is_taken and not self._is_kept(self.elsewhere, self.epoch, 1):
            found[AppendFault.IDS_LOST] = True
        if self.next_epoch.is_taken and not self._is_kept(self.next_epoch, self.epoch + 1, 0):
            found[AppendFault.IDS_LOST] = True
        return tuple(fault for fault, holds in found.items() if holds)

    def _is_kept(self, answer: TrialAnswer, epoch: int, sequence: int) -> bool:
        """Return whether the log has the batch where the target said, with all that it was sent with."""
        wanted = self.producer_id, epoch, sequence
        return any(
            (batch.producer_id, batch.producer_epoch, batch.base_sequence) == wanted
            for batch in self.log
            if batch.base_offset == answer.base_offset
        )


class AppendMode(StrEnum):
    """Name how a flow keeps two appends of one record out of the target's log."""

    SEQUENCES = "sequences"
    """By the sequences of one producer id."""
    TRANSACTIONS = "transactions"
    """By one transactional id for each partition."""
    READ_BACK = "read-back"
    """By one writer for each partition, which reads the target's log back. A writer that was frozen may double."""


def choose_mode(faults: Collection[AppendFault], *, transactions: bool, keeps_names: bool) -> AppendMode | None:
    """Return how the flow appends to a target with these faults. None: there is no way that keeps records apart.

    `transactions`: the target has them. `keeps_names`: topics have the same names on both clusters. Then producer ids
    in the target's log say which records are copies, so there is no way without them."""
    if not faults:
        return AppendMode.SEQUENCES
    if transactions:
        return AppendMode.TRANSACTIONS
    return None if keeps_names else AppendMode.READ_BACK
