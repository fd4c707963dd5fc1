"""Java's `ssl.*` properties in the form that OpenSSL needs.

They say which certificates are trusted, which chain and key the client shows, protocols, suites, and whether the
host's name is checked. `read_tls` reads no file. `load_material` does, and gives librdkafka and Python's own TLS the
same PEM.
"""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from lockstep_config.keys.client_keys import Untranslatable

if TYPE_CHECKING:
    from lockstep_config.text.keystores import Identity

TYPES = ("JKS", "PKCS12", "PEM")
"""The types of keystores and truststores that are known."""

VERSIONS = {"TLSV1.2": ssl.TLSVersion.TLSv1_2, "TLSV1.3": ssl.TLSVersion.TLSv1_3}
NEW = frozenset(VERSIONS)
OLD = frozenset({"SSL", "SSLV2", "SSLV2HELLO", "SSLV3", "TLSV1", "TLSV1.0", "TLSV1.1"})
"""Protocols that are never spoken, as Java has not spoken them for years (`jdk.tls.disabledAlgorithms`)."""

_OF_TLS_1_3 = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3, which have one name everywhere.

Neither librdkafka nor Python can choose among them: OpenSSL offers its three.
"""
_OF_TLS_1_2: Mapping[str, str] = MappingProxyType(
    {
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
        "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
        "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": "DHE-RSA-AES128-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
        "TLS_DHE_RSA_WITH_AES_256_CBC_SHA": "DHE-RSA-AES256-SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
        "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
        "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
        "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    }
)
"""OpenSSL's names of the suites of TLS 1.2, by Java's names, which are IANA's."""

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_WIDTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The TLS settings of one client.

    Files are paths to stores of the type beside them, and texts are PEM. None means not given. Without anything to
    trust, the system's certificates are trusted. `ciphers` are OpenSSL's names of suites of TLS 1.2, between colons.
    """

    trusted_file: str | None = None
    trusted_type: str = "JKS"
    trusted_password: str | None = field(default=None, repr=False)
    trusted_pem: str | None = None
    identity_file: str | None = None
    identity_type: str = "JKS"
    identity_password: str | None = field(default=None, repr=False)
    chain_pem: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    ciphers: str | None = None
    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """The certificates and keys that the stores hold.

    `trusted_pem` is None if the system's certificates are trusted. `identity` is None if the client shows no
    certificate.
    """

    trusted_pem: str | None
    identity: "Identity | None"


def read_tls(properties: Mapping[str, str], *, trims_passwords: bool = True) -> TlsSettings:
    """Read `ssl.*` of a client whose protocol is SSL or SASL_SSL.

    It reads no file.

    Args:
        properties: The client's properties under Java's names.
        trims_passwords: Remove blanks around passwords, as Kafka does with every value.

    Raises:
        Untranslatable: A property cannot be used here.
    """
    stated = {
        key: value if key.endswith("password") and not trims_passwords else value.strip()
        for key, value in properties.items()
        if key.startswith("ssl.") and value.strip()
    }
    if "ssl.engine.factory.class" in stated:
        raise Untranslatable("ssl.engine.factory.class", "is a Java class, which cannot run here: remove it")
    for key in ("ssl.keystore.certificate.chain", "ssl.keystore.key"):
        counterpart = "ssl.keystore.key" if key.endswith("chain") else "ssl.keystore.certificate.chain"
        if key in stated and counterpart not in stated:
            raise Untranslatable(key, f"is set without {counterpart}: a client certificate needs both")
    suites = [suite.strip() for suite in stated.get("ssl.cipher.suites", "").split(",") if suite.strip()]
    oldest, newest = _versions(stated)
    return TlsSettings(
        trusted_file=stated.get("ssl.truststore.location"),
        trusted_type=_type(stated, "truststore"),
        trusted_password=stated.get("ssl.truststore.password"),
        trusted_pem=_pem(stated, "ssl.truststore.certificates", "CERTIFICATE"),
        identity_file=stated.get("ssl.keystore.location"),
        identity_type=_type(stated, "keystore"),
        identity_password=stated.get("ssl.keystore.password"),
        chain_pem=_pem(stated, "ssl.keystore.certificate.chain", "CERTIFICATE"),
        key_pem=_pem(stated, "ssl.keystore.key", "PRIVATE KEY"),
        key_password=stated.get("ssl.key.password"),
        check_hostname=_checks_hostname(properties),
        ciphers=_ciphers(suites),
        # A list without a suite of one of the two protocols is a list without that protocol.
        oldest=ssl.TLSVersion.TLSv1_3 if suites and _OF_TLS_1_3.issuperset(suites) else oldest,
        newest=ssl.TLSVersion.TLSv1_2 if suites and _OF_TLS_1_3.isdisjoint(suites) else newest,
    )


def load_material(settings: TlsSettings) -> TlsMaterial:
    """Read what the stores hold now.

    Raises:
        OSError: A store cannot be read (`BadStore` is one); the text names the file and says what to do.
    """
    # The import takes ten megabytes, which a process without TLS does not need.
    from lockstep_config.text.keystores import BadStore, identity_of_pem, load_identity, load_trusted

    trusted, identity = settings.trusted_pem, None
    if settings.trusted_file is not None:
        trusted = load_trusted(settings.trusted_file, settings.trusted_type, settings.trusted_password)
    if settings.identity_file is not None:
        identity = load_identity(
            settings.identity_file, settings.identity_type, settings.identity_password, settings.key_password
        )
    elif settings.chain_pem is not None and settings.key_pem is not None:
        try:
            identity = identity_of_pem(settings.chain_pem, settings.key_pem, settings.key_password)
        except BadStore as exc:
            raise BadStore(f"ssl.keystore.key {exc}") from exc
    return TlsMaterial(trusted, identity)


def normalised_pem(text: str) -> str:
    """Return PEM as OpenSSL takes it.

    In a properties file it may be on one line, with blanks in place of its line ends.
    """
    blocks = []
    for label, body in _BLOCK.findall(text):
        packed = "".join(body.split())
        lines = [packed[position : position + _PEM_WIDTH] for position in range(0, len(packed), _PEM_WIDTH)]
        blocks.append("\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"]) + "\n")
    return "".join(blocks)


def ssl_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of a client. It reads the stores now.

    Raises:
        OSError: A file or a key cannot be used (`ssl.SSLError` is one).
    """
    material = load_material(settings)
    context = ssl.create_default_context(cadata=material.trusted_pem)
    context.minimum_version, context.maximum_version = settings.oldest, settings.newest
    context.check_hostname = settings.check_hostname
    if settings.ciphers is not None:
        context.set_ciphers(settings.ciphers)
    if material.identity is not None:
        # OpenSSL's binding takes files only: one in memory, which no other process can open and which no disk ever
        # sees.
        memory_file = os.memfd_create("identity")
        try:
            os.write(memory_file, (material.identity.key_pem + material.identity.chain_pem).encode())
            context.load_cert_chain(f"/proc/self/fd/{memory_file}")
        finally:
            os.close(memory_file)
    return context


def remark_on(key: str, value: str) -> str | None:
    """Return a remark about a line that does not count in full; None if there is nothing to say."""
    names = {name.strip().upper() for name in value.split(",") if name.strip()}
    if key in ("ssl.protocol", "ssl.enabled.protocols") and names:
        old = f"{', '.join(sorted(names & OLD))} is not spoken here, for it is not safe; " if names & OLD else ""
        if not names >= NEW and names & NEW:
            counts = ", ".join(sorted(names & NEW))
            return f"{old}{counts} counts for the mirrored records only: librdkafka has no such setting"
        return old.removesuffix("; ") or None
    if key == "ssl.cipher.suites" and not _OF_TLS_1_3.isdisjoint(names) and not names >= _OF_TLS_1_3:
        return "names some suites of TLS 1.3: OpenSSL always offers its three"
    return None


def _type(stated: Mapping[str, str], store: str) -> str:
    """Return the type of a keystore or truststore, and refuse options that exclude it."""
    inline = ("ssl.truststore.certificates" if store == "truststore" else "ssl.keystore.key") in stated
    key = f"ssl.{store}.type"
    kind = stated.get(key, "PEM" if inline else "JKS").upper()
    kind = "PKCS12" if kind == "P12" else kind
    located = f"ssl.{store}.location" in stated
    if kind not in TYPES and (located or inline):
        raise Untranslatable(
            key, f"is {kind}: known are {', '.join(TYPES)}; keytool -importkeystore converts a store to PKCS12"
        )
    if located and inline:
        raise Untranslatable(f"ssl.{store}.location", "is set beside the certificates themselves: keep one of them")
    if f"ssl.{store}.password" in stated and kind == "PEM" and (located or inline):
        raise Untranslatable(f"ssl.{store}.password", "is set, but a PEM store has no password: remove it")
    return kind


def _versions(stated: Mapping[str, str]) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    """Return the oldest and the newest protocol, by Java's rule.

    `ssl.enabled.protocols` lists the protocols, and `ssl.protocol` is the newest of them.
    """
    oldest, newest = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    for key in ("ssl.protocol", "ssl.enabled.protocols"):
        if key not in stated:
            continue
        names = [name.strip().upper() for name in stated[key].split(",") if name.strip()]
        unknown = sorted({*names} - NEW - OLD - {"TLS"})
        if unknown:
            raise Untranslatable(key, f"names {', '.join(unknown)}: TLSv1.2 and TLSv1.3 are spoken here")
        if OLD.issuperset(names):
            raise Untranslatable(
                key, f"names only {', '.join(names)}, which is no longer safe: TLSv1.2 and TLSv1.3 are spoken here"
            )
        spoken = [VERSIONS[name] for name in names if name in VERSIONS]
        if spoken and key == "ssl.enabled.protocols":
            oldest = max(oldest, min(spoken))
        if spoken:
            newest = min(newest, max(spoken))
    if oldest > newest:
        raise Untranslatable("ssl.protocol", "leaves none of ssl.enabled.protocols: remove one of the two lines")
    return oldest, newest


def _ciphers(suites: list[str]) -> str | None:
    """Return OpenSSL's names of the suites of TLS 1.2 in the list, in its order; None if it has none."""
    for suite in suites:
        # TLS_EMPTY_RENEGOTIATION_INFO_SCSV is no suite, and is always sent.
        if suite not in {*_OF_TLS_1_2, *_OF_TLS_1_3, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"}:
            raise Untranslatable(
                "ssl.cipher.suites", f"names {suite}, which OpenSSL does not have, or does not count as safe: remove it"
            )
    return ":".join(_OF_TLS_1_2[suite] for suite in suites if suite in _OF_TLS_1_2) or None


def _pem(stated: Mapping[str, str], key: str, label: str) -> str | None:
    if key not in stated:
        return None
    pem = normalised_pem(stated[key])
    if label not in pem:
        raise Untranslatable(key, f"is no PEM text: it has no -----BEGIN {label}----- with its end")
    return pem


def _checks_hostname(properties: Mapping[str, str]) -> bool:
    """Return whether the host's name is checked. As in Java the default is `https`; an empty value means no check."""
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", ""}:
        raise Untranslatable(
            "ssl.endpoint.identification.algorithm",
            f"is {algorithm!r}: it takes https, or nothing to switch the check off",
        )
    return algorithm == "https"
