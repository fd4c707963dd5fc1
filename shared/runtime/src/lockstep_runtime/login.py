"""librdkafka's clients are made once there is something to log in with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lockstep_config.token_source import TokenCallback, TokenUnavailable
from lockstep_runtime.errors import ClusterUnreachable

__all__ = ["logged_in"]

C = TypeVar("C")


def logged_in(make: Callable[[dict[str, Any]], C], conf: Mapping[str, Any], alias: str) -> C:
    """A client with these settings. Under OAUTHBEARER the token is there before: without one confluent-kafka blocks for
    ten seconds and does not tell why; with one it still blocks for one. Raises ClusterUnreachable with the reason."""
    callback = conf.get("oauth_cb")
    if isinstance(callback, TokenCallback):
        try:
            callback.source.token()
        except TokenUnavailable as exc:
            raise ClusterUnreachable(alias, str(conf.get("bootstrap.servers", "")), f"no access token: {exc}") from exc
    return make(dict(conf))
