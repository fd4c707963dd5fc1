"""Keystores and truststores as Java takes them, read into PEM: JKS, PKCS12, PEM.

JKS is Java's own format: a list of entries, each a private key with its chain or a trusted certificate. The layout is
that of `sun.security.provider.JavaKeyStore`, the protection of keys that of its `KeyProtector`. Both are SHA-1 over
the password and are obfuscation rather than encryption, as Java itself says. What is read is certain: the digest at
the end covers the whole file and the password.

Since Java 9 the content of a file counts and not only its declared type: `JKS` may be PKCS12 and the other way round.
It is so here too.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes
from cryptography.x509 import Certificate, load_der_x509_certificate, load_pem_x509_certificates

from lockstep_config.text.files import read_content

_KEY = re.compile(r"-----BEGIN (?P<label>[A-Z ]*PRIVATE KEY)-----.*?-----END (?P=label)-----", re.DOTALL)
_IS_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----")

MAGIC = b"\xfe\xed\xfe\xed"
WHITENER = b"Mighty Aphrodite"
DIGEST_BYTES = hashlib.sha1(b"", usedforsecurity=False).digest_size
KEY_ENTRY, TRUSTED_ENTRY = 1, 2

# EncryptedPrivateKeyInfo { { 1.3.6.1.4.1.42.2.17.1.1, NULL }, OCTET STRING }
_PROTECTED = bytes.fromhex("300e060a2b060104012a021101010500")


class BadStore(OSError):
    """A store cannot be used. The text says why and what to do, without the file's name."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates in DER, its own certificate first.

    `protected` is the key as the store protects it.
    """

    alias: str
    chain: tuple[bytes, ...]
    protected: bytes = field(repr=False)

    def key(self, password: str) -> PKCS12PrivateKeyTypes:
        """Return the private key.

        Raises:
            BadStore: The key has another password, or is of an unknown kind.
        """
        plain = _recovered(self.protected, password)
        try:
            return load_der_private_key(plain, None)  # type: ignore[return-value]  # TLS takes the kinds that PKCS12 has
        except ValueError as exc:
            raise BadStore(f"holds a private key of a kind that is not known ({self.alias}): {exc}") from exc


@dataclass(frozen=True, slots=True)
class JksStore:
    """The entries of a JKS store, in the order of the file."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]
    """Trusted certificates in DER."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A client's certificates, its own first, and its private key, not encrypted; both are PEM."""

    chain_pem: str
    key_pem: str = field(repr=False)


def load_trusted(file: str, kind: str, password: str | None) -> str:
    """Return all certificates of a truststore, as PEM.

    Raises:
        BadStore: The store cannot be used; the error names the file.
        OSError: The file cannot be read.
    """
    content = read_content(Path(file))
    try:
        certificates = _trusted(content, kind, password)
        if not certificates:
            raise BadStore("holds no certificate: import the CA's into it")
    except BadStore as exc:
        raise BadStore(f"the truststore {file} {exc}") from exc
    return _pem(certificates)


def load_identity(file: str, kind: str, password: str | None, key_password: str | None) -> Identity:
    """Return the key and the chain of a keystore.

    Of several keys the first counts; in a JKS store that is the first alias by name. As in Java a key without a
    password of its own has the store's.

    Raises:
        BadStore: The store cannot be used; the error names the file.
        OSError: The file cannot be read.
    """
    content = read_content(Path(file))
    try:
        return _identity(content, kind, password, key_password)
    except BadStore as exc:
        raise BadStore(f"the keystore {file} {exc}") from exc


def identity_of_pem(chain_pem: str, key_pem: str, password: str | None) -> Identity:
    """Return the key and the chain of PEM texts. Certificates are put in the order in which TLS sends them.

    Raises:
        BadStore: The key or a certificate cannot be used.
    """
    try:
        key = load_pem_private_key(key_pem.encode(), None if password is None else password.encode())
    except TypeError as exc:
        if password is None:
            raise BadStore("has a private key that is encrypted: set ssl.key.password") from exc
        # Java takes a key that is not encrypted with any password.
        return identity_of_pem(chain_pem, key_pem, None)
    except (ValueError, UnsupportedAlgorithm) as exc:
        fault = "cannot be read" if password is None else "cannot be decrypted: check ssl.key.password"
        raise BadStore(f"has a private key that {fault}") from exc
    return _build_identity(key, _certificates(chain_pem.encode()))


def _trusted(content: bytes, kind: str, password: str | None) -> Sequence[Certificate]:
    if _detect_format(content, kind) == "PEM":
        return _certificates(content)
    if content[:4] == MAGIC:
        store = read_jks(content, password)
        # As in Java: if a keystore serves as truststore, the certificate of its key is trusted too.
        return _loaded((*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain)))
    return _pkcs12(content, password)[1]


def _identity(content: bytes, kind: str, password: str | None, key_password: str | None) -> Identity:
    if _detect_format(content, kind) == "PEM":
        text = content.decode("ascii", "replace")
        key = _KEY.search(text)
        if key is None:
            raise BadStore("holds no private key: it takes the key and the certificates in one file")
        return identity_of_pem(text, key[0], key_password)
    if content[:4] == MAGIC:
        keys = read_jks(content, password).keys
        if not keys:
            raise BadStore("holds no private key")
        entry = min(keys, key=lambda key: key.alias)
        return _build_identity(entry.key(key_password or password or ""), _loaded(entry.chain))
    own_key, certificates = _pkcs12(content, password)
    if own_key is None:
        raise BadStore("holds no private key")
    return _build_identity(own_key, certificates)


def _detect_format(content: bytes, kind: str) -> str:
    is_pem = bool(_IS_PEM.search(content[:65_536]))
    if is_pem and kind != "PEM":
        raise BadStore(f"is a PEM file, and its type is {kind}: set the type to PEM")
    if not is_pem and kind == "PEM":
        raise BadStore("holds nothing in PEM, and its type is PEM: set the type to what it is, JKS or PKCS12")
    return "PEM" if is_pem else "JKS" if content[:4] == MAGIC else "PKCS12"


def _pkcs12(content: bytes, password: str | None) -> tuple[PrivateKeyTypes | None, list[Certificate]]:
    try:
        key, own, others = pkcs12.load_key_and_certificates(content, None if password is None else password.encode())
        return key, [*([] if own is None else [own]), *others]
    except (ValueError, UnsupportedAlgorithm) as exc:
        if password is None:
            raise BadStore("is encrypted, or no PKCS12 or JKS store at all: set its password") from exc
        raise BadStore("has another password, or is no PKCS12 or JKS store at all: check both") from exc


def _certificates(pem: bytes) -> Sequence[Certificate]:
    try:
        return load_pem_x509_certificates(pem) if b"-----BEGIN CERTIFICATE-----" in pem else []
    except ValueError as exc:
        raise BadStore(f"holds a certificate that cannot be read: {exc}") from exc


def _loaded(der: Iterable[bytes]) -> Sequence[Certificate]:
    try:
        return [load_der_x509_certificate(certificate) for certificate in der]
    except ValueError as exc:
        raise BadStore(f"holds a certificate that cannot be read: {exc}") from exc


def _build_identity(key: PrivateKeyTypes, certificates: Sequence[Certificate]) -> Identity:
    own = next((certificate for certificate in certificates if certificate.public_key() == key.public_key()), None)
    if own is None:
        raise BadStore("holds no certificate that belongs to its private key")
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(_pem(_chain(own, certificates)), pem.decode())


def _chain(own: Certificate, certificates: Sequence[Certificate]) -> list[Certificate]:
    """Return the chain from a certificate towards the root, as far as the certificates lead, without the others."""
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        issuers = (
            certificate
            for certificate in certificates
            if certificate.subject == chain[-1].issuer and certificate not in chain
        )
        issuer = next(issuers, None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _pem(certificates: Iterable[Certificate]) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def read_jks(content: bytes, password: str | None) -> JksStore:
    """Read a JKS store. As in Java nothing is verified without a password; with one the store's digest must agree.

    Raises:
        BadStore: The store cannot be used.
    """
    if content[:4] != MAGIC:
        raise BadStore("is no JKS store")
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if password is not None:
        computed = hashlib.sha1(_characters(password) + WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(computed, digest):
            raise BadStore("has another password, or was altered: check the password")
    cursor = _Cursor(body, 4)
    version = cursor.number(4)
    if version not in (1, 2):
        raise BadStore(f"is of JKS version {version}, which is not known")
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(cursor.number(4)):
        tag, alias, _created = cursor.number(4), cursor.text(), cursor.number(8)
        if tag == KEY_ENTRY:
            protected = cursor.read(cursor.number(4))
            chain = tuple(cursor.certificate(version) for _ in range(cursor.number(4)))
            keys.append(KeyEntry(alias, chain, protected))
        elif tag == TRUSTED_ENTRY:
            trusted.append(cursor.certificate(version))
        else:
            raise BadStore(f"has an entry of kind {tag}, which is not known")
    if cursor.remaining:
        raise BadStore("is damaged: it goes on behind its last entry")
    return JksStore(tuple(keys), tuple(trusted))


class _Cursor:
    """A reader of big-endian numbers, and of content whose length they give."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position

    @property
    def remaining(self) -> int:
        return len(self._content) - self._position

    def read(self, size: int) -> bytes:
        if size > self.remaining:
            raise BadStore("is damaged: it ends within an entry")
        self._position += size
        return self._content[self._position - size : self._position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.read(size), "big")

    def text(self) -> str:
        return self.read(self.number(2)).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            kind = self.text()
            if kind != "X.509":
                raise BadStore(f"holds a certificate of type {kind}: only X.509 is known")
        return self.read(self.number(4))


def _characters(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _recovered(protected: bytes, password: str) -> bytes:
    position = protected.find(_PROTECTED)
    header = _length(protected, position + len(_PROTECTED))
    if position < 0 or header is None:
        raise BadStore("protects its private key in a way that is not known: convert the store to PKCS12 with keytool")
    begin, size = header
    data = protected[begin : begin + size]
    salt, hidden, check = data[:DIGEST_BYTES], data[DIGEST_BYTES:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    secret = _characters(password)
    stream, block = b"", salt
    while len(stream) < len(hidden):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise BadStore("has another password for its private key: set ssl.key.password")
    return plain


def _length(der: bytes, position: int) -> tuple[int, int] | None:
    """Return the begin and the size of the content of the OCTET STRING at this place; None if there is none."""
    if der[position : position + 1] != b"\x04":
        return None
    size = der[position + 1]
    if size < 0x80:
        return position + 2, size
    count = size & 0x7F
    return position + 2 + count, int.from_bytes(der[position + 2 : position + 2 + count], "big")
