"""Every kind of finding, reason, event and error, by its code (no I/O, no clock)."""

import difflib
import logging
import re

from lockstep_ops.doctor.checks.registry import CHECKS
from lockstep_ops.findings.alerts import ALERTS
from lockstep_ops.findings.finding_kind import FindingKind
from lockstep_ops.findings.halt_cases import HALT_CASES
from lockstep_ops.plan.rules.hazards import HAZARDS
from lockstep_state.event_kinds import EVENT_KINDS
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode
from lockstep_state.reasons.reason_catalogue import ReasonCode, RefusalCode
from lockstep_state.reasons.reason_code import CatalogueCode
from lockstep_state.reasons.switch_reason import SwitchReason
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason, RecordPart

_DETAIL = re.compile(r"\{(\w+)[^}]*\}")


class SwitchReasonKind(FindingKind):
    """A reason that prevents a switch."""

    FAMILY = "reason why clients cannot move to the target"
    PAGE = "docs/reference/switch.md"


class DifferenceEntry(FindingKind):
    """A difference between a copy and its source."""

    FAMILY = "difference that lockstep verify finds"
    PAGE = "docs/guides/verify.md"
    SECTION = "what-can-be-found"


class NotComparedEntry(FindingKind):
    """A reason why records are not compared."""

    FAMILY = "reason why lockstep verify does not compare records"
    PAGE = "docs/guides/verify.md"
    SECTION = "what-is-not-verified"


class ReasonKind(FindingKind):
    """A reason of rows, events, answers and `lockstep status`."""

    FAMILY = "reason in lockstep status, rows and events"
    PAGE = "docs/troubleshoot/README.md"
    SECTION = ""


class RefusalKind(ReasonKind):
    """A reason why a command does not begin."""

    FAMILY = "reason why a switch, a take-over or a hand-back is refused"


class EventEntry(FindingKind):
    """A kind of event."""

    FAMILY = "event"
    PAGE = "docs/reference/events.md"
    SECTION = ""


class KafkaErrorKind(ReasonKind):
    """An error code of Kafka that Lockstep handles by itself."""

    FAMILY = "error of Kafka's protocol"


DIFFERENCE_FIX = "See [the alert](../troubleshoot/alerts.md#lockstep-verify-differences)."

KAFKA_MEANINGS = {
    ErrorMeaning.RETRIABLE: "The cluster is between two states. Lockstep sends the same request again.",
    ErrorMeaning.UNREACHABLE: "The broker does not serve the connection. Lockstep connects again.",
    ErrorMeaning.DENIED: "A permission is missing.",
    ErrorMeaning.STALE: "What Lockstep knows of the log, its leader or its producer is out of date. It looks again.",
    ErrorMeaning.TOO_LARGE: "A smaller batch may pass.",
    ErrorMeaning.REFUSED: "The broker never accepts this data.",
    ErrorMeaning.OTHER: "What it means depends on the request.",
}
KAFKA_FIXES = {
    ErrorMeaning.UNREACHABLE: "If it stays: [connect](login-and-rights.md#connect).",
    ErrorMeaning.DENIED: "[A right is missing](login-and-rights.md#a-right-is-missing).",
    ErrorMeaning.TOO_LARGE: "If a partition halts: [the case `refused`](halted-partition.md#the-case-refused).",
    ErrorMeaning.REFUSED: "If a partition halts: [the case `refused`](halted-partition.md#the-case-refused).",
}


def _reason(kind: type[ReasonKind], code: CatalogueCode) -> ReasonKind:
    title = _DETAIL.sub(lambda detail: f"<{detail[1].upper()}>", code.sentence)
    return kind(code.value, title, code.meaning, code.fix)


def _differences() -> tuple[FindingKind, ...]:
    parts = tuple(
        DifferenceEntry(part.value, f"the {part.value} of a record differs", "", DIFFERENCE_FIX) for part in RecordPart
    )
    kinds = tuple(DifferenceEntry(kind.value, kind.meaning, "", DIFFERENCE_FIX) for kind in DifferenceKind)
    return kinds + parts


CATALOGUES: tuple[tuple[FindingKind, ...], ...] = (
    CHECKS,
    HAZARDS,
    ALERTS,
    HALT_CASES,
    tuple(SwitchReasonKind(reason.word, reason.meaning, "", reason.remedy) for reason in SwitchReason),
    _differences(),
    tuple(NotComparedEntry(reason.value, reason.meaning, "", "") for reason in NotComparedReason),
    tuple(_reason(ReasonKind, code) for code in ReasonCode),
    tuple(_reason(RefusalKind, code) for code in RefusalCode),
    tuple(
        EventEntry(kind.name, kind.meaning, "", "", "warning" if kind.level >= logging.WARNING else "")
        for kind in EVENT_KINDS.values()
    ),
    tuple(
        KafkaErrorKind(
            error.name, error.sentence or error.name, KAFKA_MEANINGS[error.meaning], KAFKA_FIXES.get(error.meaning, "")
        )
        for error in KafkaErrorCode
        if error is not KafkaErrorCode.NONE
    ),
)
"""Each kind of entry. Two kinds may have the same code."""

FINDINGS: tuple[FindingKind, ...] = tuple(kind for kinds in CATALOGUES for kind in kinds)


def find(code: str) -> tuple[FindingKind, ...]:
    """Return every entry of this code, in capital letters or not."""
    return tuple(kind for kind in FINDINGS if kind.code.casefold() == code.casefold())


def nearest(code: str) -> tuple[str, ...]:
    """Return the codes that look most like this one, the nearest first."""
    by_key = {kind.code.casefold(): kind.code for kind in FINDINGS}
    return tuple(by_key[key] for key in difflib.get_close_matches(code.casefold(), by_key, 3, 0.6))
