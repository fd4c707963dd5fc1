"""The transactions of one partition's appends: when one is opened, what it holds, when it ends (no I/O, no clock;
KIP-98, `architecture.md` §5).

Under `exactly.once.source.support=enabled`, one transaction holds the records of a partition and their progress. So
readers of committed records see both or neither. Each partition has transactions of its own, under a transactional id
of its own. The slot that takes the partition over ends the open transaction and fences its writer. One partition's
transaction never waits for another's."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lockstep_data_plane.core.append_sequence import Ack

SHORTEST_S = 0.1
"""A transaction of a partition that lags stays open at least so long."""

SHARE = 20.0
"""... and this many times as long as ending one and opening the next takes, so that this is a twentieth at most."""

LONGEST_S = 5.0
"""... but not longer: readers of committed records wait for its end."""

WEIGHT = 0.3
"""Of the newest transaction in what ending one takes."""


@dataclass(frozen=True, slots=True)
class TransactionBoundary:
    """When a transaction ends (MM2's `transaction.boundary`). `interval_s`: this long after it was opened. None,
    `poll`: as soon as all that was fetched is appended, and every now and then while records wait."""

    interval_s: float | None = None


class TransactionStage(Enum):
    """CLOSED: none. OPENING: the coordinator is being asked. OPEN: batches are appended. ENDING: no more batches;
    batches in flight are awaited, progress is appended, the coordinator is asked."""

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
        """What was appended in the open transaction. The outgoing batches' bytes are let go."""
        self.progress_sequence = 0
        """Of the next record of progress, in the epoch of the transactional id."""
        self._boundary = boundary
        self._opened_at = 0.0
        self._ending_at: float | None = None
        self._cost_s = 0.0

    def opening(self) -> None:
        """The coordinator is about to be asked."""
        self.stage, self.joined = TransactionStage.OPENING, set()

    def opened(self, now: float) -> None:
        """Batches may be appended from now on."""
        if self._ending_at is not None:
            cost = now - self._ending_at
            self._cost_s = cost if not self._cost_s else (1 - WEIGHT) * self._cost_s + WEIGHT * cost
            self._ending_at = None
        self.stage, self._opened_at = TransactionStage.OPEN, now

    def hold(self, acks: Sequence[Ack]) -> None:
        """These are appended, and count once the transaction has ended."""
        for ack in acks:
            ack.outgoing.data = b""
        self.held.extend(acks)

    def pass_over(self, offset: int, leader_epoch: int) -> bool:
        """Let the last outgoing batch held cover offsets that were passed over behind it. False where none is held."""
        if not self.held:
            return False
        last = self.held[-1].outgoing
        if offset > last.covers:
            last.covers, last.leader_epoch = offset, leader_epoch
        return True

    def due_in(self, now: float, *, idle: bool, caught_up: bool, leaving: bool = False) -> float | None:
        """Seconds until the open transaction is to end; 0: now; None: it holds nothing. `idle`: nothing waits or is in
        flight; `caught_up`: nor has the source more; `leaving`: nor will more be fetched."""
        if not self.held:
            return None
        if idle and leaving:
            return 0.0
        if self._boundary.interval_s is not None:
            return max(0.0, self._opened_at + self._boundary.interval_s - now)
        if idle and caught_up:
            return 0.0
        return max(0.0, self._opened_at + min(max(SHORTEST_S, SHARE * self._cost_s), LONGEST_S) - now)

    def ending(self, now: float) -> None:
        """No more batches."""
        self.stage, self._ending_at = TransactionStage.ENDING, now

    def committed(self) -> list[Ack]:
        """It has ended, and what it held is visible. Returns that, in order."""
        self.stage = TransactionStage.CLOSED
        self.progress_sequence += 1
        held, self.held = self.held, []
        return held
