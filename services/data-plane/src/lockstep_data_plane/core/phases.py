"""The phases of a partition (no I/O, no clock).

A partition is always in one phase. What may happen in a phase is the table below, drawn in `partition-phases.md`;
anything else is a fault of ours and raises.

- RESUMING: its chain's end is being read from the target's log; nothing is fetched or sent
- COPYING: fetched, judged, appended
- SETTLING: something failed; nothing is sent, and the answers still out are awaited
- DRAINING: it is to leave this slot; nothing more is fetched, what flies is awaited
- LOCATING: it is to leave, and the source is read up to where the target's log says that the copy ends; nothing is sent
- HALTED: nothing moves until somebody decides; the reason stands in its state
- RELEASED: this slot has no part in it any more"""

from __future__ import annotations

from enum import Enum

__all__ = ["RESETS_APPENDS", "TRANSITIONS", "PartitionEvent", "Phase"]


class Phase(Enum):
    RESUMING = "resuming"
    COPYING = "copying"
    SETTLING = "settling"
    DRAINING = "draining"
    LOCATING = "locating"
    HALTED = "halted"
    RELEASED = "released"


class PartitionEvent(Enum):
    RESUMED = "resumed"
    FAILED = "failed"
    REFUSED = "refused"
    SETTLED = "settled"
    QUARANTINED = "quarantined"
    LEAVE = "leave"
    """Another slot goes on, which reads the target's log by itself."""
    REST = "rest"
    """Nobody goes on. What the partition's row says then is handed back, altered and shown, so the target's log has to
    have said it."""
    DRAINED = "drained"
    UNSURE = "unsure"
    """All answers are in, and they do not tell how far the target's log got."""
    FOUND = "found"
    """The target's log says how far the copy of one that rests got."""
    LOCATED = "located"
    """And which record of the source that is."""


RESETS_APPENDS = frozenset(
    {
        PartitionEvent.QUARANTINED,
        PartitionEvent.LEAVE,
        PartitionEvent.REST,
        PartitionEvent.FAILED,
        PartitionEvent.DRAINED,
    }
)
"""After these the partition sends nothing that it still holds."""


P, H = Phase, PartitionEvent
TRANSITIONS: dict[Phase, dict[PartitionEvent, Phase]] = {
    P.RESUMING: {
        H.RESUMED: P.COPYING,
        H.FAILED: P.RESUMING,
        H.REFUSED: P.HALTED,
        H.LEAVE: P.RELEASED,
        H.REST: P.RESUMING,
        H.FOUND: P.LOCATING,
    },
    P.COPYING: {H.FAILED: P.SETTLING, H.REFUSED: P.DRAINING, H.LEAVE: P.DRAINING, H.REST: P.DRAINING},
    P.SETTLING: {
        H.FAILED: P.SETTLING,
        H.SETTLED: P.RESUMING,
        H.REFUSED: P.DRAINING,
        H.LEAVE: P.DRAINING,
        H.REST: P.DRAINING,
    },
    P.DRAINING: {
        H.FAILED: P.DRAINING,
        H.REFUSED: P.DRAINING,
        H.QUARANTINED: P.RESUMING,
        H.LEAVE: P.DRAINING,
        H.REST: P.DRAINING,
        H.DRAINED: P.RELEASED,
        H.UNSURE: P.RESUMING,
    },
    P.LOCATING: {
        H.FAILED: P.SETTLING,
        H.REFUSED: P.HALTED,
        H.LEAVE: P.RELEASED,
        H.REST: P.LOCATING,
        H.LOCATED: P.RELEASED,
    },
    P.HALTED: {H.LEAVE: P.RELEASED, H.REST: P.RESUMING},
    P.RELEASED: {},
}
"""A partition that is refused something drains what flies first, like one that leaves; `PartitionMachine.reason` then
makes its end HALTED instead of RELEASED. One that rests is RELEASED where it would halt: its row says why its position
is not known (`PartitionMachine.located`)."""
