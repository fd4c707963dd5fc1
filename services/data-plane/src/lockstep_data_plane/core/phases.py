"""The phases of a partition, the events that change them, and the table of both (no I/O, no clock).

A partition is always in one phase. `TRANSITIONS` alone says which phase follows; `docs/internals/partition-states.md`
draws it. An event that the table does not have is a fault of ours and raises KeyError.

- RESUMING: the end of the partition's appends is read from the target's log; nothing is fetched or sent
- COPYING: batches are fetched, judged and appended
- SETTLING: something failed; nothing is sent, and the missing answers are awaited
- DRAINING: the partition is to leave this slot, or something was refused; nothing more is fetched, and batches in
  flight are awaited; if a batch of the source was refused, those queued before it are still appended
- LOCATING: the partition is to leave; the source is read up to the record at which the copy ends in the target's log;
  nothing is sent
- HALTED: nothing moves until an operator decides; the partition's row has the reason
- RELEASED: this slot has no part in the partition any more
"""

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
    """An event of a partition (`events.py`), as far as it counts for the phase."""

    RESUMED = "resumed"
    FAILED = "failed"
    REFUSED = "refused"
    ROUND_REFUSED = "round-refused"
    """A batch was refused within a round of keyed appends. The round begins again, and ends before the refused record.
    """
    REFUSED_AT_REST = "refused-at-rest"
    """A batch of a partition at rest was refused. The partition's row says why its position is not known."""
    SETTLED = "settled"
    QUARANTINED = "quarantined"
    QUARANTINED_LEAVING = "quarantined-leaving"
    """The refused records are in quarantine, and the partition has to leave by now."""
    LEAVE = "leave"
    """The partition leaves, and another run goes on, which reads the target's log itself."""
    REST = "rest"
    """The partition leaves, and no run goes on. Others read its row then, so the row has to agree with the target's
    log.
    """
    DRAINED = "drained"
    DRAINED_REFUSED = "drained-refused"
    """All answers have come, and only an operator's decision lets the partition go on."""
    UNSURE = "unsure"
    """All answers have come, and they do not say where the copy ends in the target's log."""
    FOUND = "found"
    """The target's log says where the copy of a partition at rest ends."""
    LOCATED = "located"
    """The record of the source at which the copy ends is known, too."""
    UNPLACED = "unplaced"
    """The target's log says where the copy of a partition at rest ends. Only the source knows which record that is, and
    it does not answer.
    """


P, H = Phase, PhaseEvent

READS = frozenset({P.COPYING, P.LOCATING})
"""The phases in which the source's records are judged."""

SENDS = frozenset({P.COPYING, P.DRAINING})
"""The phases in which batches are appended."""

RESETS_APPENDS = frozenset({H.QUARANTINED, H.LEAVE, H.REST, H.FAILED, H.ROUND_REFUSED, H.DRAINED, H.DRAINED_REFUSED})
"""The events after which the partition does not send what it still holds."""

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
