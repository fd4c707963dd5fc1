"""What was read on the way to a cluster: names, connections, certificates, the login, the brokers. Plain values."""

from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import UnfitRequest
from lockstep_state.opening_step import OpeningStep


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """A bootstrap server. `addresses` are what its name resolves to; empty: `why` says why not."""

    host: str
    port: int
    addresses: tuple[str, ...] = ()
    why: str = ""
    is_literal: bool = False
    """The host is an address already."""


@dataclass(frozen=True, slots=True)
class AddressConnection:
    """A connection to one address of a host. `why` "": it was opened, in `took_ms`."""

    host: str
    address: str
    port: int
    why: str = ""
    took_ms: float = 0.0


class TlsFault(StrEnum):
    """What is wrong with what a port serves under TLS; `NONE`: nothing."""

    NONE = ""
    STORES = "stores"
    PROTOCOL = "protocol"
    EXPIRED = "expired"
    NOT_YET = "not yet"
    CHAIN = "chain"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """What one port served. `ends_s`: Unix seconds, None where no certificate was seen. `names` are those in it."""

    host: str
    port: int
    fault: TlsFault = TlsFault.NONE
    why: str = ""
    subject: str = ""
    names: tuple[str, ...] = ()
    ends_s: float | None = None

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class StoreEnd:
    """When the certificates of one use stop to serve: our keystore's or our truststore's, Unix seconds."""

    use: str
    ends_s: float


@dataclass(frozen=True, slots=True)
class LoginOutcome:
    """How the login at one bootstrap server ended: `step` OPEN, or the step that failed and `why`. `mechanism` "":
    there is no login. `offered`: mechanisms of the broker, empty where it did not say."""

    place: str
    protocol: str
    mechanism: str
    login: str
    step: OpeningStep
    why: str = ""
    offered: tuple[str, ...] = ()
    is_broker: bool = True
    has_tokens: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker at its advertised address. `why` "": it accepts a connection. `unfit`: required requests that it
    does not know in our versions, None where it did not say, for `trouble`. `round_trips_s`: of small requests."""

    id: int
    host: str
    port: int
    why: str = ""
    unfit: tuple[UnfitRequest, ...] | None = None
    round_trips_s: tuple[float, ...] = ()
    trouble: str = ""
    versions: ApiVersions = field(default_factory=dict)
    """Those of each request that it announces."""

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

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")
