"""Key- and truststores as keytool and OpenSSL write them."""

import shutil
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from lockstep_config.clients.tls import load_material, read_tls, ssl_context
from lockstep_config.text.keystores import BadStore, identity_of_pem, load_identity, load_trusted, read_jks
from tests.support.certificates import Authority, Certified, keytool

pytestmark = pytest.mark.long  # each run of keytool is a JVM

STORE, KEY = "store-secret", "key-secret"


class Stores:
    """One identity with a chain of two, and a truststore of many, in every format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.between = Authority("between", self.authority)
        self.own = self.between.certify("client-one", ("client.example",))
        self.other = self.authority.certify("client-two")
        self.p12 = self.own.pkcs12(folder / "own.p12", STORE, "b-own")
        self.jks = self._as(self.p12, "own.jks", "JKS", "-destkeypass", KEY)
        self.legacy = folder / "legacy.p12"
        keytool("-J-Dkeystore.pkcs12.legacy", *self._import(self.p12, self.legacy, "PKCS12"))
        certificates = [
            pkcs12.PKCS12Certificate(Authority(f"CA {at}").own.certificate, f"ca{at}".encode()) for at in range(3)
        ]
        how = BestAvailableEncryption(STORE.encode())
        self.trust("PKCS12").write_bytes(pkcs12.serialize_java_truststore(certificates, how))
        self._as(self.trust("PKCS12"), self.trust("JKS").name, "JKS")
        second = self.other.pkcs12(folder / "second.p12", STORE, "a-other")
        self.both_jks = folder / "both.jks"
        shutil.copy(self.jks, self.both_jks)
        self._as(second, "both.jks", "JKS", "-destkeypass", KEY)
        self.both_p12 = folder / "both.p12"
        shutil.copy(self.legacy, self.both_p12)
        self._as(second, "both.p12", "PKCS12")

    def trust(self, kind: str) -> Path:
        return self.folder / f"trust.{kind.lower()}"

    def _import(self, source: Path, into: Path, kind: str, *more: str) -> list[str]:
        return [
            *("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstorepass", STORE),
            *("-destkeystore", str(into), "-deststoretype", kind, "-deststorepass", STORE, *more),
        ]

    def _as(self, source: Path, name: str, kind: str, *more: str) -> Path:
        keytool(*self._import(source, self.folder / name, kind, *more))
        return self.folder / name


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


def subjects(pem: str) -> list[str]:
    return [one.subject.rfc4514_string() for one in x509.load_pem_x509_certificates(pem.encode())]


def is_own(chain_pem: str, key_pem: str, own: Certified) -> bool:
    return chain_pem.startswith(own.certificate_pem) and key_pem == own.key_pem()


@pytest.mark.parametrize("declared", ["JKS", "PKCS12"])
@pytest.mark.parametrize("kind", ["p12", "jks", "legacy"])
def test_a_keystore_is_what_it_is_whatever_its_declared_type(stores: Stores, kind: str, declared: str) -> None:
    identity = load_identity(str(getattr(stores, kind)), declared, STORE, KEY if kind == "jks" else None)
    assert is_own(identity.chain_pem, identity.key_pem, stores.own)
    assert subjects(identity.chain_pem) == ["CN=client-one", "CN=between", "CN=Lockstep test CA"]
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_every_certificate_of_a_truststore_is_trusted(stores: Stores, kind: str) -> None:
    assert sorted(subjects(load_trusted(str(stores.trust(kind)), kind, STORE))) == ["CN=CA 0", "CN=CA 1", "CN=CA 2"]


def test_a_jks_truststore_opens_without_a_password_as_in_java(stores: Stores) -> None:
    assert len(subjects(load_trusted(str(stores.trust("JKS")), "JKS", None))) == 3


def test_keystore_with_several_keys_gives_one_with_its_chain(stores: Stores) -> None:
    identity = load_identity(str(stores.both_jks), "JKS", STORE, KEY)
    assert is_own(identity.chain_pem, identity.key_pem, stores.other)  # "a-other" comes before "b-own"
    identity = load_identity(str(stores.both_p12), "PKCS12", STORE, None)
    assert is_own(identity.chain_pem, identity.key_pem, stores.own)  # the first of the file
    assert subjects(identity.chain_pem) == ["CN=client-one", "CN=between", "CN=Lockstep test CA"]


def test_a_truststore_may_be_a_keystore(stores: Stores) -> None:
    assert subjects(load_trusted(str(stores.jks), "JKS", STORE)) == ["CN=client-one"]
    assert "CN=client-one" in subjects(load_trusted(str(stores.p12), "PKCS12", STORE))


@pytest.mark.parametrize(
    ("kind", "password", "key_password", "sentence"),
    [
        ("jks", "wrong", KEY, "has another password, or was altered: check the password"),
        ("jks", STORE, None, "has another password for its private key: set ssl.key.password"),
        ("p12", "wrong", None, "has another password, or is no PKCS12 or JKS store at all: check both"),
        ("p12", None, None, "is encrypted, or no PKCS12 or JKS store at all: set its password"),
    ],
)
def test_wrong_keystore_password_is_named(
    stores: Stores, kind: str, password: str | None, key_password: str | None, sentence: str
) -> None:
    file = getattr(stores, kind)
    with pytest.raises(BadStore) as raised:
        load_identity(str(file), "JKS", password, key_password)
    assert str(raised.value) == f"the keystore {file} {sentence}"


def test_keystore_without_a_key_is_refused(stores: Stores) -> None:
    for kind in ("JKS", "PKCS12"):
        with pytest.raises(BadStore, match="holds no private key"):
            load_identity(str(stores.trust(kind)), kind, STORE, None)


def test_a_jks_store_that_was_altered_or_cut_is_refused(stores: Stores, tmp_path: Path) -> None:
    whole = stores.trust("JKS").read_bytes()
    for at in (30, len(whole) // 2, len(whole) - 25):
        altered = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(BadStore, match="was altered"):
            read_jks(altered, STORE)
    for size in range(0, len(whole) - 1, 7):
        with pytest.raises(BadStore):
            read_jks(whole[:size], None)


def test_the_declared_type_and_pem_must_agree(stores: Stores, tmp_path: Path) -> None:
    pem = stores.own.pem(tmp_path / "own.pem")
    with pytest.raises(BadStore, match="is a PEM file, and its type is JKS: set the type to PEM"):
        load_trusted(str(pem), "JKS", None)
    with pytest.raises(BadStore, match="holds nothing in PEM, and its type is PEM"):
        load_trusted(str(stores.p12), "PEM", None)


def test_an_encrypted_key_in_pem_needs_its_password(stores: Stores) -> None:
    chain, key = stores.own.chain_pem, stores.own.key_pem(KEY)
    assert is_own(*_texts(identity_of_pem(chain, key, KEY)), stores.own)
    assert is_own(*_texts(identity_of_pem(chain, stores.own.key_pem(), "needless")), stores.own)
    with pytest.raises(BadStore, match=r"is encrypted: set ssl\.key\.password"):
        identity_of_pem(chain, key, None)
    with pytest.raises(BadStore, match=r"cannot be decrypted: check ssl\.key\.password"):
        identity_of_pem(chain, key, "wrong")
    with pytest.raises(BadStore, match="holds no certificate that belongs to its private key"):
        identity_of_pem(stores.other.chain_pem, key, KEY)


def _texts(identity: object) -> tuple[str, str]:
    return identity.chain_pem, identity.key_pem  # type: ignore[attr-defined]


def test_stores_make_a_context_that_shakes_hands(stores: Stores) -> None:
    """Both ends in memory: the client shows its chain from a JKS store and checks the server's name."""
    properties = {
        "ssl.keystore.location": str(stores.jks),
        "ssl.keystore.password": STORE,
        "ssl.key.password": KEY,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": stores.authority.pem,
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    }
    settings = read_tls(properties)
    assert "secret" not in repr(settings)
    assert load_material(settings).trusted_pem == stores.authority.pem
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    both = stores.folder / "server.pem"
    server.load_cert_chain(stores.authority.server("broker.example").pem(both))
    server.load_verify_locations(cadata=stores.authority.pem)
    server.verify_mode = ssl.CERT_REQUIRED
    peer, cipher = _shaken(ssl_context(settings), server, "broker.example")
    assert cipher == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")
    assert peer == "CN=client-one"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        _shaken(ssl_context(settings), server, "other.example")


def _shaken(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> tuple[str, tuple[str, str]]:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = ends[1].getpeercert(binary_form=True)
    assert shown is not None
    name, version, _ = ends[0].cipher() or ("", "", 0)
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string(), (name, version)
