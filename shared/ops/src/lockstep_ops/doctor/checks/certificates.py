"""Checks of TLS: stores, handshakes, chains, names, and the days until certificates end. Pure."""

from collections.abc import Collection, Iterator, Sequence

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access import listed
from lockstep_ops.doctor.checks.access_facts import AccessFacts, ServedCertificate, TlsFault
from lockstep_ops.doctor.checks.check import CheckFinding, DoctorCheck
from lockstep_ops.formatting import count_text

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
    if bad := _with(served, {TlsFault.PROTOCOL}):
        served = tuple(one for one in served if one not in bad)
        if not served:
            return
    yield _broker_days(facts.alias, served, now_s)
    yield _verified(registry.CHAIN, facts.alias, served, {TlsFault.CHAIN})
    yield _named(facts, served)
    yield from _own_days(facts, now_s)


def _stores(facts: AccessFacts) -> str:
    uses = {one.use for one in facts.store_ends}
    trusted = "the truststore" if TRUSTSTORE in uses else "no truststore, so the system's authorities count"
    own = "the keystore can be read" if KEYSTORE in uses else "there is no client certificate"
    return f"{trusted} can be read; {own}" if TRUSTSTORE in uses else f"{trusted}; {own}"


def _with(served: Sequence[ServedCertificate], faults: Collection[TlsFault]) -> list[ServedCertificate]:
    return [one for one in served if one.fault in faults]


def _spoken(alias: str, served: Sequence[ServedCertificate]) -> CheckFinding:
    bad = _with(served, {TlsFault.PROTOCOL})
    if not bad:
        return registry.TLS_SPOKEN.ok(alias, f"at {listed(one.place for one in served)}")
    text = listed(f"{one.place}: {one.why}" for one in bad)
    return registry.TLS_SPOKEN.failed(alias, text, is_fatal=len(bad) == len(served))


def _broker_days(alias: str, served: Sequence[ServedCertificate], now_s: float) -> CheckFinding:
    check = registry.BROKER_CERTIFICATE
    if early := _with(served, {TlsFault.NOT_YET}):
        text = f"not valid yet at {listed(one.place for one in early)}"
        fix = "Check the clocks of both hosts."
        return check.failed(alias, text, fix, is_fatal=len(early) == len(served))
    dated = sorted((one.ends_s, one.place, one.subject) for one in served if one.ends_s is not None)
    if not dated:
        return check.unknown(alias, "no certificate was seen")
    ends_s, place, subject = dated[0]
    ended = [where for at_s, where, _ in dated if at_s <= now_s]
    if ended:
        text = f"{_days(ends_s, now_s)}: {subject} at {place}"
        if len(ended) > 1:
            text += f", and at {len(ended) - 1} more"
        return check.failed(alias, text, is_fatal=len(ended) == len(served))
    return _left(check, alias, ends_s, now_s, f"{subject} at {place}")


def _verified(
    check: DoctorCheck, alias: str, served: Sequence[ServedCertificate], faults: Collection[TlsFault]
) -> CheckFinding:
    bad = _with(served, faults)
    if bad:
        text = listed(f"{one.place}: {one.why} ({one.subject})" for one in bad)
        return check.failed(alias, text, is_fatal=len(bad) == len(served))
    good = [one for one in served if one.fault in (TlsFault.NONE, TlsFault.NAME)]
    return check.ok(alias, f"{count_text(len(good), 'certificate')} verified")


def _named(facts: AccessFacts, served: Sequence[ServedCertificate]) -> CheckFinding:
    check = registry.CERTIFICATE_NAME
    if not facts.checks_name:
        text = "names are not checked: ssl.endpoint.identification.algorithm is empty"
        return check.warning(facts.alias, text, "Remove that line, or set it to https.")
    bad = _with(served, {TlsFault.NAME})
    if bad:
        text = listed(
            f"{one.host} is not among {', '.join(one.names) or 'no names at all'} ({one.place})" for one in bad
        )
        return check.failed(facts.alias, text, is_fatal=len(bad) == len(served))
    good = dict.fromkeys(one.host for one in served if one.fault is TlsFault.NONE)
    return check.ok(facts.alias, listed(good))


def _own_days(facts: AccessFacts, now_s: float) -> Iterator[CheckFinding]:
    for check, use in ((registry.OWN_CERTIFICATE, KEYSTORE), (registry.TRUSTED_CERTIFICATES, TRUSTSTORE)):
        for end in facts.store_ends:
            if end.use == use:
                yield _left(check, facts.alias, end.ends_s, now_s, f"the {use}")


def _left(check: DoctorCheck, alias: str, ends_s: float, now_s: float, what: str) -> CheckFinding:
    text = f"{_days(ends_s, now_s)}: {what}"
    if ends_s <= now_s:
        return check.failed(alias, text)
    return check.warning(alias, text) if ends_s - now_s < WARNING_DAYS * DAY_S else check.ok(alias, text)


def _days(ends_s: float, now_s: float) -> str:
    days = int(abs(ends_s - now_s) // DAY_S)
    if ends_s > now_s:
        return f"{count_text(days, 'day')} left"
    return "ended today" if days == 0 else f"ended {count_text(days, 'day')} ago"
