"""The phases of a partition, what happens to it, and the table of both (no I/O, no clock).

A partition is always in one phase. `TRANSITIONS` alone says which phase follows; `docs/reference/partition-phases.md`
draws it. What is not in the table is a fault of ours and raises.

- RESUMING: the end of its appends is being read from the target's log; nothing is fetched or sent
- COPYING: fetched, judged, appended
- SETTLING: something failed; nothing is sent, and the answers still out are awaited
- DRAINING: it is to leave this slot, or something was refused; nothing more is fetched, what is in flight is awaited
- LOCATING: it is to leave, and the source is read up to where the target's log says that the copy ends; nothing is sent
- HALTED: nothing moves until an operator decides; its row has the reason
- RELEASED: this slot has no part in it any more"""

from enum import Enum


class Phase(Enum):
    RESUMING = "resuming"
    COPYING = "copying"
    SETTLING = "settling"
    DRAINING = "draining"
    LOCATING = "locating"
    HALTED = "halted"
    RELEASED = "released"


class PhaseEvent(Enum):
    """Events of a partition (`events.py`), as far as they count for the phase."""

    RESUMED = "resumed"
    FAILED = "failed"
    REFUSED = "refused"
    ROUND_REFUSED = "round-refused"
    """Refused in the middle of a round of keyed appends: the round begins again, and ends before the refused record."""
    REFUSED_AT_REST = "refused-at-rest"
    """The same of a partition at rest: its row says why its position is not known."""
    SETTLED = "settled"
    QUARANTINED = "quarantined"
    QUARANTINED_LEAVING = "quarantined-leaving"
    """The partition has to leave by then."""
    LEAVE = "leave"
    """Another run goes on, which reads the target's log by itself."""
    REST = "rest"
    """No run goes on. Others read the partition's row then, so the row has to agree with the target's log."""
    DRAINED = "drained"
    DRAINED_REFUSED = "drained-refused"
    """All answers are in, and only an operator's decision lets the partition go on."""
    UNSURE = "unsure"
    """All answers are in, and they do not say how far the target's log got."""
    FOUND = "found"
    """The target's log says how far the copy of a partition at rest got."""
    LOCATED = "located"
    """And which record of the source that is."""
    UNPLACED = "unplaced"
    """The target's log says how far the copy of a partition at rest got. The source, which alone knows which record
    that is, does not answer."""


P, H = Phase, PhaseEvent

READS = frozenset({P.COPYING, P.LOCATING})
"""The source's records are judged in these phases."""

SENDS = frozenset({P.COPYING, P.DRAINING})
"""Batches are appended in these phases."""

RESETS_APPENDS = frozenset({H.QUARANTINED, H.LEAVE, H.REST, H.FAILED, H.ROUND_REFUSED, H.DRAINED, H.DRAINED_REFUSED})
"""After these the partition sends nothing that it still holds."""

TRANSITIONS: dict[Phase, dict[PhaseEvent, Phase]] = {
    P.RESUMING: {
        H.RESUMED: P.COPYING,
        H.FAILED: P.RESUMING,
        H.REFUSED: P.HALTED,
        H.REFUSED_AT_REST: P.RELEASED,
        H.LEAVE: P.RELEASED,
        H.REST: P.RESUMING,
        H.FOUND: P.LOCATING,
        H.UNPLACED: P.RELEASED,
    },
    P.COPYING: {
        H.FAILED: P.SETTLING,
        H.ROUND_REFUSED: P.SETTLING,
        H.REFUSED: P.DRAINING,
        H.LEAVE: P.DRAINING,
        H.REST: P.DRAINING,
    },
    P.SETTLING: {
        H.FAILED: P.SETTLING,
        H.ROUND_REFUSED: P.SETTLING,
        H.SETTLED: P.RESUMING,
        H.REFUSED: P.DRAINING,
        H.REFUSED_AT_REST: P.DRAINING,
        H.LEAVE: P.DRAINING,
        H.REST: P.DRAINING,
    },
    P.DRAINING: {
        H.FAILED: P.DRAINING,
        H.REFUSED: P.DRAINING,
        H.REFUSED_AT_REST: P.DRAINING,
        H.QUARANTINED: P.RESUMING,
        H.QUARANTINED_LEAVING: P.DRAINING,
        H.LEAVE: P.DRAINING,
        H.REST: P.DRAINING,
        H.DRAINED: P.RELEASED,
        H.DRAINED_REFUSED: P.HALTED,
        H.UNSURE: P.RESUMING,
    },
    P.LOCATING: {
        H.FAILED: P.SETTLING,
        H.REFUSED_AT_REST: P.RELEASED,
        H.LEAVE: P.RELEASED,
        H.REST: P.LOCATING,
        H.LOCATED: P.RELEASED,
    },
    P.HALTED: {H.LEAVE: P.RELEASED, H.REST: P.RESUMING},
    P.RELEASED: {},
}
