"""Java's client properties as settings of librdkafka.

A property that has no counterpart is named, never dropped. librdkafka checks relations between settings that Java
does not check. Where it would refuse what Java takes, a related setting is changed too. This module is pure: it reads
no file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep_config.clients.sasl import librdkafka_login, read_login
from lockstep_config.clients.tls import TlsMaterial, read_tls
from lockstep_config.keys.client_keys import CLIENT, NO_RESET, ClientKey, ClientKind, Untranslatable
from lockstep_config.keys.key_types import KeyStatus
from lockstep_config.text.values import choice, integer

# librdkafka's own defaults, which take part in its checks.
RECEIVE_MESSAGE_MAX_BYTES = 100_000_000
MESSAGE_MAX_BYTES = 1_000_000
RESPONSE_OVERHEAD_BYTES = 512

SILENT_AT_MOST_MS = 180_000
JAVA_IDLE_MS = 540_000


@dataclass(frozen=True, slots=True)
class TranslatedProperties:
    """Settings for a confluent-kafka client, and the properties that have no counterpart.

    `refused` has the Java key and a sentence of each property that stops the start.
    """

    settings: dict[str, str] = field(repr=False)
    refused: tuple[tuple[str, str], ...] = ()


def read_protocol(properties: Mapping[str, str]) -> str:
    """Return the security protocol in upper case (Kafka compares without case); Java's default is PLAINTEXT."""
    return properties.get("security.protocol", "PLAINTEXT").strip().upper()


def max_idle_ms(properties: Mapping[str, str]) -> int | None:
    """Return the milliseconds after which an idle connection outside of librdkafka is closed; None means never."""
    idle_ms = integer(properties.get("connections.max.idle.ms", str(JAVA_IDLE_MS)))
    return idle_ms if idle_ms > 0 else None


def uses_tls(properties: Mapping[str, str]) -> bool:
    return read_protocol(properties) in {"SSL", "SASL_SSL"}


def uses_sasl(properties: Mapping[str, str]) -> bool:
    return read_protocol(properties) in {"SASL_PLAINTEXT", "SASL_SSL"}


def translated(properties: Mapping[str, str], kind: ClientKind) -> TranslatedProperties:
    """Return the settings for one kind of client.

    The values must have been checked before (`lockstep_config.resolve.validate`).
    """
    settings = {
        "bootstrap.servers": properties.get("bootstrap.servers", "").replace(" ", ""),
        "security.protocol": read_protocol(properties),
        # librdkafka's default pushes metrics to brokers that subscribe (KIP-714), and keeps histograms for that. They
        # take 0.2 to 0.4 MiB of each client. Each service has a page of metrics instead.
        "enable.metrics.push": "false",
        # Load balancers forget a silent connection (350 s at AWS, 240 s at Azure). The system decides when it
        # probes the other side, mostly after two hours. So connections are closed before a balancer forgets them.
        "socket.keepalive.enable": "true",
        "connections.max.idle.ms": str(SILENT_AT_MOST_MS),
    }
    refused: list[tuple[str, str]] = []
    for part in (_tls, _sasl):
        try:
            settings.update(part(properties))
        except Untranslatable as exc:
            refused.append((exc.key, str(exc)))
    for name, value in properties.items():
        key = CLIENT[kind].get(name)
        if key is not None and key.librdkafka and key.status is KeyStatus.USED:
            settings[key.librdkafka] = clamp(key, value)
    if settings.get("auto.offset.reset") == NO_RESET:
        del settings["auto.offset.reset"]
    _relations(settings, kind)
    return TranslatedProperties(settings, tuple(refused))


def clamp(key: ClientKey, text: str) -> str:
    """Return a value as librdkafka takes it: a number beyond the key's limits becomes the nearest limit."""
    text = text.strip()
    if key.choices:
        return choice(text, key.choices)
    if key.name == "check.crcs":
        return text.lower()
    if key.minimum is None or key.maximum is None:
        return text
    return str(key.nearest(integer(text)))


def _tls(properties: Mapping[str, str]) -> dict[str, str]:
    if not uses_tls(properties):
        return {}
    tls = read_tls(properties)
    settings = {"ssl.endpoint.identification.algorithm": "https" if tls.check_hostname else "none"}
    if tls.ciphers is not None:
        settings["ssl.cipher.suites"] = tls.ciphers
    return settings


def stores_translated(material: TlsMaterial) -> dict[str, str]:
    """Return the settings for the certificates and keys that `tls.load_material` read, as PEM.

    librdkafka knows no truststores, and of keystores PKCS12 alone.
    """
    settings = {}
    if material.trusted_pem is not None:
        settings["ssl.ca.pem"] = material.trusted_pem
    if material.identity is not None:
        settings["ssl.certificate.pem"] = material.identity.chain_pem
        settings["ssl.key.pem"] = material.identity.key_pem
    return settings


def _sasl(properties: Mapping[str, str]) -> dict[str, str]:
    return librdkafka_login(read_login(properties)) if uses_sasl(properties) else {}


def _relations(settings: dict[str, str], kind: ClientKind) -> None:
    for least, most in (
        ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
        ("retry.backoff.ms", "retry.backoff.max.ms"),
    ):
        # In Java the larger of the two is the maximum.
        if least in settings:
            settings[most] = str(max(int(settings[least]), int(settings.get(most, "1000"))))
        elif most in settings:
            settings[least] = str(min(int(settings[most]), 100))
    # By default librdkafka waits up to ten seconds before it connects to a lost broker again, Java one.
    settings.setdefault("reconnect.backoff.max.ms", "1000")
    if kind == "consumer" and "fetch.max.bytes" in settings:
        fetched = int(settings["fetch.max.bytes"])
        if fetched < MESSAGE_MAX_BYTES:
            settings["message.max.bytes"] = str(max(fetched, 1_000))
            settings["fetch.max.bytes"] = settings["message.max.bytes"] if fetched < 1_000 else str(fetched)
        if fetched + RESPONSE_OVERHEAD_BYTES > RECEIVE_MESSAGE_MAX_BYTES:
            settings["receive.message.max.bytes"] = str(fetched + RESPONSE_OVERHEAD_BYTES)
