"""What librdkafka's clients do not do by themselves. They neither wait for a token nor explain a bad certificate, their
own, which they read when they are made, or a broker's.
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
    """A client with these settings. Under OAUTHBEARER the token is there before. Without one confluent-kafka blocks for
    ten seconds without a reason; with one it still blocks for one. Raises ClusterUnreachable with the reason, also for
    unusable certificates, keys or stores. They were usable when the configuration was loaded, so they are just being
    replaced, one after the other.
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
    """Without it librdkafka writes each lost connection to stderr. The result of each request goes to its caller."""


def certificate_error(conf: Mapping[str, Any]) -> str | None:
    """Does one TLS handshake with the first bootstrap broker, as librdkafka does with these settings. Returns OpenSSL's
    own words for what is wrong with its certificate. None: nothing, or the broker is away.
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
