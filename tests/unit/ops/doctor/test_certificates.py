"""doctor's checks of TLS."""

from dataclasses import replace

import pytest

from lockstep_ops.doctor.checks.access_facts import AccessFacts, ServedCertificate, StoreEnd, TlsFault
from lockstep_ops.doctor.checks.certificates import DAY_S, judge_tls
from lockstep_ops.doctor.checks.check import CheckFinding, Result

NOW = 1_800_000_000.0
SERVED = ServedCertificate("a1", 9093, subject="CN=a1", names=("a1",), ends_s=NOW + 100 * DAY_S)
FACTS = AccessFacts("A", "SSL", store_ends=(StoreEnd("truststore", NOW + 400 * DAY_S),), certificates=(SERVED,))


def judged(*served: ServedCertificate, **changed: object) -> dict[str, CheckFinding]:
    facts = replace(FACTS, certificates=served or FACTS.certificates, **changed)  # type: ignore[arg-type]  # fields
    return {finding.check.code: finding for finding in judge_tls(facts, NOW)}


def faulty(fault: TlsFault, **changed: object) -> ServedCertificate:
    return replace(SERVED, fault=fault, reason="as OpenSSL says", **changed)  # type: ignore[arg-type]  # fields


def test_plaintext_has_one_line_that_is_skipped() -> None:
    (finding,) = judged(protocol="SASL_PLAINTEXT").values()
    assert (finding.result, finding.detail) == (
        Result.SKIPPED,
        "security.protocol is SASL_PLAINTEXT, so there is no TLS",
    )


def test_good_certificate_is_ok_in_every_line() -> None:
    findings = judged()
    assert list(findings) == ["LD401", "LD402", "LD403", "LD404", "LD405", "LD407"]
    assert {finding.result for finding in findings.values()} == {Result.OK}
    assert findings["LD403"].detail == "100 days left: CN=a1 at a1:9093"


def test_stores_that_cannot_be_read_are_fatal() -> None:
    (finding,) = judged(store_trouble="a.jks: wrong password").values()
    assert (finding.check.code, finding.result, finding.is_fatal) == ("LD401", Result.FAILED, True)


def test_port_without_tls_is_fatal_where_there_is_no_other() -> None:
    findings = judged(faulty(TlsFault.PROTOCOL))
    assert list(findings) == ["LD401", "LD402"]
    assert findings["LD402"].is_fatal
    more = judged(faulty(TlsFault.PROTOCOL), replace(SERVED, host="a2"))
    assert (more["LD402"].result, more["LD402"].is_fatal) == (Result.FAILED, False)
    assert more["LD404"].result is Result.OK


@pytest.mark.parametrize(
    ("days", "result", "words"),
    [
        (31, Result.OK, "31 days left"),
        (29.5, Result.WARNING, "29 days left"),
        (0.5, Result.WARNING, "0 days left"),
        (-0.5, Result.FAILED, "ended today"),
        (-3, Result.FAILED, "ended 3 days ago"),
    ],
)
def test_days_left_decide_on_the_brokers_certificate(days: float, result: Result, words: str) -> None:
    ends = NOW + days * DAY_S
    fault = TlsFault.NONE if days > 0 else TlsFault.EXPIRED
    finding = judged(replace(SERVED, fault=fault, ends_s=ends))["LD403"]
    assert finding.result is result
    assert finding.detail.startswith(words)
    assert finding.is_fatal is (days < 0)


def test_first_of_several_certificates_to_end_is_named() -> None:
    soon = replace(SERVED, host="a2", subject="CN=a2", ends_s=NOW + 5.5 * DAY_S)
    assert judged(SERVED, soon)["LD403"].detail == "5 days left: CN=a2 at a2:9093"


ENDED = replace(faulty(TlsFault.EXPIRED), host="a2", ends_s=NOW - DAY_S)


@pytest.mark.parametrize(
    ("served", "code", "is_fatal", "words"),
    [
        ((SERVED, ENDED), "LD403", False, "ended 1 day"),
        ((faulty(TlsFault.NOT_YET),), "LD403", True, "Check the clocks of both hosts."),
        ((faulty(TlsFault.CHAIN),), "LD404", True, "a1:9093: as OpenSSL says (CN=a1)"),
        ((faulty(TlsFault.NAME, names=("b", "c")),), "LD405", True, "a1 is not among b, c (a1:9093)"),
    ],
)
def test_faulty_certificate_fails_its_line(
    served: tuple[ServedCertificate, ...], code: str, is_fatal: bool, words: str
) -> None:
    finding = judged(*served)[code]
    assert (finding.result, finding.is_fatal) == (Result.FAILED, is_fatal)
    assert words in (finding.detail, finding.fix) or finding.detail.startswith(words)


def test_names_that_are_not_checked_are_a_warning() -> None:
    assert judged(checks_name=False)["LD405"].result is Result.WARNING


def test_own_certificate_that_ends_soon_is_a_warning() -> None:
    ends = (StoreEnd("keystore", NOW + 2.5 * DAY_S), StoreEnd("truststore", NOW - DAY_S))
    findings = judged(store_ends=ends)
    assert (findings["LD406"].result, findings["LD406"].detail) == (Result.WARNING, "2 days left: the keystore")
    assert findings["LD407"].result is Result.FAILED
