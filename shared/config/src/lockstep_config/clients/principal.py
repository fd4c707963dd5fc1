"""The principal as which a broker knows a client, by the brokers' default rules. ACLs are granted to it.

A certificate's principal is its subject as Java writes it (RFC 2253), a token's is its claim `sub`. Brokers may map
names by rules of their own (`ssl.principal.mapping.rules`, `principal.builder.class`), which no client can know.
"""

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from lockstep_config.clients.librdkafka import uses_sasl, uses_tls
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.tls import TlsSettings, load_material, read_tls
from lockstep_config.keys.client_keys import Untranslatable

if TYPE_CHECKING:
    from cryptography.x509 import Name, NameAttribute


def find_principal(properties: Mapping[str, str]) -> str | None:
    """Return `User:NAME` of a client with these Java properties.

    It reads the keystore, if there is one, once for each change of the file. It sends no request.

    Returns:
        None if the properties do not show the principal, or if no token has been asked for yet.
    """
    try:
        name = read_login(properties).principal_name() if uses_sasl(properties) else _subject(properties)
    except (Untranslatable, OSError):
        return None
    return f"User:{name}" if name else None


def _subject(properties: Mapping[str, str]) -> str | None:
    if not uses_tls(properties):
        return None
    settings = read_tls(properties)
    file = settings.identity_file
    return _subject_at(settings, 0 if file is None else os.stat(file).st_mtime_ns)


@lru_cache(maxsize=16)
def _subject_at(settings: TlsSettings, _changed_ns: int) -> str | None:
    """Return the subject of the client's certificate, once for each change of the keystore.

    Thousands of topics may be refused at once, and to read a key takes milliseconds.
    """
    identity = load_material(settings).identity
    if identity is None:
        return None
    from cryptography.x509 import load_pem_x509_certificates

    return subject_in_java(load_pem_x509_certificates(identity.chain_pem.encode())[0].subject)


_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The keywords of RFC 2253. Java writes every other attribute as its number and its bytes."""

_ESCAPED = ',=+<>#;"\\'


def subject_in_java(name: "Name") -> str:
    """Return a subject as Java's `X500Principal.getName()` writes it."""
    return ",".join("+".join(_written(rdn)) for rdn in reversed(name.rdns))


def _written(rdn: "Iterable[NameAttribute[str | bytes]]") -> Iterable[str]:
    for attribute in rdn:
        oid = attribute.oid.dotted_string
        if oid in _KEYWORDS and isinstance(attribute.value, str):
            yield f"{_KEYWORDS[oid]}={_escaped(attribute.value)}"
        else:
            yield f"{oid}=#{_der_value(attribute).hex()}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{c}" if c in _ESCAPED else c for c in value)
    bare = text.strip(" ")
    blanks = text.find(bare) if bare else len(text)
    return "\\ " * blanks + bare + "\\ " * (len(text) - blanks - len(bare))


def _der_value(attribute: "NameAttribute[str | bytes]") -> bytes:
    """Return the DER of an attribute's value with tag and length.

    The value follows the object identifier, three levels down.
    """
    from cryptography.x509 import Name

    der = Name([attribute]).public_bytes()
    for _ in range(3):
        der = der[2 if der[1] < 0x80 else 2 + (der[1] & 0x7F) :]
    return der[2 + der[1] :]
