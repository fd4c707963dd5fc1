"""How aiokafka is asked what librdkafka has no call for: by a client that connects for one answer."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aiokafka.errors import BrokerResponseError, IncompatibleBrokerVersion, KafkaError

from lockstep_config.clients.librdkafka import max_idle_ms
from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_config.flow.client_settings import aiokafka_connection
from lockstep_kafka.common.errors import ClusterUnreachable, RequestUnsupported
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode

_NUMBER = re.compile(r"^\[Error -?\d+\] ")
"""In front of the text of a broker's error."""


def client_arguments(properties: Mapping[str, str], client_id: str, timeout_s: float) -> dict[str, Any]:
    """Return what a client of aiokafka is made with, from a client's Java properties. Call it `within_cluster`."""
    return {
        "bootstrap_servers": [one.strip() for one in properties["bootstrap.servers"].split(",") if one.strip()],
        "connections_max_idle_ms": max_idle_ms(properties),
        **_common_arguments(properties, client_id, timeout_s),
    }


def connection_arguments(properties: Mapping[str, str], client_id: str, timeout_s: float) -> dict[str, Any]:
    """Return what a single connection of aiokafka is made with, beside its address, from a client's Java properties."""
    return {"max_idle_ms": max_idle_ms(properties), **_common_arguments(properties, client_id, timeout_s)}


def _common_arguments(properties: Mapping[str, str], client_id: str, timeout_s: float) -> dict[str, Any]:
    return {
        "client_id": client_id,
        "request_timeout_ms": round(timeout_s * 1000),
        **aiokafka_connection(properties),
    }


def client_error_text(exc: BaseException) -> str:
    """Return what an error of aiokafka or of the system says; that of a broker by Kafka's name."""
    if isinstance(exc, BrokerResponseError):
        return _NUMBER.sub("", str(exc)) if exc.args else error_name(exc.errno)
    return str(exc) or type(exc).__name__


@contextmanager
def within_cluster(alias: str, properties: Mapping[str, str], operation: str, resource: str) -> Iterator[None]:
    """Raises ClusterUnreachable for what goes wrong with such a client, or with its credentials. Raises
    RequestUnsupported for a request that a broker knows in no version in common."""
    try:
        yield
    except (NotImplementedError, IncompatibleBrokerVersion) as exc:  # in other versions; in none at all
        code = KafkaErrorCode.UNSUPPORTED_VERSION
        raise RequestUnsupported(alias, operation, resource, code, str(exc)) from exc
    except (KafkaError, OSError, TimeoutError, TokenUnavailable) as exc:
        raise ClusterUnreachable(alias, properties["bootstrap.servers"], client_error_text(exc)) from exc
