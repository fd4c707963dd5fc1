"""The effects of a partition's step: what is to be done after it (no I/O, no clock).

`SlotLoop.apply_effects` carries them out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_data_plane.core.append_sequence import Ack, InFlightBatch
from lockstep_state.reasons.reason import Reason


@dataclass(frozen=True, slots=True)
class Fetch:
    """The instruction to fetch the source from this upstream offset on, until `StopFetching`."""

    offset: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """The instruction to fetch the source no more."""


@dataclass(frozen=True, slots=True)
class OfferAppends:
    """The instruction to let the partition's connections ask for the next batch (`ConnectionReady`)."""


@dataclass(frozen=True, slots=True)
class Append:
    """The instruction to append this batch now.

    If `has_more`, the same connection may ask for the next batch at once.
    """

    batch: InFlightBatch
    has_more: bool


@dataclass(frozen=True, slots=True)
class JoinTransaction:
    """The instruction to add these partitions of the target to the transaction, before anything is appended to them."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Persist:
    """The instruction to write the partition's row at the next flush, because it may say something new.

    `acks` are durable now, and visible to readers of committed records. Offset syncs may be due for them.
    """

    acks: Sequence[Ack] = ()


@dataclass(frozen=True, slots=True)
class CopyTrouble:
    """The report that the copy of the partition has failed for now."""

    error: str | Exception


@dataclass(frozen=True, slots=True)
class Halted:
    """The report that the partition waits for an operator's decision.

    `upstream` is the last upstream offset that is on the target or needs no copy.
    """

    cause: Reason
    upstream: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The report that so many records were appended behind the last written progress, which names `upstream`."""

    records: int
    upstream: int


@dataclass(frozen=True, slots=True)
class ForeignRecords:
    """The report that another writer has appended records to the target's log before this batch of ours."""

    ack: Ack


@dataclass(frozen=True, slots=True)
class TimesReplaced:
    """The report that the target replaces the timestamps of the records by its own time. It comes once."""

    downstream: int


Report = CopyTrouble | Halted | Recovered | ForeignRecords | TimesReplaced
"""A report that becomes an event for operators, or a trouble (`progress/event_reporter.py`)."""

Effect = Fetch | StopFetching | OfferAppends | Append | JoinTransaction | Persist | Report

Effects = tuple[Effect, ...]

STOP_FETCHING, OFFER_APPENDS, PERSIST = StopFetching(), OfferAppends(), Persist()

PERSISTS: Effects = (PERSIST,)
OFFERS: Effects = (OFFER_APPENDS,)
FETCHED: Effects = (OFFER_APPENDS, PERSIST)
"""The effects of a step that has fetched batches. Nearly every step has one of these constants: to make new effects for
each step would cost as much as the rest of it.
"""
