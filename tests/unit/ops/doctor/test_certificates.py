"""What is said of TLS."""

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
    return {one.check.code: one for one in judge_tls(facts, NOW)}


def faulty(fault: TlsFault, **changed: object) -> ServedCertificate:
    return replace(SERVED, fault=fault, why="as OpenSSL says", **changed)  # type: ignore[arg-type]  # fields


def test_plaintext_has_one_line_that_is_skipped() -> None:
    (one,) = judged(protocol="SASL_PLAINTEXT").values()
    assert (one.result, one.detail) == (Result.SKIPPED, "security.protocol is SASL_PLAINTEXT, so there is no TLS")


def test_good_certificate_is_ok_in_every_line() -> None:
    found = judged()
    assert list(found) == ["LD401", "LD402", "LD403", "LD404", "LD405", "LD407"]
    assert {one.result for one in found.values()} == {Result.OK}
    assert found["LD403"].detail == "100 days left: CN=a1 at a1:9093"


def test_stores_that_cannot_be_read_are_fatal() -> None:
    (one,) = judged(store_trouble="a.jks: wrong password").values()
    assert (one.check.code, one.result, one.is_fatal) == ("LD401", Result.FAILED, True)


def test_port_without_tls_is_fatal_where_there_is_no_other() -> None:
    found = judged(faulty(TlsFault.PROTOCOL))
    assert list(found) == ["LD401", "LD402"]
    assert found["LD402"].is_fatal
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
    one = judged(replace(SERVED, fault=fault, ends_s=ends))["LD403"]
    assert one.result is result
    assert one.detail.startswith(words)
    assert one.is_fatal is (days < 0)


def test_first_of_several_certificates_to_end_is_named() -> None:
    soon = replace(SERVED, host="a2", subject="CN=a2", ends_s=NOW + 5.5 * DAY_S)
    assert judged(SERVED, soon)["LD403"].detail == "5 days left: CN=a2 at a2:9093"


def test_one_ended_certificate_of_two_is_no_fatal_failure() -> None:
    ended = replace(faulty(TlsFault.EXPIRED), host="a2", ends_s=NOW - DAY_S)
    one = judged(SERVED, ended)["LD403"]
    assert (one.result, one.is_fatal) == (Result.FAILED, False)


def test_certificate_that_is_not_valid_yet_points_to_the_clocks() -> None:
    one = judged(faulty(TlsFault.NOT_YET))["LD403"]
    assert (one.result, one.is_fatal, one.fix) == (Result.FAILED, True, "Check the clocks of both hosts.")


def test_chain_that_is_not_trusted_is_fatal() -> None:
    one = judged(faulty(TlsFault.CHAIN))["LD404"]
    assert (one.result, one.is_fatal) == (Result.FAILED, True)
    assert one.detail == "a1:9093: as OpenSSL says (CN=a1)"


def test_wrong_name_has_the_names_of_the_certificate() -> None:
    one = judged(faulty(TlsFault.NAME, names=("b", "c")))["LD405"]
    assert (one.result, one.is_fatal) == (Result.FAILED, True)
    assert one.detail == "a1 is not among b, c (a1:9093)"


def test_names_that_are_not_checked_are_a_warning() -> None:
    assert judged(checks_name=False)["LD405"].result is Result.WARNING


def test_own_certificate_that_ends_soon_is_a_warning() -> None:
    ends = (StoreEnd("keystore", NOW + 2.5 * DAY_S), StoreEnd("truststore", NOW - DAY_S))
    found = judged(store_ends=ends)
    assert (found["LD406"].result, found["LD406"].detail) == (Result.WARNING, "2 days left: the keystore")
    assert found["LD407"].result is Result.FAILED
