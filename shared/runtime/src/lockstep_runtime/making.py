"""librdkafka's clients are made here, for their certificates are read at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from lockstep_runtime.errors import ClusterUnreachable

__all__ = ["made"]

C = TypeVar("C")


def made(alias: str, conf: Mapping[str, Any], make: Callable[[dict[str, Any]], C]) -> C:
    """What `make` makes with these settings. Raises ClusterUnreachable where certificates, keys or stores do not serve:
    they did when the configuration was loaded, so somebody is replacing them just now, one after the other."""
    try:
        return make(dict(conf))
    except KafkaException as exc:
        why = exc.args[0].str()
        if "ssl." not in why:
            raise
        raise ClusterUnreachable(alias, str(conf.get("bootstrap.servers", "")), why) from exc
