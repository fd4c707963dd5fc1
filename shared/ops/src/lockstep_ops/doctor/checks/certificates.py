"""Checks of TLS: stores, handshakes, chains, names, and the days until certificates end. Pure."""

from collections.abc import Collection, Iterator, Sequence

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access_facts import AccessFacts, ServedCertificate, TlsFault
from lockstep_ops.doctor.checks.check import SHOWN, CheckFinding, DoctorCheck
from lockstep_ops.formatting import count_text, shorten

WARNING_DAYS = 30
DAY_S = 86_400.0

KEYSTORE, TRUSTSTORE = "keystore", "truststore"
"""Uses of `StoreEnd`, as `certificate_expiry` names them."""


def judge_tls(facts: AccessFacts, now_s: float) -> Iterator[CheckFinding]:
    """Yield one finding for each check, about all ports that were tried.

    Without TLS there is only the finding that it was skipped.
    """
    if not facts.has_tls:
        yield registry.TLS_SPOKEN.skipped(facts.alias, f"security.protocol is {facts.protocol}, so there is no TLS")
        return
    if facts.store_trouble:
        yield registry.STORES.failed(facts.alias, facts.store_trouble, is_fatal=True)
        return
    yield registry.STORES.ok(facts.alias, _stores(facts))
    served = facts.certificates
    yield _spoken(facts.alias, served)
    if without_tls := _with_fault(served, {TlsFault.PROTOCOL}):
        served = tuple(certificate for certificate in served if certificate not in without_tls)
        if not served:
            return
    yield _broker_days(facts.alias, served, now_s)
    yield _verified(registry.CHAIN, facts.alias, served, {TlsFault.CHAIN})
    yield _named(facts, served)
    yield from _own_days(facts, now_s)


def _stores(facts: AccessFacts) -> str:
    uses = {store_end.use for store_end in facts.store_ends}
    trusted = "the truststore" if TRUSTSTORE in uses else "no truststore, so the system's authorities count"
    own = "the keystore can be read" if KEYSTORE in uses else "there is no client certificate"
    return f"{trusted} can be read; {own}" if TRUSTSTORE in uses else f"{trusted}; {own}"


def _with_fault(served: Sequence[ServedCertificate], faults: Collection[TlsFault]) -> list[ServedCertificate]:
    return [certificate for certificate in served if certificate.fault in faults]


def _places(served: Sequence[ServedCertificate]) -> str:
    return shorten([certificate.place for certificate in served], SHOWN, "; ")


def _spoken(alias: str, served: Sequence[ServedCertificate]) -> CheckFinding:
    without_tls = _with_fault(served, {TlsFault.PROTOCOL})
    if not without_tls:
        return registry.TLS_SPOKEN.ok(alias, f"at {_places(served)}")
    text = shorten([f"{certificate.place}: {certificate.reason}" for certificate in without_tls], SHOWN, "; ")
    return registry.TLS_SPOKEN.failed(alias, text, is_fatal=len(without_tls) == len(served))


def _broker_days(alias: str, served: Sequence[ServedCertificate], now_s: float) -> CheckFinding:
    check = registry.BROKER_CERTIFICATE
    if early := _with_fault(served, {TlsFault.NOT_YET}):
        text = f"not valid yet at {_places(early)}"
        fix = "Check the clocks of both hosts."
        return check.failed(alias, text, fix, is_fatal=len(early) == len(served))
    dated = sorted((seen.ends_s, seen.place, seen.subject) for seen in served if seen.ends_s is not None)
    if not dated:
        return check.unknown(alias, "no certificate was seen")
    ends_s, place, subject = dated[0]
    expired = sum(end_s <= now_s for end_s, *_ in dated)
    if expired:
        text = f"{_days(ends_s, now_s)}: {subject} at {place}"
        if expired > 1:
            text += f", and at {expired - 1} more"
        return check.failed(alias, text, is_fatal=expired == len(served))
    return _judge_end(check, alias, ends_s, now_s, f"{subject} at {place}")


def _verified(
    check: DoctorCheck, alias: str, served: Sequence[ServedCertificate], faults: Collection[TlsFault]
) -> CheckFinding:
    faulty = _with_fault(served, faults)
    if faulty:
        texts = [f"{certificate.place}: {certificate.reason} ({certificate.subject})" for certificate in faulty]
        return check.failed(alias, shorten(texts, SHOWN, "; "), is_fatal=len(faulty) == len(served))
    valid = [certificate for certificate in served if certificate.fault in (TlsFault.NONE, TlsFault.NAME)]
    return check.ok(alias, f"{count_text(len(valid), 'certificate')} verified")


def _named(facts: AccessFacts, served: Sequence[ServedCertificate]) -> CheckFinding:
    check = registry.CERTIFICATE_NAME
    if not facts.checks_name:
        text = "names are not checked: ssl.endpoint.identification.algorithm is empty"
        return check.warning(facts.alias, text, "Remove that line, or set it to https.")
    misnamed = _with_fault(served, {TlsFault.NAME})
    if misnamed:
        texts = [
            f"{certificate.host} is not among {', '.join(certificate.names) or 'no names at all'} ({certificate.place})"
            for certificate in misnamed
        ]
        return check.failed(facts.alias, shorten(texts, SHOWN, "; "), is_fatal=len(misnamed) == len(served))
    hosts = dict.fromkeys(certificate.host for certificate in served if certificate.fault is TlsFault.NONE)
    return check.ok(facts.alias, shorten(hosts, SHOWN, "; "))


def _own_days(facts: AccessFacts, now_s: float) -> Iterator[CheckFinding]:
    for check, use in ((registry.OWN_CERTIFICATE, KEYSTORE), (registry.TRUSTED_CERTIFICATES, TRUSTSTORE)):
        for end in facts.store_ends:
            if end.use == use:
                yield _judge_end(check, facts.alias, end.ends_s, now_s, f"the {use}")


def _judge_end(check: DoctorCheck, alias: str, ends_s: float, now_s: float, owner: str) -> CheckFinding:
    text = f"{_days(ends_s, now_s)}: {owner}"
    if ends_s <= now_s:
        return check.failed(alias, text)
    return check.warning(alias, text) if ends_s - now_s < WARNING_DAYS * DAY_S else check.ok(alias, text)


def _days(ends_s: float, now_s: float) -> str:
    days = int(abs(ends_s - now_s) // DAY_S)
    if ends_s > now_s:
        return f"{count_text(days, 'day')} left"
    return "ended today" if days == 0 else f"ended {count_text(days, 'day')} ago"
