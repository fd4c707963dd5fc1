"""The ends of the certificates with which the connections of a flow are made."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lockstep_config.clients.librdkafka import uses_sasl, uses_tls
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.tls import TlsSettings, load_material, read_tls
from lockstep_config.flow.model import FlowSettings
from lockstep_config.resolve.precedence import SIDES

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

KEYSTORE, TRUSTSTORE, TOKEN_TRUSTSTORE = "keystore", "truststore", "token-truststore"


@dataclass(frozen=True, slots=True)
class CertificateEnds:
    """The ends of the certificates that the clients of one cluster have for one use.

    `ends` has each end once, in order, in Unix seconds.
    """

    cluster: str
    use: str
    ends: tuple[float, ...]


def certificate_ends(settings: FlowSettings) -> tuple[CertificateEnds, ...]:
    """Return the ends of the certificates of a flow on both clusters, as the stores hold them now.

    A use without certificates of its own has no entry: it uses the system's.

    Raises:
        OSError: A store cannot be read; the text names the file (`tls.load_material`).
    """
    source, target = (settings.clients.of_side(side).values() for side in SIDES)
    return (*connection_ends(settings.flow.source, source), *connection_ends(settings.flow.target, target))


def connection_ends(cluster: str, clients: Iterable[Mapping[str, str]]) -> tuple[CertificateEnds, ...]:
    """Return the ends of the certificates that clients with these properties have on one cluster.

    Raises:
        OSError: A store cannot be read; the text names the file.
    """
    ends_by_use: dict[str, set[float]] = {}
    for use, pem in _in_use(clients):
        ends_by_use.setdefault(use, set()).update(_ends_in(pem))
    return tuple(CertificateEnds(cluster, use, tuple(sorted(ends))) for use, ends in ends_by_use.items() if ends)


def first_end(certificates: CertificateEnds, now: float) -> float:
    """Return when the certificates stop being accepted, in Unix seconds.

    Every certificate that a client presents has to be good, so the earliest end of a keystore counts. A trusted
    certificate may stand in for another, as while an authority changes. So an end of a truststore that is in the past
    counts only if all are.
    """
    if certificates.use == KEYSTORE:
        return certificates.ends[0]
    return next((end for end in certificates.ends if end > now), certificates.ends[-1])


def _in_use(clients: Iterable[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each use and its certificates as PEM, once for equal settings."""
    brokers: set[TlsSettings] = set()
    endpoints: set[TlsSettings] = set()
    for properties in clients:
        if uses_tls(properties):
            brokers.add(read_tls(properties))
        tokens = read_login(properties).tokens if uses_sasl(properties) else None
        if tokens is not None and tokens.endpoint is not None:
            endpoints.add(tokens.tls)
    for use, settings in ((TRUSTSTORE, brokers), (TOKEN_TRUSTSTORE, endpoints)):
        for tls in settings:
            material = load_material(tls)
            if material.trusted_pem is not None:
                yield use, material.trusted_pem
            if material.identity is not None and use == TRUSTSTORE:
                yield KEYSTORE, material.identity.chain_pem


def _ends_in(pem: str) -> Iterator[float]:
    from cryptography.x509 import load_pem_x509_certificate  # only with TLS, as in `load_material`

    for block in _CERTIFICATE.findall(pem):
        try:
            yield load_pem_x509_certificate(block.encode()).not_valid_after_utc.timestamp()
        except ValueError:
            continue  # OpenSSL connects, and takes some certificates that cryptography cannot read
