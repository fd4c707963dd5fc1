"""Java's `ssl.*` properties as PEM: certificates to trust, our own chain and key, whether the host's name is checked.

Supported: PEM, as files and inline. Java and PKCS12 stores, cipher suites and engine classes raise `Untranslatable`
and are named.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.sasl import Untranslatable

__all__ = ["TlsSettings", "normalised_pem", "ssl_context", "tls_of"]

OLD_PROTOCOLS = frozenset({"SSL", "SSLV2", "SSLV3", "TLSV1", "TLSV1.1"})
LEAST_VERSION = ssl.TLSVersion.TLSv1_2

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_WIDTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What one client needs for TLS. Files are paths to PEM; texts are PEM itself; None means not given.

    Without anything to trust, the system's certificates are.
    """

    trusted_file: str | None = None
    trusted_pem: str | None = None
    identity_file: str | None = None
    """One PEM file with our key and certificate chain, as Java has it."""
    chain_pem: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True


def tls_of(properties: Mapping[str, str]) -> TlsSettings:
    """Read `ssl.*` of a client whose protocol is SSL or SASL_SSL. Raises `Untranslatable`; reads no file."""
    given = {key: value.strip() for key, value in properties.items() if key.startswith("ssl.") and value.strip()}
    _refuse_what_has_no_counterpart(given)
    for key in ("ssl.keystore.certificate.chain", "ssl.keystore.key"):
        other = "ssl.keystore.key" if key.endswith("chain") else "ssl.keystore.certificate.chain"
        if key in given and other not in given:
            raise Untranslatable(key, f"is set without {other}: a client certificate needs both")
    return TlsSettings(
        trusted_file=given.get("ssl.truststore.location"),
        trusted_pem=_pem(given, "ssl.truststore.certificates", "CERTIFICATE"),
        identity_file=given.get("ssl.keystore.location"),
        chain_pem=_pem(given, "ssl.keystore.certificate.chain", "CERTIFICATE"),
        key_pem=_pem(given, "ssl.keystore.key", "PRIVATE KEY"),
        key_password=given.get("ssl.key.password"),
        check_hostname=_checks_hostname(properties),
    )


def normalised_pem(text: str) -> str:
    """PEM as OpenSSL wants it. In a properties file it may stand on one line, with blanks where its line ends were."""
    blocks = []
    for label, body in _BLOCK.findall(text):
        packed = "".join(body.split())
        lines = [packed[at : at + _PEM_WIDTH] for at in range(0, len(packed), _PEM_WIDTH)]
        blocks.append("\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"]) + "\n")
    return "".join(blocks)


def ssl_context(settings: TlsSettings) -> ssl.SSLContext:
    """A client's context; reads the files now. Raises OSError (ssl.SSLError is one) when a file or key does not
    serve."""
    context = ssl.create_default_context(cafile=settings.trusted_file, cadata=settings.trusted_pem)
    context.minimum_version = LEAST_VERSION
    context.check_hostname = settings.check_hostname
    password = settings.key_password or _no_password
    if settings.identity_file is not None:
        context.load_cert_chain(settings.identity_file, password=password)
    elif settings.chain_pem is not None and settings.key_pem is not None:
        # OpenSSL's binding takes files only: one that nobody else may read, gone again at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as both:
            both.write(settings.key_pem + settings.chain_pem)
            both.flush()
            context.load_cert_chain(both.name, password=password)
    return context


def _no_password() -> str:
    # Without a callback OpenSSL would ask for the password on the terminal, and the service would hang there.
    raise ssl.SSLError("the private key is encrypted: set ssl.key.password")


def _refuse_what_has_no_counterpart(given: Mapping[str, str]) -> None:
    for store in ("truststore", "keystore"):
        kind = given.get(f"ssl.{store}.type", "PEM" if _is_inline(given, store) else "JKS").upper()
        if f"ssl.{store}.location" in given and kind != "PEM":
            key = f"ssl.{store}.type" if f"ssl.{store}.type" in given else f"ssl.{store}.location"
            raise Untranslatable(
                key, f"is a {kind} store, which is not supported yet: convert it to PEM and set ssl.{store}.type=PEM"
            )
        if f"ssl.{store}.password" in given:
            raise Untranslatable(f"ssl.{store}.password", "is set, but a PEM store has no password: remove it")
        if f"ssl.{store}.location" in given and _is_inline(given, store):
            raise Untranslatable(f"ssl.{store}.location", "is set beside the certificates themselves: keep one of them")
    for key, why in (
        ("ssl.cipher.suites", "cannot be translated yet from Java's names: remove it, and OpenSSL's own choice counts"),
        ("ssl.engine.factory.class", "is a Java class, which cannot run here: remove it"),
    ):
        if key in given:
            raise Untranslatable(key, why)
    old = sorted(_protocols(given) & OLD_PROTOCOLS)
    if old:
        key = "ssl.enabled.protocols" if "ssl.enabled.protocols" in given else "ssl.protocol"
        raise Untranslatable(
            key, f"names {', '.join(old)}, which is no longer safe: TLSv1.2 and TLSv1.3 are spoken here"
        )


def _is_inline(given: Mapping[str, str], store: str) -> bool:
    return ("ssl.truststore.certificates" if store == "truststore" else "ssl.keystore.key") in given


def _protocols(given: Mapping[str, str]) -> set[str]:
    listed = given.get("ssl.enabled.protocols") or given.get("ssl.protocol", "")
    return {protocol.strip().upper() for protocol in listed.split(",")}


def _pem(given: Mapping[str, str], key: str, label: str) -> str | None:
    if key not in given:
        return None
    pem = normalised_pem(given[key])
    if label not in pem:
        raise Untranslatable(key, f"is no PEM text: it has no -----BEGIN {label}----- with its end")
    return pem


def _checks_hostname(properties: Mapping[str, str]) -> bool:
    """Java: `https` by default; the empty text switches the check off."""
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", ""}:
        raise Untranslatable(
            "ssl.endpoint.identification.algorithm",
            f"is {algorithm!r}: it takes https, or nothing to switch the check off",
        )
    return algorithm == "https"
