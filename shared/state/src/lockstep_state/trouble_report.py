"""The report of what fails in a replica of a service now.

It is an event, so that it can be read even if the state topic is missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_state.events import Event
from lockstep_state.reasons.reason import Reason

TROUBLES_REPORTED = "TroublesReported"

LONGEST_VALID_MS = 25 * 60_000
"""The longest time for which a report counts. A reader goes back no further than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleReport:
    """The report of one replica about itself. Its next report replaces it, and without one it expires."""

    service: str
    instance: str
    troubles: tuple[tuple[str, Reason], ...] = ()
    """The parts that fail, with the reason; none: all that failed before works."""
    unreadable: tuple[tuple[str, int], ...] = ()
    """Topics with the number of their records that were passed over since the replica began."""
    valid_ms: int
    """The time after its record's timestamp for which the report counts."""

    def detail(self) -> dict[str, Any]:
        """Return the detail of the event."""
        return {
            "troubles": [{"what": part, **reason.to_json()} for part, reason in self.troubles],
            "unreadable": dict(self.unreadable),
            "valid_ms": self.valid_ms,
        }

    @classmethod
    def from_event(cls, event: Event) -> "TroubleReport":
        """Return the report in an event of the kind `TROUBLES_REPORTED`.

        Raises ValueError if its detail is no report.
        """
        troubles, unreadable = event.detail.get("troubles", []), event.detail.get("unreadable", {})
        valid_ms = event.detail.get("valid_ms")
        if not isinstance(troubles, list) or not isinstance(unreadable, Mapping) or type(valid_ms) is not int:
            raise ValueError(f"not a report of troubles: {event.detail!r}")
        if any(type(count) is not int for count in unreadable.values()):
            raise ValueError(f"not a report of troubles: counts are integers, there is {unreadable!r}")
        return cls(
            service=event.service,
            instance=event.instance,
            troubles=tuple(_read_trouble(trouble) for trouble in troubles),
            unreadable=tuple(sorted(unreadable.items())),
            valid_ms=min(max(0, valid_ms), LONGEST_VALID_MS),
        )


def present_reports(reports: Iterable[tuple[int, TroubleReport]], now_ms: int) -> list[TroubleReport]:
    """Return the last report of each replica, if it still counts.

    Args:
        reports: Timestamps of records in Unix milliseconds, and the reports in them, in the order of the log.
        now_ms: The present time in Unix milliseconds.
    """
    latest = {(report.service, report.instance): (said_ms, report) for said_ms, report in reports}
    return [report for _, (said_ms, report) in sorted(latest.items()) if now_ms - said_ms <= report.valid_ms]


def _read_trouble(trouble: object) -> tuple[str, Reason]:
    if not isinstance(trouble, Mapping) or not isinstance(part := trouble.get("what"), str):
        raise ValueError(f"not a trouble: an object with what and code is expected, there is {trouble!r}")
    return part, Reason.from_json(trouble)
