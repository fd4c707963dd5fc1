"""A broker with one listener for each way to reach it: TLS, mTLS, every SASL mechanism, and certificates to be refused.

It costs one start. `PLAINTEXT` is open for the tests' own administration (`bootstrap`); the others are reached by what
`Secured.properties` says.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import ScramMechanism

from tests.support.broker import Broker
from tests.support.certificates import Authority, Certified
from tests.support.clusters import set_scram_password
from tests.support.ports import free_port
from tests.support.token_server import AUDIENCE, TokenServer

USER, PASSWORD = "mirror", 'pass;"word\\'
"""A password with what needs quoting in a JAAS line."""

MECHANISMS = ("TLS", "MTLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_PACKAGE = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}

PROTOCOLS = {
    "TLS": "SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
}
"""Our listeners. What `EXPIRED` shows has expired, and what `ELSEWHERE` shows is for another host."""


@dataclasses.dataclass(frozen=True)
class Secured:
    """What brokers and clients share: the authority that signs for both, and whoever signs tokens."""

    folder: Path
    authority: Authority
    tokens: TokenServer

    @classmethod
    def made(cls, folder: Path) -> "Secured":
        folder.mkdir(parents=True, exist_ok=True)
        authority = Authority()
        (folder / "ca.pem").write_text(authority.pem)
        return cls(folder, authority, TokenServer({USER: PASSWORD}, authority.server("localhost")))

    @property
    def client(self) -> Path:
        """Return our own key and certificate, CN=mirror."""
        file = self.folder / "client.pem"
        return file if file.exists() else self.authority.certify(USER).pem(file)


class SecuredBroker(Broker):
    """A `Broker` with the listeners above. With `denying` nobody but the anonymous administration may do what no ACL
    allows. `session_ms`: SASL sessions end after so long."""

    def __init__(
        self, alias: str, secured: Secured, *, denying: bool = False, session_ms: int = 0, **more: Any
    ) -> None:
        self.secured = secured
        self._ports = {name: free_port() for name in PROTOCOLS}
        jwks = secured.tokens.jwks(secured.folder / f"{alias}.jwks").as_uri()
        properties = {**_sasl_properties("SASL", jwks), **_sasl_properties("SASLTLS", jwks)}
        for name, certified in self._certified().items():
            file = certified.pem(secured.folder / f"{alias}-{name}.pem")
            properties |= _tls_properties(name, file, secured.folder / "ca.pem")
        if session_ms:
            properties["connections.max.reauth.ms"] = str(session_ms)
        if denying:
            properties["allow.everyone.if.no.acl.found"] = "false"
        super().__init__(
            alias,
            authorizer=denying,
            properties=properties | dict(more.pop("properties", {})),
            jvm=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks}", *more.pop("jvm", ())],
            **more,
        )

    def address(self, listener: str) -> str:
        """Return where clients bootstrap for one of our listeners."""
        return f"localhost:{self._ports[listener]}"

    def properties(self, how: str, **changed: str) -> dict[str, str]:
        """Return Java's client properties to log in by one of MECHANISMS, over TLS but for SCRAM-SHA-256; `changed` may
        name `password`, `listener`."""
        password = changed.get("password", PASSWORD)
        listener = changed.get("listener") or (how if how in PROTOCOLS else "SASL" if "256" in how else "SASLTLS")
        settings = {"bootstrap.servers": self.address(listener), "security.protocol": PROTOCOLS[listener]}
        if PROTOCOLS[listener].endswith("SSL"):
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.secured.folder / "ca.pem")}
        if how == "MTLS":
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.secured.client)}
        if how in _MODULES:
            settings |= {"sasl.mechanism": how, "sasl.jaas.config": self._jaas(how, password)}
        if how == "OAUTHBEARER":
            settings["sasl.oauthbearer.token.endpoint.url"] = self.secured.tokens.url
        return settings

    def lines(self, how: str, alias: str = "", **changed: str) -> list[str]:
        """Return the same as lines of mm2.properties, for the cluster with this alias, or with ours."""
        given = self.properties(how, **changed)
        return [f"{alias or self.alias}.{key} = {_escaped(value)}" for key, value in given.items()]

    def expired(self) -> list[str]:
        """Return what the broker said of connections that it closed because their session was over."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if "expired channel" in line]

    def add_users(self) -> None:
        """Give USER its SCRAM credentials; with another password than before it is changed."""
        self.set_password(PASSWORD)

    def set_password(self, password: str | None) -> None:
        """Set USER's password in both SCRAM mechanisms. None takes the credentials away."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            set_scram_password(self.bootstrap, USER, mechanism, password)

    def _certified(self) -> Mapping[str, Certified]:
        authority = self.secured.authority
        good = authority.server("localhost", "127.0.0.1")
        return {
            "TLS": good,
            "MTLS": good,
            "SASLTLS": good,
            "EXPIRED": authority.server("localhost", days=(-20, -1)),
            "ELSEWHERE": authority.server("elsewhere.example"),
        }

    def _jaas(self, how: str, password: str) -> str:
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        if how != "OAUTHBEARER":
            return f'{_MODULES[how]} required username="{USER}" password="{quoted}";'
        return (
            f'{_MODULES[how]} required clientId="{USER}" clientSecret="{quoted}" ssl.truststore.type="PEM" '
            f'ssl.truststore.location="{self.secured.folder / "ca.pem"}";'
        )

    def _write_settings(self) -> None:
        super()._write_settings()
        with (self.folder / "log4j.properties").open("a") as logging:
            # It tells of each session that it ends, and of nothing else worth a line.
            logging.write("logger.network.name = kafka.network.Processor\nlogger.network.level = debug\n")

    def _listeners(self) -> dict[str, str]:
        settings = super()._listeners()
        settings["listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        settings["advertised.listeners"] += "".join(f",{name}://localhost:{port}" for name, port in self._ports.items())
        settings["listener.security.protocol.map"] += "".join(f",{name}:{how}" for name, how in PROTOCOLS.items())
        return settings


def _tls_properties(listener: str, certified: Path, trusted: Path) -> dict[str, str]:
    prefix = f"listener.name.{listener.lower()}.ssl"
    return {
        f"{prefix}.keystore.type": "PEM",
        f"{prefix}.keystore.location": str(certified),
        f"{prefix}.truststore.type": "PEM",
        f"{prefix}.truststore.location": str(trusted),
        f"{prefix}.client.auth": "required" if listener == "MTLS" else "none",
    }


def _sasl_properties(listener: str, jwks: str) -> dict[str, str]:
    prefix = f"listener.name.{listener.lower()}"
    user = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    jaas = {"PLAIN": f' user_{USER}="{user}"'}
    properties = {f"{prefix}.sasl.enabled.mechanisms": ",".join(_MODULES)}
    for mechanism, module in _MODULES.items():
        line = f"{module} required{jaas.get(mechanism, '')};"
        properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = _escaped(line)
    oauth = f"{prefix}.oauthbearer.sasl"
    return properties | {
        f"{oauth}.server.callback.handler.class": f"{_PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{oauth}.oauthbearer.jwks.endpoint.url": jwks,
        f"{oauth}.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.jwks.endpoint.url": jwks,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


def _escaped(value: str) -> str:
    """Return a value as a properties file wants it."""
    return value.replace("\\", "\\\\")
