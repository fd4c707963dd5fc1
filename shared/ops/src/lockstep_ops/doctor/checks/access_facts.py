"""Facts that were read on the way to a cluster: names, connections, certificates, the login, the brokers.

They are plain values.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import UnfitRequest
from lockstep_state.kafka.kafka_requests import KafkaRequest
from lockstep_state.opening_step import OpeningStep


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """A bootstrap server.

    `addresses` are those of its name. If they are empty, `reason` says why.
    """

    host: str
    port: int
    addresses: tuple[str, ...] = ()
    reason: str = ""
    is_literal: bool = False
    """The host is an address already."""


@dataclass(frozen=True, slots=True)
class AddressConnection:
    """A connection to one address of a host. `reason` is "" if it was opened, in `took_ms`."""

    host: str
    address: str
    port: int
    reason: str = ""
    took_ms: float = 0.0


class TlsFault(StrEnum):
    """The fault of what a port serves under TLS. `NONE` means that there is no fault."""

    NONE = ""
    STORES = "stores"
    PROTOCOL = "protocol"
    EXPIRED = "expired"
    NOT_YET = "not yet"
    CHAIN = "chain"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """The certificate that one port served.

    `ends_s` is in Unix seconds, and None if no certificate was seen. `names` are the host names in the certificate.
    """

    host: str
    port: int
    fault: TlsFault = TlsFault.NONE
    reason: str = ""
    subject: str = ""
    names: tuple[str, ...] = ()
    ends_s: float | None = None

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class StoreEnd:
    """The end of validity of the certificates in our keystore or our truststore, in Unix seconds."""

    use: str
    ends_s: float


@dataclass(frozen=True, slots=True)
class LoginOutcome:
    """The outcome of the login at one bootstrap server.

    `step` is OPEN after a success. Else it is the step that failed, and `reason` says why. `mechanism` is "" without a
    login. `offered` are the mechanisms of the broker; it is empty if the broker did not name them.
    """

    place: str
    protocol: str
    mechanism: str
    login: str
    step: OpeningStep
    reason: str = ""
    offered: tuple[str, ...] = ()
    is_broker: bool = True
    has_tokens: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker at its advertised address.

    `reason` is "" if the broker accepts a connection. `unfit` are the required requests that it does not know in our
    versions. It is None if the broker did not say; `trouble` then says why. `round_trips_s` are those of small
    requests.
    """

    id: int
    host: str
    port: int
    reason: str = ""
    unfit: tuple[UnfitRequest, ...] | None = None
    round_trips_s: tuple[float, ...] = ()
    trouble: str = ""
    versions: ApiVersions = field(default_factory=dict)
    """The versions of each request that the broker announces."""

    @property
    def place(self) -> str:
        return f"broker {self.id} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """All that was read on the way to one cluster. What was not reached is empty or None."""

    alias: str
    protocol: str
    checks_name: bool = True
    hosts: tuple[HostAddresses, ...] = ()
    connections: tuple[AddressConnection, ...] = ()
    store_trouble: str = ""
    store_ends: tuple[StoreEnd, ...] = ()
    certificates: tuple[ServedCertificate, ...] = ()
    login: LoginOutcome | None = None
    cluster_id: str = ""
    brokers: tuple[BrokerFacts, ...] = ()
    brokers_trouble: str = ""
    refused: frozenset[KafkaRequest] = frozenset()
    """Requests that were tried, and that the cluster announces and does not know all the same."""

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")
