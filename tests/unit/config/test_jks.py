"""A store that keytool wrote (the alias `own` with a chain of two, and the trusted `ca`), read and refused."""

import base64
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lockstep_config.text.keystores import BadStore, load_identity, load_trusted, read_jks

STORE, KEY = "store-secret", "key-secret"

WRITTEN_BY_KEYTOOL = base64.b64decode(
    """
    /u3+7QAAAAIAAAACAAAAAgACY2EAAAGh/vVpMgAFWC41MDkAAAExMIIBLTCB1aADAgECAhRP/VTc7ey8j8oGlQP3iMBvJjFJAzAKBggqhkjOPQQD
    AjANMQswCQYDVQQDDAJDQTAeFw0yNjExMTkxNjM0MDhaFw0yNjEyMjExNjM0MDhaMA0xCzAJBgNVBAMMAkNBMFkwEwYHKoZIzj0CAQYIKoZIzj0D
    AQcDQgAE5noVGYCqD4Oda5JknTMvw9jGd4d0kliKnisPOfKH5+P+KuNgfuFeXD/gUqNejq4lrZgAxRSd+t3DaAK4oxI3n6MTMBEwDwYDVR0TAQH/
    BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBi7NL6EwL9NYIt8y1eyMDItEX6vPTkUw6VGFmFQuY6uQIgYfT/WsVpirN51rFKtDubhAgJ9LYHpVlo
    flr68ELT+XcAAAABAANvd24AAAGh/vVZKwAAAMgwgcUwDgYKKwYBBAEqAhEBAQUABIGyFfjGxnN5HEwxwkdrBvFmZuhgVrK0fEdNNcQdAPML1lkq
    DYvenVD76J3dprJLtgqLOFoztFPMPkwIK+dN7dLF11OADteHergI95amTk+w1lqV2UBqxh/1F26PimxbO0PW1ZxDshn4jexJr7ZrA4bFCZXQ/snB
    DtIDCn3Z0Rwl+7nIarNdgW/jYkYu/TfnQwY5Rx5XoiYIIG8l0i5dv4OHXnOOfeljtYXAUeU+5y6WRVC58AAAAAIABVguNTA5AAABMjCCAS4wgdWg
    AwIBAgIURcEuuwswTDI/BTsEYfXm2chADPswCgYIKoZIzj0EAwIwDTELMAkGA1UEAwwCQ0EwIBcNMjYxMTIwMTYzNDA4WhgPMjEyNjEwMjgxNjM0
    MDhaMA4xDDAKBgNVBAMMA293bjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBj6c2+jviBlvfF+aGccl2QUTsIi41LMQEWtvJ4Ck+QWzXPSJt4R
    yBbNy4ngcX2c4gOpT1UwXQhnnK0z+Lt7K7ejEDAOMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDSAAwRQIhAIZiMPC4jSgK3T/axWP6eQSmFqn+
    2uySR61EH01BECOEAiAVh0JNymiConKp8tp1Abc7zQGbg6yDfEFrWtwsBYKkugAFWC41MDkAAAExMIIBLTCB1aADAgECAhRP/VTc7ey8j8oGlQP3
    iMBvJjFJAzAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJDQTAeFw0yNjExMTkxNjM0MDhaFw0yNjEyMjExNjM0MDhaMA0xCzAJBgNVBAMMAkNBMFkw
    EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE5noVGYCqD4Oda5JknTMvw9jGd4d0kliKnisPOfKH5+P+KuNgfuFeXD/gUqNejq4lrZgAxRSd+t3DaAK4
    oxI3n6MTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBi7NL6EwL9NYIt8y1eyMDItEX6vPTkUw6VGFmFQuY6uQIgYfT/WsVp
    irN51rFKtDubhAgJ9LYHpVloflr68ELT+Xdm3ZBHVx1MgbmeIkGP0/VZy2qJPQ==
    """
)


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
