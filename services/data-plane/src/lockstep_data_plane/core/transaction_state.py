"""The transactions of one partition's appends: when one opens, what it holds, when it ends (no I/O, no clock).

See KIP-98 and `architecture.md` §5. Under `exactly.once.source.support=enabled`, one transaction holds the records of a
partition and their progress. So readers of committed records see both or neither. Each partition has its own
transactions, under its own transactional id. The slot that takes the partition over ends the open transaction and
fences its writer. One partition's transaction never waits for another's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lockstep_data_plane.core.append_sequence import Ack

SHORTEST_S = 0.1
"""The shortest time in seconds for which the transaction of a partition that lags stays open."""

SHARE = 20.0
"""The factor between the time to end one transaction and open the next, and the time for which a transaction stays
open. So ending takes a twentieth of the time at most, within the limits of `SHORTEST_S` and `LONGEST_S`.
"""

LONGEST_S = 5.0
"""The longest time in seconds for which it stays open, because readers of committed records wait for its end."""

WEIGHT = 0.3
"""The weight of the newest transaction in the average time that ending one takes."""


@dataclass(frozen=True, slots=True)
class TransactionBoundary:
    """The rule for when a transaction ends (MM2's `transaction.boundary`).

    With `interval_s`, a transaction ends so many seconds after it was opened. None is the boundary `poll`. Then it ends
    as soon as all fetched records are appended, and from time to time while records wait.
    """

    interval_s: float | None = None


class TransactionStage(Enum):
    """The stage of a partition's transaction.

    - CLOSED: there is none
    - OPENING: the coordinator is being asked
    - OPEN: batches are appended
    - ENDING: batches in flight are awaited, progress is appended, and the coordinator is asked to end the transaction
    """

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    ENDING = "ending"


class TransactionState:
    """The transactions of one partition in one epoch of its transactional id."""

    def __init__(self, transactional_id: str, boundary: TransactionBoundary = TransactionBoundary()) -> None:
        self.transactional_id = transactional_id
        self.stage = TransactionStage.CLOSED
        self.joined: set[int] = set()
        """The target's partitions that the coordinator knows to be in the open transaction."""
        self.held: list[Ack] = []
        """The batches that were appended in the open transaction. The bytes of the outgoing batches are released."""
        self.progress_sequence = 0
        """The sequence of the next progress record, in the epoch of the transactional id."""
        self._boundary = boundary
        self._opened_at = 0.0
        self._ending_at: float | None = None
        self._cost_s = 0.0

    def mark_opening(self) -> None:
        """Note that the coordinator is about to be asked."""
        self.stage, self.joined = TransactionStage.OPENING, set()

    def mark_opened(self, now: float) -> None:
        """Note that batches may be appended from now on."""
        if self._ending_at is not None:
            cost = now - self._ending_at
            self._cost_s = cost if not self._cost_s else (1 - WEIGHT) * self._cost_s + WEIGHT * cost
            self._ending_at = None
        self.stage, self._opened_at = TransactionStage.OPEN, now

    def hold(self, acks: Sequence[Ack]) -> None:
        """Note batches that are appended, and that count once the transaction has ended. Drop their bytes."""
        for ack in acks:
            ack.outgoing.data = b""
        self.held.extend(acks)

    def pass_over(self, offset: int, leader_epoch: int) -> bool:
        """Let the last batch held cover the offsets that were passed over behind it; False: no batch is held."""
        if not self.held:
            return False
        last = self.held[-1].outgoing
        if offset > last.covers:
            last.covers, last.leader_epoch = offset, leader_epoch
        return True

    def due_in(self, now: float, *, idle: bool, caught_up: bool, leaving: bool = False) -> float | None:
        """Return the seconds until the open transaction is to end; 0: now; None: it holds nothing.

        Args:
            now: The time of the loop's clock.
            idle: Nothing waits or is in flight.
            caught_up: Nothing waits or is in flight, and the source has nothing more.
            leaving: Nothing more will be fetched.
        """
        if not self.held:
            return None
        if idle and leaving:
            return 0.0
        if self._boundary.interval_s is not None:
            return max(0.0, self._opened_at + self._boundary.interval_s - now)
        if idle and caught_up:
            return 0.0
        return max(0.0, self._opened_at + min(max(SHORTEST_S, SHARE * self._cost_s), LONGEST_S) - now)

    def mark_ending(self, now: float) -> None:
        """Note that the transaction is about to end and takes no more batches."""
        self.stage, self._ending_at = TransactionStage.ENDING, now

    def take_committed(self) -> list[Ack]:
        """Note that the transaction has ended, and return the batches that it made visible, in order."""
        self.stage = TransactionStage.CLOSED
        self.progress_sequence += 1
        held, self.held = self.held, []
        return held
