"""Open the socket of a connection: TCP, TLS, and the system's watch over it."""

import asyncio
import socket
import ssl
from typing import Any

ALIVE_AFTER_S, ALIVE_EVERY_S, ALIVE_TRIES = 60, 10, 3
"""Load balancers forget a connection that is silent for some minutes (350 s at AWS, 240 s at Azure) without a word."""


async def dial(
    protocol: asyncio.BaseProtocol, host: str, port: int, ssl_context: ssl.SSLContext | None
) -> asyncio.Transport:
    """Connect to a broker, and let this protocol take what it sends. `ssl_context` None: without TLS. Raises OSError,
    and what a handshake raises is among it.
    """
    try:
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, host, port, ssl=ssl_context)
    except UnicodeError as exc:  # a part of the name is longer than 63 characters
        raise OSError(f"the name cannot be resolved: {exc}") from None
    _keep_alive(transport.get_extra_info("socket"))
    return transport


def _keep_alive(connected: Any) -> None:
    """Let the system ask the other side of a socket, or asyncio's view of one, whether it is there, when nothing passes
    for a minute. It ends the connection where there is no answer.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", ALIVE_AFTER_S),  # the latter: macOS
        ("TCP_KEEPINTVL", ALIVE_EVERY_S),
        ("TCP_KEEPCNT", ALIVE_TRIES),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
