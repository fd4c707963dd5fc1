"""TLS of the clients: versions, suites, stores and PEM, for librdkafka and for the data plane."""

import ssl
import subprocess
from pathlib import Path

import pytest

from lockstep_config.clients.tls import normalised_pem, read_tls
from lockstep_config.flow.client_settings import source_admin, source_consumer, wire_security

from .conftest import A_TO_B, LoadText, MistakesOf


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a key and a certificate of its own, as Java keeps them."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    subprocess.run(
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=lockstep-test "
        f"-keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    both.write_text(key.read_text() + certificate.read_text())
    return both


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            "A.ssl.truststore.location=/t.bcfks\nA.ssl.truststore.type=BCFKS\n",
            "7 A.ssl.truststore.type: is BCFKS: known are JKS, PKCS12, PEM",
        ),
        (
            "A.ssl.cipher.suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_3DES_EDE_CBC_SHA\n",
            "6 A.ssl.cipher.suites: names TLS_RSA_WITH_3DES_EDE_CBC_SHA, which OpenSSL does not have",
        ),
        ("A.ssl.enabled.protocols=TLSv1.1,TLSv1\n", "6 A.ssl.enabled.protocols: names only TLSV1.1, TLSV1, which is"),
        ("A.ssl.protocol=TLSv1.4\n", "6 A.ssl.protocol: names TLSV1.4: TLSv1.2 and TLSv1.3 are spoken here"),
        ("A.ssl.protocol=TLSv1.2\nA.ssl.enabled.protocols=TLSv1.3\n", "6 A.ssl.protocol: leaves none of"),
        ("A.ssl.keystore.key=x\n", "6 A.ssl.keystore.key: is set without ssl.keystore.certificate.chain"),
        ("A.ssl.truststore.certificates=x\n", "6 A.ssl.truststore.certificates: is no PEM text"),
        ("A.ssl.endpoint.identification.algorithm=LDAPS\n", "6 A.ssl.endpoint.identification.algorithm: is 'ldaps':"),
        (
            "A.ssl.truststore.type=PEM\nA.ssl.truststore.location=/nowhere/ca.pem\n",
            "7 A.ssl.truststore.location: names /nowhere/ca.pem, which is no file that can be read",
        ),
        (
            f"A.ssl.truststore.type=PEM\nA.ssl.truststore.location=/{'x' * 5000}\n",
            f"7 A.ssl.truststore.location: names /{'x' * 5000}, which is no file that can be read",
        ),
    ],
)
def test_untranslatable_tls_setting_is_named(mistakes_of: MistakesOf, lines: str, sentence: str) -> None:
    mistakes = mistakes_of("A.security.protocol=SSL\n" + lines)
    assert [line[: len(sentence)] for line in mistakes] == [sentence]


@pytest.mark.parametrize(
    "key",
    [
        "producer.override.ssl.keystore.location",
        "target.admin.ssl.keystore.location",
        "lockstep.connector.source.producer.override.ssl.keystore.location",
        "lockstep.connector.checkpoint.admin.ssl.keystore.location",
        "lockstep.connector.heartbeat.producer.override.ssl.truststore.location",
    ],
)
def test_missing_certificate_of_any_client_is_named_in_its_line(mistakes_of: MistakesOf, key: str) -> None:
    mistakes = mistakes_of(f"B.security.protocol=SSL\nA->B.{key}=/nowhere/it.p12\n")
    assert mistakes == [f"6 A->B.{key}: names /nowhere/it.p12, which is no file that can be read"]


def test_missing_certificate_of_a_connector_that_does_not_run_is_none(load_text: LoadText) -> None:
    load_text(
        "B.security.protocol=SSL\nA->B.emit.heartbeats.enabled=false\n"
        "A->B.lockstep.connector.heartbeat.producer.ssl.keystore.location=/nowhere/it.p12\n"
    )


def test_tls_versions_and_suites_reach_the_clients_that_support_them(load_text: LoadText) -> None:
    loaded = load_text(
        "A.security.protocol=SSL\nA.ssl.enabled.protocols=TLSv1.2,TLSv1.1,TLSv1\n"
        "A.ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\n"
    )
    conf = source_admin(loaded.flow(A_TO_B))
    assert conf["ssl.cipher.suites"] == "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"
    context = wire_security(loaded.clusters["A"])["ssl_context"]
    assert context.minimum_version is context.maximum_version is ssl.TLSVersion.TLSv1_2
    of_1_2 = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"]
    assert of_1_2 == ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"]
    (note,) = [str(note) for note in loaded.notes if "ssl." in note.key]
    assert "TLSV1, TLSV1.1 is not spoken here, for it is not safe; TLSV1.2 counts for the mirrored records only" in note


def test_pem_files_reach_both_clients(load_text: LoadText, identity: Path) -> None:
    loaded = load_text(
        f"A.security.protocol=SSL\nA.ssl.truststore.type=PEM\nA.ssl.truststore.location={identity}\n"
        f"A.ssl.keystore.type=PEM\nA.ssl.keystore.location={identity}\n"
    )
    conf = source_admin(loaded.flow(A_TO_B))
    assert conf["ssl.ca.pem"] == conf["ssl.certificate.pem"]
    assert conf["ssl.key.pem"] + conf["ssl.ca.pem"] == identity.read_text()
    assert conf["ssl.endpoint.identification.algorithm"] == "https"
    context = wire_security(loaded.clusters["A"])["ssl_context"]
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.cert_store_stats()["x509"] == 1


def test_pem_in_the_file_itself_may_stand_on_one_line(load_text: LoadText, identity: Path) -> None:
    text = identity.read_text()
    index = text.index("-----BEGIN CERTIFICATE-----")
    key, certificate = (part.strip().replace("\n", " ") for part in (text[:index], text[index:]))
    loaded = load_text(
        "A.security.protocol=SSL\nA.ssl.endpoint.identification.algorithm=\n"
        f"A.ssl.truststore.certificates={certificate}\n"
        f"A.ssl.keystore.certificate.chain={certificate}\nA.ssl.keystore.key={key}\n"
    )
    conf = source_consumer(loaded.flow(A_TO_B), "replication-consumer")
    assert conf["ssl.ca.pem"] == conf["ssl.certificate.pem"] == text[index:]
    assert conf["ssl.key.pem"] == text[:index]
    assert conf["ssl.endpoint.identification.algorithm"] == "none"
    assert not wire_security(loaded.clusters["A"])["ssl_context"].check_hostname


def test_an_encrypted_key_needs_its_password_and_never_asks_the_terminal(
    load_text: LoadText, mistakes_of: MistakesOf, identity: Path, tmp_path: Path
) -> None:
    encrypted = tmp_path / "encrypted.pem"
    subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-in", str(identity), "-out", str(encrypted), "-passout", "pass:hush-hush"],
        check=True,
        capture_output=True,
    )
    text = identity.read_text()
    encrypted.write_text(encrypted.read_text() + text[text.index("-----BEGIN CERTIFICATE-----") :])
    lines = f"A.security.protocol=SSL\nA.ssl.keystore.type=PEM\nA.ssl.keystore.location={encrypted}\n"
    assert any("has a private key that is encrypted: set ssl.key.password" in mistake for mistake in mistakes_of(lines))
    wrong = mistakes_of(lines + "A.ssl.key.password=wrong-secret\n")
    assert any("do not serve" in mistake for mistake in wrong)
    assert "wrong-secret" not in "".join(wrong)
    conf = source_admin(load_text(lines + "A.ssl.key.password=hush-hush\n").flow(A_TO_B))
    assert conf["ssl.key.pem"] in text


def test_blanks_around_a_password_do_not_count_as_in_kafka() -> None:
    """The line end is that of a file with the secret alone, as `${dir:...}` brings it."""
    names = [f"ssl.{name}.password" for name in ("truststore", "keystore", "key")]
    tls = read_tls(dict(zip(names, ("one ", "two\n", "\tthree\r\n"), strict=True)))
    assert (tls.trusted_password, tls.identity_password, tls.key_password) == ("one", "two", "three")


def test_blanks_around_a_password_of_strimzis_oauth_count() -> None:
    settings = read_tls({"ssl.truststore.password": "one "}, trims_passwords=False)
    assert settings.trusted_password == "one "


def test_normalised_pem_changes_nothing_in_pem_that_is_normal(identity: Path) -> None:
    assert normalised_pem(identity.read_text()) == identity.read_text()
    assert normalised_pem("no PEM") == ""
