"""The appends of one partition of the source into several of the target, in rounds (no I/O, no clock).

Each partition of the target has a chain of its own, and what goes there goes in order. A round is what one transaction
holds: whole groups, so that it ends with everything up to one upstream offset decided, whatever the chains' pace."""

from __future__ import annotations

from collections import deque

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence, InFlightBatch
from lockstep_data_plane.core.key_partitioner import BatchGroup
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch

__all__ = ["KeyedAppendSequences"]

ROUND_BYTES = 4 * 1024 * 1024
"""While so many bytes of a round wait or fly nothing joins it: who drains has to send them all."""


class KeyedAppendSequences(AppendSequence):
    """All of them as one, as far as others look at it. Positions in the target's logs say nothing here: `downstream`
    and `sequence` stay -1."""

    def __init__(self, producer_id: int, epoch: int, partitions: int) -> None:
        """`partitions` of the target, of which the transactional id of this epoch has appended nothing yet."""
        super().__init__(producer_id, epoch, -1, -1, transactional=True)
        self.links = tuple(AppendSequence(producer_id, epoch, -1, -1, transactional=True) for _ in range(partitions))
        self._later: deque[BatchGroup] = deque()
        self._round: BatchGroup | None = None

    def queue(self, group: BatchGroup) -> None:
        """Behind all others, for this round or a later one."""
        self._later.append(group)

    def join_round(self) -> set[int]:
        """Let what waits join the round, as far as there is room, and begin one where there is none. Returns the
        target's partitions that have something to send or on its way."""
        while self._later and (self._round is None or self._sending < ROUND_BYTES):
            group = self._later.popleft()
            for piece in group.pieces:
                self.links[piece.to].enqueue(piece)
            self._round = BatchGroup((), group.covers, group.leader_epoch)
        return {number for number, link in enumerate(self.links) if not link.idle}

    @property
    def round_covers(self) -> tuple[int, int]:
        """Up to which upstream offset everything is decided once the round has ended, and the source's leader epoch
        there; (-1, -1): there is no round."""
        return (-1, -1) if self._round is None else (self._round.covers, self._round.leader_epoch)

    @property
    def round_sent(self) -> bool:
        """Everything in the round is appended."""
        return not self.broken and all(link.idle for link in self.links)

    def marked(self) -> None:
        """The round has ended."""
        self._round = None

    # -- as one --------------------------------------------------------------------------------------------------------

    @property
    def sendable(self) -> bool:
        """Whether a round may begin."""
        return bool(self._later) and not self.broken

    def on_ack(self, flight: InFlightBatch, base_offset: int) -> list[Ack]:
        return self.links[flight.piece.to].on_ack(flight, base_offset)

    def on_failure(self, flight: InFlightBatch) -> None:
        self.links[flight.piece.to].on_failure(flight)
        self.break_off()

    def break_off(self) -> None:
        """Nothing more is sent anywhere. The round cannot end any more."""
        self.broken = True
        for link in self.links:
            link.break_off()

    def reset(self) -> None:
        """Drop what is in no round yet; of a round that is broken, what has not been sent as well."""
        self._later.clear()
        if self.broken:
            for link in self.links:
                link.reset()

    @property
    def _newest(self) -> BatchGroup | None:
        return self._later[-1] if self._later else self._round

    @property
    def bytes_held(self) -> int:
        return self._sending + sum(group.size for group in self._later)

    @property
    def records_held(self) -> int:
        waiting = sum(piece.count for group in self._later for piece in group.pieces)
        return waiting + sum(link.records_held for link in self.links)

    @property
    def unanswered(self) -> int:
        return sum(link.unanswered for link in self.links)

    @property
    def idle(self) -> bool:
        return not self._later and all(link.idle for link in self.links)

    @property
    def oldest(self) -> OutgoingBatch | None:
        first = [piece for link in self.links if (piece := link.oldest) is not None]
        if not first and self._later:
            first = list(self._later[0].pieces)
        return min(first, key=lambda piece: piece.offsets[0], default=None)

    @property
    def _sending(self) -> int:
        return sum(link.bytes_held for link in self.links)
