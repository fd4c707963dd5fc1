"""What is to be done after a partition's step (no I/O, no clock). `SlotLoop.apply_effects` carries it out."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_data_plane.core.append_sequence import Ack, InFlightBatch
from lockstep_state.reasons.reason import Reason


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch the source from this upstream offset on, until `StopFetching`."""

    offset: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Fetch the source no more."""


@dataclass(frozen=True, slots=True)
class OfferAppends:
    """Let the connections that take the partition's batches ask for the next one (`ConnectionReady`): some wait."""


@dataclass(frozen=True, slots=True)
class Append:
    """Append this batch now. `has_more`: the same connection may ask for the next one at once."""

    batch: InFlightBatch
    has_more: bool


@dataclass(frozen=True, slots=True)
class JoinTransaction:
    """Tell the transaction's coordinator of these partitions of the target before anything is appended there."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the partition's row at the next flush, for it may say something new. `acks` are durable now, and visible
    to readers of committed records: offset syncs may be due for them."""

    acks: Sequence[Ack] = ()


@dataclass(frozen=True, slots=True)
class CopyTrouble:
    """Report that the partition does not get on."""

    why: str | Exception


@dataclass(frozen=True, slots=True)
class Halted:
    """Report that the partition waits for a decision."""

    cause: Reason
    upstream: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Report that so many records were appended after the last progress written, which names `upstream`."""

    records: int
    upstream: int


@dataclass(frozen=True, slots=True)
class ForeignRecords:
    """Report that somebody else has written records into the target's log before this one of ours."""

    ack: Ack


@dataclass(frozen=True, slots=True)
class TimesReplaced:
    """Report that the target puts its own time in place of the records'. It comes once."""

    downstream: int


Report = CopyTrouble | Halted | Recovered | ForeignRecords | TimesReplaced
"""An event for operators, or a trouble (`progress/event_reporter.py`)."""

Effect = Fetch | StopFetching | OfferAppends | Append | JoinTransaction | Persist | Report

Effects = tuple[Effect, ...]

STOP_FETCHING, OFFER_APPENDS, PERSIST = StopFetching(), OfferAppends(), Persist()

PERSISTS: Effects = (PERSIST,)
OFFERS: Effects = (OFFER_APPENDS,)
FETCHED: Effects = (OFFER_APPENDS, PERSIST)
"""Nearly every step has effects of these few. Making them for each step costs as much as the rest of it."""
