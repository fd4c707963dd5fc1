"""The end of a hanging transaction: its coordinator has ended it, and not all of its partitions have the marker.

Kafka 4.3 and 4.4 leave out the marker of a partition that has no leader at that moment (KAFKA-20734). The records
stay open then, and the next marker of the same producer would commit or abort them with its own. No I/O.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from lockstep_state.offsets import TopicPartition


class TransactionOutcome(Enum):
    """The state of a transaction in one partition, as its marker or the lack of one shows it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """The progress record of a transaction, as the progress topic has it.

    `appended_to` has the offset of the transaction's last record in each partition of the target's topic. None: the
    record does not say so, as those of MM2 and of earlier releases.
    """

    outcome: TransactionOutcome
    appended_to: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction of ours that is open in `partitions`, although its coordinator has ended it."""

    partitions: tuple[TopicPartition, ...]
    is_committed: bool
    """It is to be committed there; False: to be aborted."""


def is_to_be_committed(last: ProgressRecord | None, hanging: Mapping[int, int], ended: Collection[bool]) -> bool:
    """Return whether a hanging transaction is to be committed; False: it is to be aborted.

    The progress record is the last record of its transaction. So a transaction that has it is whole, and one without it
    was never committed. Where some partitions have the marker, readers have seen that outcome, and it counts for all.

    Args:
        last: The last progress record of the producer; None: there is none.
        hanging: The partitions of the target's topic in which the producer has an open transaction, with its first
            offset.
        ended: For the other partitions that `last` names, whether the marker there commits.
    """
    if last is None or last.outcome is TransactionOutcome.ABORTED:
        return False
    if last.outcome is TransactionOutcome.OPEN:
        return False not in ended and (True in ended or bool(hanging))
    ends = last.appended_to
    # Where it is unknown whether the progress is of this transaction, records may come twice, and are not lost.
    return ends is None or any(ends.get(number, -1) >= first for number, first in hanging.items())
