"""The judgement, by a trial, of how the target treats producer ids, epochs and sequences (no I/O).

The trial comes before the first record. An append is a compare-and-swap only if the target treats all three as Kafka
does (`kafka-wire.md` §0, §3). If it does not, transactions keep the copy exact, if the target has them. Otherwise the
log is read back (`log_read_back.py`).
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode, error_meaning

GAP = 7
"""The sequence of the trial's batch that leaves a gap."""


class AppendFault(StrEnum):
    """A fault of the target in the handling of producer ids, with words for people."""

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
    """The answer to one batch of the trial.

    `base_offset` is -1 if the batch was not appended.
    """

    code: int
    base_offset: int = -1

    @property
    def is_taken(self) -> bool:
        """Return whether the target has acknowledged the batch."""
        return self.code == KafkaErrorCode.NONE

    @property
    def passes(self) -> bool:
        """Return whether the code says nothing about the batch, so that a later answer may be another one."""
        return error_meaning(self.code) in (ErrorMeaning.RETRIABLE, ErrorMeaning.UNREACHABLE, ErrorMeaning.DENIED)


class AppendTrial(NamedTuple):
    """The answers to the batches of one trial, which go over two connections under a producer id of the trial's own.

    Each batch has one record. `epoch` is the trial's first epoch.

    - `first`: sequence 0
    - `repeated`: the same batch a second time
    - `gap`: sequence `GAP`
    - `elsewhere`: sequence 1, on the other connection
    - `next_epoch`: sequence 0 of the next epoch
    - `earlier_epoch`: sequence 2 of `epoch`, sent after `next_epoch`
    - `log`: the target's batches from `first` on
    """

    producer_id: int
    epoch: int
    first: TrialAnswer
    repeated: TrialAnswer
    gap: TrialAnswer
    elsewhere: TrialAnswer
    next_epoch: TrialAnswer
    earlier_epoch: TrialAnswer
    log: Sequence[Batch]

    def find_faults(self) -> tuple[AppendFault, ...]:
        """Return the faults that the answers show; empty: the target does as Kafka does.

        IDS_ABSENT and IDS_REFUSED are never among them: with either, the trial ends early (`target_trial.py`).
        """
        faults = {
            AppendFault.IDS_LOST: not self._is_kept(self.first, self.epoch, 0),
            AppendFault.GAPS_TAKEN: self.gap.is_taken,
            AppendFault.REPEATS_TAKEN: self.repeated.is_taken and self.repeated.base_offset > self.first.base_offset,
            AppendFault.SESSION_BOUND: not self.elsewhere.is_taken,
            AppendFault.EPOCHS_REFUSED: not self.next_epoch.is_taken,
            AppendFault.EPOCHS_IGNORED: self.earlier_epoch.is_taken and self.next_epoch.is_taken,
        }
        if self.elsewhere.is_taken and not self._is_kept(self.elsewhere, self.epoch, 1):
            faults[AppendFault.IDS_LOST] = True
        if self.next_epoch.is_taken and not self._is_kept(self.next_epoch, self.epoch + 1, 0):
            faults[AppendFault.IDS_LOST] = True
        return tuple(fault for fault, holds in faults.items() if holds)

    def _is_kept(self, answer: TrialAnswer, epoch: int, sequence: int) -> bool:
        """Return whether the log has the batch at the answer's offset, with its producer id, epoch and sequence."""
        stamped = self.producer_id, epoch, sequence
        return any(
            (batch.producer_id, batch.producer_epoch, batch.base_sequence) == stamped
            for batch in self.log
            if batch.base_offset == answer.base_offset
        )


class AppendMode(StrEnum):
    """The way in which a flow keeps a record from being appended twice."""

    SEQUENCES = "sequences"
    """The sequences of one producer id."""
    TRANSACTIONS = "transactions"
    """One transactional id for each partition."""
    READ_BACK = "read-back"
    """One writer for each partition, which reads the target's log back. A writer that was frozen may append a record
    twice.
    """


def choose_mode(faults: Collection[AppendFault], *, transactions: bool, keeps_names: bool) -> AppendMode | None:
    """Return how the flow appends to a target with these faults.

    Args:
        faults: The faults that the trial has shown.
        transactions: The target supports transactions.
        keeps_names: Topics have the same names on both clusters. Then the producer ids in the target's log say which
            records are copies, so the flow needs them.

    Returns:
        None if no mode keeps records from being appended twice.
    """
    if not faults:
        return AppendMode.SEQUENCES
    if transactions:
        return AppendMode.TRANSACTIONS
    return None if keeps_names else AppendMode.READ_BACK
