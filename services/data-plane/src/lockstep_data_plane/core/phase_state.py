"""What moves through the table of `phases.py`: the phase of one partition, why it halted, and whether its row says all
(no I/O, no clock)."""

from __future__ import annotations

from lockstep_data_plane.core.phases import TRANSITIONS, PartitionEvent, Phase

__all__ = ["PhaseState"]

LOCATES = (PartitionEvent.DRAINED, PartitionEvent.LOCATED)
"""What tells that the row of a partition at rest says all."""


class PhaseState:
    """The phase of a partition, and what belongs to it."""

    def __init__(self) -> None:
        self.phase = Phase.RESUMING
        self.reason = ""
        self.case = ""
        """The word for why it halted (`PartitionProgress.case`)."""
        self.leaving = False
        self.locates = False
        """Nobody goes on where it leaves, so that its row has to say what the target's log says."""
        self.located = False
        """The row says so: nothing of ours lies in the target's log behind it."""
        self.rests = ""
        """The word for why an operator wants it to rest (`PartitionProgress.phase`), once it leaves for that."""
        self._sure = False
        """Nothing failed since it resumed last, so that every append is accounted for once all answers are in."""

    def on(self, happening: PartitionEvent, reason: str = "") -> Phase:
        """Move on. Raises KeyError for what cannot happen in this phase."""
        self.phase = TRANSITIONS[self.phase][happening]
        if happening is PartitionEvent.REFUSED:
            self.reason, self.case = reason, self.case or "refused"
        if happening is PartitionEvent.QUARANTINED:
            self.reason, self.case = "", ""
        if happening in (PartitionEvent.LEAVE, PartitionEvent.REST):
            self.leaving, self.locates = True, happening is PartitionEvent.REST
        if happening in (PartitionEvent.RESUMED, PartitionEvent.FOUND):
            self._sure = True
        if happening is PartitionEvent.FAILED:
            self._sure = False
        if self.phase is Phase.RELEASED and self.reason and not self.leaving:
            self.phase = Phase.HALTED
        elif self.phase is Phase.HALTED and self.locates:
            self.phase = Phase.RELEASED
        self.located = self.phase is Phase.RELEASED and self.locates and happening in LOCATES
        return self.phase

    def can(self, happening: PartitionEvent) -> bool:
        """Whether it can happen in this phase."""
        return happening in TRANSITIONS[self.phase]

    def doubt(self) -> None:
        """Somebody else may have appended since it resumed: once it rests, the target's log is asked in any case."""
        self._sure = False

    @property
    def reads(self) -> bool:
        """Whether the source's records are judged in this phase."""
        return self.phase in (Phase.COPYING, Phase.LOCATING)

    @property
    def halted(self) -> bool:
        """Whether somebody has to decide; also where it was to rest, and nobody can tell how far it is."""
        unknown = self.phase is Phase.RELEASED and self.locates and not self.located
        return self.phase is Phase.HALTED or (unknown and self.case != "")

    @property
    def word(self) -> str:
        """As its row says it (`PartitionProgress.phase`)."""
        if self.halted:
            return "halted"
        return self.rests if self.phase is Phase.RELEASED and self.rests else "copying"
