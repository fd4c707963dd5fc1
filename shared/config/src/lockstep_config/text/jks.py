"""Java's own keystore format, `JKS`: a list of entries, each a private key with its chain or a trusted certificate.

The layout is that of `sun.security.provider.JavaKeyStore`, the protection of keys that of its `KeyProtector`. Both are
SHA-1 over the password and are obfuscation rather than encryption, as Java itself says. What is read is certain: the
digest at the end covers the whole file and the password.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes

MAGIC = b"\xfe\xed\xfe\xed"
WHITENER = b"Mighty Aphrodite"
DIGEST_BYTES = hashlib.sha1(b"", usedforsecurity=False).digest_size
KEY_ENTRY, TRUSTED_ENTRY = 1, 2

# EncryptedPrivateKeyInfo { { 1.3.6.1.4.1.42.2.17.1.1, NULL }, OCTET STRING }
_PROTECTED = bytes.fromhex("300e060a2b060104012a021101010500")


class BadStore(OSError):
    """A store cannot be used; the text says why and what to do, without the file's name."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates in DER, our own first. `protected` is as in the store."""

    alias: str
    chain: tuple[bytes, ...]
    protected: bytes = field(repr=False)

    def key(self, password: str) -> PKCS12PrivateKeyTypes:
        """Raises BadStore for another password than the key's."""
        plain = _recovered(self.protected, password)
        try:
            return load_der_private_key(plain, None)  # type: ignore[return-value]  # TLS takes the kinds that PKCS12 has
        except ValueError as exc:
            raise BadStore(f"holds a private key of a kind that is not known ({self.alias}): {exc}") from exc


@dataclass(frozen=True, slots=True)
class JksStore:
    """Entries in the order of the file."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]
    """Trusted certificates in DER."""


def read_jks(content: bytes, password: str | None) -> JksStore:
    """Java's rule: without a password nothing is verified, with one the store's digest must agree. Raises BadStore."""
    if content[:4] != MAGIC:
        raise BadStore("is no JKS store")
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if password is not None:
        found = hashlib.sha1(_characters(password) + WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(found, digest):
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
    if cursor.left:
        raise BadStore("is damaged: it goes on behind its last entry")
    return JksStore(tuple(keys), tuple(trusted))


class _Cursor:
    """Reads big-endian numbers and what is as long as they say."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at

    @property
    def left(self) -> int:
        return len(self._content) - self._at

    def read(self, size: int) -> bytes:
        if size > self.left:
            raise BadStore("is damaged: it ends within an entry")
        self._at += size
        return self._content[self._at - size : self._at]

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
    at = protected.find(_PROTECTED)
    header = _length(protected, at + len(_PROTECTED))
    if at < 0 or header is None:
        raise BadStore("protects its private key in a way that is not known: convert the store to PKCS12 with keytool")
    begin, size = header
    data = protected[begin : begin + size]
    salt, hidden, check = data[:DIGEST_BYTES], data[DIGEST_BYTES:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    secret = _characters(password)
    stream, last = b"", salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise BadStore("has another password for its private key: set ssl.key.password")
    return plain


def _length(der: bytes, at: int) -> tuple[int, int] | None:
    """Where the content of the OCTET STRING at this place begins, and its size."""
    if der[at : at + 1] != b"\x04":
        return None
    first = der[at + 1]
    if first < 0x80:
        return at + 2, first
    count = first & 0x7F
    return at + 2 + count, int.from_bytes(der[at + 2 : at + 2 + count], "big")
