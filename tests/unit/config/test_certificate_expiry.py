"""When the certificates of a flow end: read from the stores that its clients name, and judged by what they are for."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import FlowSettings
from lockstep_config.credentials.certificate_expiry import (
    KEYSTORE,
    TOKEN_TRUSTSTORE,
    TRUSTSTORE,
    CertificateEnds,
    certificate_ends,
    first_end,
)
from lockstep_state.names import Flow
from tests.support.certificates import Authority, Certified

from .conftest import LoadText

DAY = 86_400.0
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def tls(alias: str, trusted: Path, identity: Path | None = None) -> str:
    own = "" if identity is None else f"{alias}.ssl.keystore.type = PEM\n{alias}.ssl.keystore.location = {identity}\n"
    return (
        f"{alias}.security.protocol = SSL\n{alias}.ssl.truststore.type = PEM\n"
        f"{alias}.ssl.truststore.location = {trusted}\n{own}"
    )


def end_of(certified: Certified) -> float:
    return certified.certificate.not_valid_after_utc.timestamp()


def settings_from(load_text: LoadText, lines: str) -> FlowSettings:
    return load_text(lines).flow(Flow("A", "B"))


def test_each_cluster_and_use_has_its_own(load_text: LoadText, tmp_path: Path) -> None:
    authority, other_authority = Authority("first"), Authority("second")
    client = authority.certify("mirror", days=(-1, 7))
    trusted, both = tmp_path / "first.pem", tmp_path / "both.pem"
    trusted.write_text(authority.pem)
    both.write_text(authority.pem + other_authority.pem)
    settings = settings_from(load_text, tls("A", trusted, client.pem(tmp_path / "own.pem")) + tls("B", both))
    assert set(certificate_ends(settings)) == {
        CertificateEnds("A", TRUSTSTORE, (end_of(authority.own),)),
        CertificateEnds("A", KEYSTORE, (end_of(client), end_of(authority.own))),
        CertificateEnds("B", TRUSTSTORE, tuple(sorted({end_of(authority.own), end_of(other_authority.own)}))),
    }


def test_certificate_inside_the_file_has_its_end(load_text: LoadText) -> None:
    authority = Authority()
    pem = authority.pem.replace("\n", "\\n")
    lines = f"A.security.protocol = SSL\nA.ssl.truststore.type = PEM\nA.ssl.truststore.certificates = {pem}\n"
    assert certificate_ends(settings_from(load_text, lines)) == (
        CertificateEnds("A", TRUSTSTORE, (end_of(authority.own),)),
    )


def test_certificate_of_one_client_with_another_store_is_seen(load_text: LoadText, tmp_path: Path) -> None:
    authority, other_authority = Authority(), Authority("other")
    (tmp_path / "a.pem").write_text(authority.pem)
    soon = other_authority.certify("soon", days=(-1, 1))
    (tmp_path / "b.pem").write_text(soon.certificate_pem)
    lines = tls("A", tmp_path / "a.pem") + f"A->B.source.consumer.ssl.truststore.location = {tmp_path / 'b.pem'}\n"
    (ends,) = certificate_ends(settings_from(load_text, lines))
    assert ends.ends == tuple(sorted((end_of(soon), end_of(authority.own))))


def test_a_token_endpoints_authority_is_a_use_of_its_own(load_text: LoadText, tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    lines = (
        "A.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = OAUTHBEARER\n"
        f'A.sasl.jaas.config = {OAUTH} oauth.token.endpoint.uri="https://tokens.example/token" oauth.client.id="me" '
        f'oauth.client.secret="s" oauth.ssl.truststore.location="{tmp_path / "ca.pem"}" '
        'oauth.ssl.truststore.type="PEM";\n'
    )
    assert certificate_ends(settings_from(load_text, lines)) == (
        CertificateEnds("A", TOKEN_TRUSTSTORE, (end_of(authority.own),)),
    )


def test_a_certificate_that_cannot_be_read_here_hides_no_other(load_text: LoadText, tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    settings = settings_from(load_text, tls("A", tmp_path / "ca.pem"))
    odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert certificate_ends(_with_inline(settings, odd)) == (
        CertificateEnds("A", TRUSTSTORE, (end_of(authority.own),)),
    )
    assert certificate_ends(_with_inline(settings, odd, alone=True)) == ()


def _with_inline(settings: FlowSettings, pem: str, *, alone: bool = False) -> FlowSettings:
    """The admin client, or every client of the source, trusts this text instead of the file."""
    inline = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}
    names = ("source_admin", "source_consumer", "source_producer") if alone else ("source_admin",)
    return replace(settings, clients=replace(settings.clients, **dict.fromkeys(names, inline)))


@pytest.mark.parametrize("lines", ["", "A.security.protocol = SSL\n"], ids=["no TLS", "the system's"])
def test_certificate_ends_without_certificates_are_empty(load_text: LoadText, lines: str) -> None:
    assert certificate_ends(settings_from(load_text, lines)) == ()


def test_a_store_that_has_gone_is_named(load_text: LoadText, tmp_path: Path) -> None:
    trusted = tmp_path / "ca.pem"
    trusted.write_text(Authority().pem)
    settings = settings_from(load_text, tls("A", trusted))
    trusted.unlink()
    with pytest.raises(OSError, match=r"ca\.pem"):
        certificate_ends(settings)


def test_certificate_in_a_keystore_counts_by_its_earliest_end() -> None:
    now = time.time()
    ends = CertificateEnds("A", KEYSTORE, (now - DAY, now + 90 * DAY))
    assert first_end(ends, now) == now - DAY


def test_expired_trusted_certificate_is_ignored_while_another_is_valid() -> None:
    now = time.time()
    assert first_end(CertificateEnds("A", TRUSTSTORE, (now - DAY, now + DAY, now + 90 * DAY)), now) == now + DAY
    assert first_end(CertificateEnds("A", TRUSTSTORE, (now - 2 * DAY, now - DAY)), now) == now - DAY
