"""doctor's checks of names, connections and the login."""

from dataclasses import replace

import pytest

from lockstep_ops.doctor.checks.access import judge_connection, judge_login, judge_names
from lockstep_ops.doctor.checks.access_facts import (
    AccessFacts,
    AddressConnection,
    BrokerFacts,
    HostAddresses,
    LoginOutcome,
)
from lockstep_ops.doctor.checks.check import SHOWN, CheckFinding, Result
from lockstep_ops.doctor.connection_examination import ConnectionExamination
from lockstep_ops.formatting import shorten
from lockstep_state.opening_step import OpeningStep

FACTS = AccessFacts("A", "SASL_PLAINTEXT")
LOGIN = LoginOutcome("a:9092", "SASL_PLAINTEXT", "SCRAM-SHA-512", "User:mirror", OpeningStep.OPEN)


def hosts(*addresses: HostAddresses) -> list[CheckFinding]:
    return list(judge_names(replace(FACTS, hosts=addresses)))


def connections(*opened: AddressConnection, brokers: tuple[BrokerFacts, ...] = ()) -> list[CheckFinding]:
    return list(judge_connection(replace(FACTS, connections=opened, brokers=brokers)))


def login(outcome: LoginOutcome) -> list[CheckFinding]:
    return list(judge_login(replace(FACTS, login=outcome)))


@pytest.mark.parametrize(
    ("host", "detail"),
    [
        (
            HostAddresses("a", 9092, ("10.0.0.1", "10.0.0.2", "2001:db8::1")),
            "a is 10.0.0.1, 10.0.0.2, 2001:db8::1 (1 IPv6 address, 2 IPv4 addresses)",
        ),
        (HostAddresses("10.0.0.1", 9092, ("10.0.0.1",), is_literal=True), "10.0.0.1 is an address"),
    ],
)
def test_name_has_every_address_with_its_kind(host: HostAddresses, detail: str) -> None:
    (finding,) = hosts(host)
    assert (finding.result, finding.detail) == (Result.OK, detail)


def test_one_name_of_two_without_an_address_is_a_warning() -> None:
    bad, good = hosts(HostAddresses("x", 9092, reason="Name or service not known"), HostAddresses("a", 9092, ("::1",)))
    assert (bad.result, good.result) == (Result.WARNING, Result.OK)
    assert bad.detail == "x cannot be resolved: Name or service not known. Other bootstrap servers can be"


def test_no_name_with_an_address_is_fatal_after_the_last() -> None:
    first, last = hosts(HostAddresses("x", 9092, reason="no"), HostAddresses("y", 9092, reason="no"))
    assert (first.result, last.result) == (Result.FAILED, Result.FAILED)
    assert (first.is_fatal, last.is_fatal) == (False, True)


def test_port_that_is_closed_at_one_address_is_a_warning() -> None:
    findings = connections(AddressConnection("a", "10.0.0.1", 9092), AddressConnection("a", "::1", 9092, "refused"))
    assert findings[0].result is Result.WARNING
    assert findings[0].detail == "a:9092: ::1: refused. 1 of its addresses work"


def test_port_that_is_closed_everywhere_is_fatal() -> None:
    findings = connections(
        AddressConnection("a", "10.0.0.1", 9092, "refused"), AddressConnection("b", "b", 1, "refused")
    )
    assert [(finding.result, finding.is_fatal) for finding in findings] == [
        (Result.FAILED, False),
        (Result.FAILED, True),
    ]


def test_bootstrap_server_that_is_away_beside_another_is_a_warning() -> None:
    findings = connections(
        AddressConnection("a", "10.0.0.1", 9092, "refused"), AddressConnection("b", "10.0.0.2", 9092)
    )
    assert findings[0].result is Result.WARNING
    assert findings[0].detail.endswith("Other bootstrap servers accept connections")
    assert findings[1].result is Result.OK


def test_advertised_listener_that_is_away_fails_and_is_named() -> None:
    brokers = (BrokerFacts(1, "a1", 9092), BrokerFacts(2, "a2", 9092, "connection refused"))
    last = connections(AddressConnection("a", "10.0.0.1", 9092), brokers=brokers)[-1]
    assert (last.check.code, last.result, last.is_fatal) == ("LD302", Result.FAILED, False)
    assert last.detail == "1 broker of 2 cannot be reached: broker 2 at a2:9092 (connection refused)"


def test_advertised_listeners_are_not_known_before_the_login() -> None:
    last = connections(AddressConnection("a", "10.0.0.1", 9092))[-1]
    assert last.result is Result.UNKNOWN
    assert last.detail.endswith("they are known after the login")


@pytest.mark.parametrize(
    ("changed", "codes", "words"),
    [
        ({}, "LD501 LD503 LD504", "the broker lets in User:mirror"),
        ({"step": OpeningStep.VERSIONS, "reason": "one side speaks TLS"}, "LD501", "a:9092: one side speaks TLS"),
        ({"is_broker": False}, "LD501", "is a KRaft controller's address"),
        (
            {"step": OpeningStep.MECHANISM, "offered": ("PLAIN", "OAUTHBEARER")},
            "LD501 LD503",
            "SCRAM-SHA-512 is not offered; the broker offers PLAIN, OAUTHBEARER",
        ),
        ({"step": OpeningStep.MECHANISM, "reason": "closed"}, "LD501 LD503", "SCRAM-SHA-512: closed"),
        ({"step": OpeningStep.CREDENTIALS, "reason": "refused"}, "LD501 LD503 LD504", "refused"),
        ({"step": OpeningStep.TOKEN, "reason": "no answer", "has_tokens": True}, "LD501 LD502", "no answer"),
        ({"has_tokens": True}, "LD501 LD502 LD503 LD504", "the broker lets in"),
        ({"mechanism": "", "login": "", "protocol": "PLAINTEXT"}, "LD501 LD504", "no SASL login is configured"),
        ({"mechanism": "", "login": "User:CN=m", "protocol": "SSL"}, "LD501 LD504", "brokers know us as User:CN=m"),
    ],
)
def test_login_ends_at_the_step_that_failed(changed: dict[str, object], codes: str, words: str) -> None:
    findings = login(replace(LOGIN, **changed))  # type: ignore[arg-type]  # names are fields
    assert " ".join(finding.check.code for finding in findings) == codes
    assert words in findings[-1].detail
    assert all(finding.result is Result.OK for finding in findings[:-1])
    is_open = changed.get("step", OpeningStep.OPEN) is OpeningStep.OPEN and changed.get("is_broker", True)
    assert findings[-1].is_fatal is not is_open


def test_long_lists_name_three_and_count_the_others() -> None:
    assert shorten("abc", SHOWN, "; ") == "a; b; c"
    assert shorten("abcde", SHOWN, "; ") == "a; b; c and 2 more"


@pytest.mark.parametrize(("server", "has_address"), [("127.0.0.1:1", True), ("name:1", False)])
async def test_examination_that_did_not_end_ends_the_checks_of_its_cluster(server: str, has_address: bool) -> None:
    examination = ConnectionExamination("A", {"bootstrap.servers": server}, 1.0)
    if has_address:
        await examination.resolve()
    examination.give_up("no answer within 1 s")
    (finding,) = (judge_connection if has_address else judge_names)(examination.facts)
    assert (finding.is_fatal, finding.probe_exit) == (True, 3)
    assert "no answer within 1 s" in finding.detail
