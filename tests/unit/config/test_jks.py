"""A store that keytool wrote is read, or refused."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lockstep_config.text.keystores import BadStore, load_identity, load_trusted, read_jks
from tests.support.java_keystore import KEY, STORE, WRITTEN_BY_KEYTOOL


@pytest.fixture
def store(tmp_path: Path) -> str:
    file = tmp_path / "store.jks"
    file.write_bytes(WRITTEN_BY_KEYTOOL)
    return str(file)


def subjects(pem: str) -> list[str]:
    return [certificate.subject.rfc4514_string() for certificate in x509.load_pem_x509_certificates(pem.encode())]


@pytest.mark.parametrize("declared", ["JKS", "PKCS12"])
def test_a_keystore_is_what_it_is_whatever_its_declared_type(store: str, declared: str) -> None:
    identity = load_identity(store, declared, STORE, KEY)
    assert subjects(identity.chain_pem) == ["CN=own", "CN=CA"]
    assert load_pem_private_key(identity.key_pem.encode(), None).key_size == 256  # type: ignore[union-attr]
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize("password", [STORE, None])
def test_a_truststore_opens_without_a_password_as_in_java(store: str, password: str | None) -> None:
    assert subjects(load_trusted(store, "JKS", password)) == ["CN=CA", "CN=own"]


@pytest.mark.parametrize(
    ("password", "key_password", "sentence"),
    [
        ("wrong", KEY, "has another password, or was altered: check the password"),
        (STORE, None, "has another password for its private key: set ssl.key.password"),
    ],
)
def test_jks_wrong_password_is_named(store: str, password: str, key_password: str | None, sentence: str) -> None:
    with pytest.raises(BadStore) as raised:
        load_identity(store, "JKS", password, key_password)
    assert str(raised.value) == f"the keystore {store} {sentence}"


def test_a_store_that_was_altered_or_cut_is_refused() -> None:
    whole = WRITTEN_BY_KEYTOOL
    for offset in range(4, len(whole), 37):
        with pytest.raises(BadStore, match="was altered"):
            read_jks(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :], STORE)
    for size in range(0, len(whole) - 1, 7):
        with pytest.raises(BadStore):
            read_jks(whole[:size], None)
