"""Creation of librdkafka's clients, with the waits and explanations that librdkafka lacks.

librdkafka does not wait for a token. It does not explain a bad certificate: neither the client's own one, which it
reads when a client is created, nor a broker's.
"""

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from lockstep_config.clients.token_source import TokenCallback, TokenUnavailable
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_state.kafka.librdkafka_errors import error_text

HANDSHAKE_S = 5.0

C = TypeVar("C")


def create_client(make: Callable[[dict[str, Any]], C], conf: Mapping[str, Any], alias: str) -> C:
    """Return a client with these settings.

    Under OAUTHBEARER the token is fetched first. Without a token confluent-kafka blocks for ten seconds and gives no
    reason; with one it still blocks for one second.

    Raises:
        ClusterUnreachable: There is no access token, or a certificate, key or store cannot be used. These files were
            usable when the configuration was loaded, so somebody is just replacing them, one after the other.
    """
    callback = conf.get("oauth_cb")
    bootstrap = str(conf.get("bootstrap.servers", ""))
    if isinstance(callback, TokenCallback):
        try:
            callback.source.token()
        except TokenUnavailable as exc:
            raise ClusterUnreachable(alias, bootstrap, f"no access token: {exc}") from exc
    try:
        return make({"error_cb": _ignore, **conf})
    except KafkaException as exc:
        sentence = error_text(exc.args[0])
        if "ssl." not in sentence:
            raise
        raise ClusterUnreachable(alias, bootstrap, sentence) from exc


def _ignore(_: KafkaError) -> None:
    """Ignore an error.

    Without this callback librdkafka writes each lost connection to stderr. The result of each request goes to its
    caller.
    """


def certificate_error(conf: Mapping[str, Any]) -> str | None:
    """Return OpenSSL's error for the certificate of the first bootstrap broker.

    The function does one TLS handshake as librdkafka does with these settings. None means that the certificate is
    accepted, or that the broker is away.
    """
    host, _, port = str(conf.get("bootstrap.servers", "")).partition(",")[0].rpartition(":")
    try:
        context = ssl.create_default_context(cadata=conf.get("ssl.ca.pem"))
        context.check_hostname = conf.get("ssl.endpoint.identification.algorithm") != "none"
        host = host.strip("[]")
        with (
            socket.create_connection((host, int(port)), HANDSHAKE_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as exc:
        return str(exc)
    except (OSError, ValueError):
        return None
