"""Trouble reports of replicas: written, read, expired, replaced."""

from typing import Any

import pytest

from lockstep_state.events import Event, decode_event
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.trouble_report import LONGEST_VALID_MS, TROUBLES_REPORTED, TroubleReport, present_reports

REFUSED = ReasonCode.REQUEST_REFUSED.to_reason(cluster="B", error=17, text="cluster B refused to create it")


def report(instance: str = "a", *, valid_ms: int = 1000, fails: bool = True) -> TroubleReport:
    troubles = (("target", REFUSED),) if fails else ()
    return TroubleReport(service="heartbeat", instance=instance, troubles=troubles, valid_ms=valid_ms)


def event(detail: dict[str, Any]) -> Event:
    return Event(kind=TROUBLES_REPORTED, service="heartbeat", flow="A->B", instance="a", detail=detail)


def test_report_read_from_its_event_is_the_same() -> None:
    written = TroubleReport(
        service="heartbeat", instance="a", troubles=(("target", REFUSED),), unreadable=(("t", 3),), valid_ms=1000
    )
    assert TroubleReport.from_event(decode_event(event(written.detail()).encode()[1])) == written


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"valid_ms": True},
        {"valid_ms": "9"},
        {"valid_ms": 9, "troubles": {}},
        {"valid_ms": 9, "troubles": ["x"]},
        {"valid_ms": 9, "troubles": [{"what": 1, "code": "x"}]},
        {"valid_ms": 9, "troubles": [{"what": "x", "code": None}]},
        {"valid_ms": 9, "unreadable": []},
        {"valid_ms": 9, "unreadable": {"t": "3"}},
    ],
)
def test_report_with_a_wrong_type_is_a_value_error(detail: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a"):
        TroubleReport.from_event(event(detail))


def test_report_is_never_valid_for_longer_than_readers_look_back() -> None:
    assert TroubleReport.from_event(event({"valid_ms": 10**12})).valid_ms == LONGEST_VALID_MS


def test_report_of_a_replica_replaces_its_earlier_one() -> None:
    assert present_reports([(0, report()), (1, report(fails=False))], 2) == [report(fails=False)]
    assert present_reports([(0, report("a")), (1, report("b"))], 2) == [report("a"), report("b")]


def test_report_expires_with_its_validity() -> None:
    assert present_reports([(0, report())], 1000) == [report()]
    assert present_reports([(0, report())], 1001) == []
