"""Opening of connections with a pause behind each refusal, for callers that try again at once."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_kafka.wire.connection import Connection

_refusing: KeyedBackoff[tuple[str, int]] = KeyedBackoff(first=0.05, limit=1.0)
"""The back-off of each address, with the pauses of Kafka's own clients.

`reconnect.backoff.ms` and `reconnect.backoff.max.ms` are 50 and 1000 there.
"""


async def open_with_pause(host: str, port: int, settings: Mapping[str, Any]) -> Connection:
    """Open a connection, after a pause if the address has just refused one.

    `settings` are those of `Connection.open`.

    Raises:
        BrokerUnreachable: The connection was not opened.
    """
    await asyncio.sleep(_refusing.wait_s((host, port), time.monotonic()))
    try:
        connection = await Connection.open(host, port, settings)
    except Exception:
        _refusing.failed((host, port), time.monotonic())
        raise
    _refusing.succeeded((host, port))
    return connection
